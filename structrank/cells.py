"""Cells of a comparison: what one trainer made of one fold, and the files that keep finished ones."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import structrank
from structrank import _validation
from structrank._content import add_content, describe
from structrank._files import replace_file
from structrank.ranker import Ranker
from structrank.svm import StructRankSVM

# Enters the key of stored cells: raise it when what a cell means changes.
_CELL_FORMAT = 3


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
    vacuous : bool, default False
        Whether a structured SVM has learned nothing, or next to nothing, see `structrank.health.Health`.
    """

    dataset: str
    fold: int
    trainer: str
    C: float | None
    validation: float | None
    seconds: float
    notes: tuple
    scores: np.ndarray
    vacuous: bool = False

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
        what += [describe((task.dataset, task.number, task.name))]
        # The learners of this package give the same model for any number of threads.
        what += [describe(task.trainer, leave_out=("n_jobs", "verbose") if isinstance(task.trainer, Ranker) else ())]
        if isinstance(task.trainer, StructRankSVM):
            # A criterion that is given by name may be one of the user's own, with settings that the name does not tell.
            what += [describe(task.choice), describe(task.trainer._criteria())]
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
        if part is not None:
            for values in (_validation.as_matrix(part.X), part.y, () if part.qid is None else part.qid):
                add_content(digest, values)
            digest.update(
                describe(list(getattr(part.X, "columns", ()))).encode()
            )  # trainers may ask for columns by name
        digest.update(b"end of part")
    return digest.hexdigest()
