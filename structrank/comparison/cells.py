"""Cells of a comparison: the result of one trainer on one fold, and the files that store finished cells."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import structrank
from structrank._support import checks
from structrank._support.content import add_content, describe
from structrank.models import files
from structrank.models.ranker import Ranker
from structrank.training.checkpoint import CheckpointFolder

# Part of the key of stored cells; raised when the meaning of a cell changes.
_CELL_FORMAT = 6


@dataclass(frozen=True, eq=False)
class Cell:
    """Result of one trainer on one fold."""

    dataset: str
    fold: int  # from 0
    trainer: str
    C: float | None  # None for trainers without a path of C
    validation: float | None  # mean score of C over validation queries and inner folds, if there was anything to choose
    seconds: float  # of training, with the choice of C; for a resumed cell, since it was resumed
    notes: tuple  # the `notes_` of the model, and warnings of training
    scores: np.ndarray  # (n_test_docs,), in the row order of the test part
    vacuous: bool = False  # whether the bound of a structured SVM is, see `structrank.training.health`

    def record(self):
        """Return all fields but the scores, by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "scores"}


@dataclass(frozen=True)
class _CellFile:
    """File of a finished cell, and the fingerprint of all that it depends on."""

    path: Path
    key: str

    @property
    def begun(self):
        """Folder for checkpoints of the cell while it is unfinished."""
        return CheckpointFolder(self.path.with_suffix(""))

    def load(self):
        """Return the cell, or None if the file is missing or damaged."""
        try:
            kept = files.load_values("cell", self.path)
            return Cell(**kept["cell"]) if kept["key"] == self.key else None
        except Exception:  # a file can be damaged in many ways; the cell is computed again in each
            return None

    def save(self, cell, model):
        """Write the model, if it can be saved, then the cell.

        Each is written in one step: a reader sees all of it or nothing, whenever the writer is killed.
        """
        if isinstance(model, Ranker):
            with contextlib.suppress(ValueError):  # parameters such as functions are not saved
                model.save(self.path.with_suffix(".structrank"))
        files.save_values("cell", {"cell": vars(cell), "key": self.key}, self.path)
        shutil.rmtree(self.begun, ignore_errors=True)


def cell_files(tasks, folder):
    """Create the folder; return the file of each task."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"results={str(folder)!r} is a file; expected a folder, or a new name for one.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"results={str(folder)!r} cannot be used as a folder: {error.strerror}.") from None
    folds = {id(task.fold): task.fold for task in tasks}
    digests = {number: _digest_fold(fold) for number, fold in folds.items()}
    found = []
    for task in tasks:
        what = [f"cell format {_CELL_FORMAT}", f"structrank {structrank.__version__}", digests[id(task.fold)]]
        what += [describe((task.dataset, task.number, task.trainer.name)), task.trainer.fingerprint()]
        if task.trainer.chooses_C:
            what += [describe(task.choice)]
        key = hashlib.sha256("\n".join(what).encode()).hexdigest()
        dataset, trainer = map(as_file_name, (task.dataset, task.trainer.name))
        found.append(_CellFile(folder / f"{dataset}-fold{task.number + 1}-{trainer}-{key[:16]}.cell", key))
    return found


def as_file_name(text):
    """Return a text as a file name valid on every file system; different texts may give the same name.

    Examples
    --------
    >>> as_file_name("MRR (phi_po)")
    'MRR-phi-po'
    """
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:40]


def _digest_fold(fold):
    digest = hashlib.sha256()
    for part in (fold.train, fold.validation, fold.test):
        if part is not None:
            for values in (checks.as_matrix(part.X), part.y, () if part.qid is None else part.qid):
                add_content(digest, values)
            digest.update(describe(list(getattr(part.X, "columns", ()))).encode())  # trainers may select columns by name
        digest.update(b"end of part")
    return digest.hexdigest()
