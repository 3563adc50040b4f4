"""Types of the public signatures."""

import os
from typing import TYPE_CHECKING, Any, TypeAlias

import scipy.sparse
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from pandas import DataFrame
else:
    DataFrame: TypeAlias = Any  # importing pandas takes half a second

__all__ = ["ArrayLike", "DataFrame", "Matrix", "NDArray", "Path"]

Path: TypeAlias = str | os.PathLike[str]
Matrix: TypeAlias = ArrayLike | scipy.sparse.spmatrix | scipy.sparse.sparray
