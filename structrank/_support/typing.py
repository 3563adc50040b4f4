"""Types of the public signatures; imported by type checkers alone."""

import os
from typing import TypeAlias

import scipy.sparse
from numpy.typing import ArrayLike

Path: TypeAlias = str | os.PathLike[str]
Matrix: TypeAlias = ArrayLike | scipy.sparse.spmatrix | scipy.sparse.sparray
