"""Cells of a comparison: what one trainer made of one fold, and the files that keep finished ones."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse

import structrank
from structrank import _validation
from structrank._files import replace_file
from structrank.ranker import Ranker
from structrank.svm import StructRankSVM

# Enters the key of stored cells: raise it when what a cell means changes.
_CELL_FORMAT = 2


@dataclass(frozen=True, eq=False)
class Cell:
    """What one trainer made of one fold.

    Attributes
    ----------
    dataset : str
    fold : int
        From 0.
    trainer : str
    C : float or None
        The C chosen; None for trainers that are not a `StructRankSVM`.
    validation : float or None
        What the chosen C reached on validation queries; None where there was nothing to choose.
    seconds : float
        Time for training, the choice of C included; of a cell that was interrupted, since it went on.
    notes : tuple of str
        Of the chosen model: warnings raised while it was trained, or its `notes_`.
    scores : (n_test_docs,) array
        Predictions for the test part, in its row order.
    """

    dataset: str
    fold: int
    trainer: str
    C: float | None
    validation: float | None
    seconds: float
    notes: tuple
    scores: np.ndarray

    def record(self):
        """Give what the cell holds beside the scores, by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "scores"}


@dataclass(frozen=True)
class _CellFile:
    """Where a finished cell is kept, and the fingerprint of all that it depends on."""

    path: Path
    key: str

    @property
    def begun(self):
        """The folder for what is needed to go on with a cell that is not finished."""
        return self.path.with_suffix("")

    def load(self):
        """Give the cell, or None if it is not there or damaged."""
        try:
            with np.load(self.path, allow_pickle=False) as file:
                record, scores = json.loads(file["record"].item()), file["scores"]
            if record.pop("key") != self.key:
                return None
            return Cell(**{**record, "notes": tuple(record["notes"])}, scores=scores)
        except Exception:  # there are many ways for a file to be damaged, and one answer
            return None

    def save(self, cell):
        """Write the cell in one step: a reader sees all of it or nothing, whenever the writer is killed."""
        record = np.array(json.dumps({**cell.record(), "key": self.key}))
        content = io.BytesIO()
        np.savez(content, record=record, scores=cell.scores)
        replace_file(self.path, content.getvalue(), "a cell of the comparison")
        shutil.rmtree(self.begun, ignore_errors=True)


def cell_files(tasks, folder):
    """Make the folder; give the file of each task."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"results={str(folder)!r} is a file; expected a folder, or a new name for one.")
    folder.mkdir(parents=True, exist_ok=True)
    folds = {id(task.fold): task.fold for task in tasks}
    digests = {number: _digest_fold(fold) for number, fold in folds.items()}
    files = []
    for task in tasks:
        what = [f"cell format {_CELL_FORMAT}", f"structrank {structrank.__version__}", digests[id(task.fold)]]
        what += [_describe((task.dataset, task.number, task.name))]
        # The learners of this package give the same model for any number of threads.
        what += [_describe(task.trainer, leave_out=("n_jobs", "verbose") if isinstance(task.trainer, Ranker) else ())]
        if isinstance(task.trainer, StructRankSVM):
            what += [_describe(task.choice)]
        key = hashlib.sha256("\n".join(what).encode()).hexdigest()
        dataset, trainer = map(as_file_name, (task.dataset, task.name))
        files.append(_CellFile(folder / f"{dataset}-fold{task.number + 1}-{trainer}-{key[:16]}.npz", key))
    return files


def as_file_name(text):
    """Give a text as a name that every file system takes; different texts may give the same one.

    Examples
    --------
    >>> as_file_name("MRR (map po)")
    'MRR-map-po'
    """
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:40]


def _digest_fold(fold):
    digest = hashlib.sha256()
    for part in (fold.train, fold.validation, fold.test):
        for values in () if part is None else (_validation.as_matrix(part.X), part.y, part.qid):
            _add_content(digest, values)
        digest.update(b"end of part")
    return digest.hexdigest()


def _add_content(digest, values):
    """Add type, shape and values of an array or sparse matrix to a digest."""
    if scipy.sparse.issparse(values):
        digest.update(str(values.shape).encode())
        for array in (values.data, values.indices, values.indptr):
            _add_content(digest, array)
        return
    values = np.asarray(values)
    digest.update(f"{values.dtype.str}{values.shape}".encode())
    step = max(1, 2**20 // max(1, values[:1].size))
    for start in range(0, values.shape[0], step):
        block = values[start : start + step]
        plain = block.dtype.kind in "biufcSU"
        digest.update(np.ascontiguousarray(block).tobytes() if plain else repr(block.tolist()).encode())


def _describe(value, leave_out=()):
    """Describe a value by its content, with the same text in every process."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return repr(value)
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, np.ndarray) or scipy.sparse.issparse(value):
        digest = hashlib.sha256()
        _add_content(digest, value)
        return f"array {digest.hexdigest()}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_describe, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_describe(key)}: {_describe(value[key])}' for key in sorted(value, key=_describe))}}}"
    if hasattr(value, "__code__"):
        code = value.__code__
        inside = (code.co_code, code.co_names, code.co_consts, value.__defaults__, value.__kwdefaults__)
        inside += tuple(cell.cell_contents for cell in value.__closure__ or ())
        return f"{value.__module__}.{value.__qualname__}{_describe(inside)}"
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if hasattr(value, "get_params"):
        settings = value.get_params(deep=False)
    elif hasattr(value, "__dict__"):
        settings = vars(value)
    else:  # perhaps with an address in memory: then it is new to every process, and its cells are trained again
        return repr(value)
    settings = {name: setting for name, setting in settings.items() if name not in leave_out}
    return f"{_describe(type(value))}({_describe(settings)})"
