"""Checkpoints: if training is killed, the same call resumes it and ends with the same model, bit for bit.

Structured SVMs: a run depends only on its data, its parameters and the results of its passes over the data. So the results of
passes are kept in numbered files (`KeptPasses`); a resumed run repeats the QPs between passes.

Learners with rounds (epochs, trees, iterations): a round depends only on the data, the parameters and the state that the round
before has left, with the state of the random generator. So the last state is kept in one file (`KeptState`); a resumed run
continues with the next round. The callback is not called again for the rounds before.

Files are written at most every 20 seconds and at the end of training, have the format of model files, and are replaced
atomically. A folder that cannot be created is an error, before training. If a file cannot be written later, for example because
the disk is full, training goes on with a warning, and tries again at the next occasion.
"""

from __future__ import annotations

import copy
import hashlib
import os
import time
import warnings
from pathlib import Path

import numpy as np

import structrank
from structrank._support.content import describe
from structrank.models import files
from structrank.solvers import Plane

_KIND = "checkpoint"
_SECONDS = 20.0  # minimum time between two writes


class CheckpointFolder(os.PathLike):
    """A folder of checkpoints, which warns once, for all its subfolders together, if a file cannot be read or written.

    Parameters
    ----------
    path : path-like

    Examples
    --------
    >>> os.fspath(CheckpointFolder("run") / "trial-1")
    'run/trial-1'
    """

    def __init__(self, path):
        self._path, self._problems = Path(path), []

    @classmethod
    def create(cls, checkpoint):
        """Return the folder that a user named, created if missing; raise if it cannot be. A CheckpointFolder is unchanged."""
        if isinstance(checkpoint, cls):
            return checkpoint
        try:
            folder = cls(checkpoint)
            folder._path.mkdir(parents=True, exist_ok=True)
        except (TypeError, ValueError):  # no path, or one with a null byte
            raise ValueError(f"checkpoint={checkpoint!r} is not valid: expected the name of a folder.") from None
        except OSError as error:
            raise ValueError(f"checkpoint={os.fspath(checkpoint)!r} cannot be used as a folder: {error.strerror}.") from None
        return folder

    def __truediv__(self, name):
        inner = copy.copy(self)  # with the same list of problems
        inner._path = self._path / name
        return inner

    def __fspath__(self):
        return os.fspath(self._path)

    def warn(self, error):
        """Warn of the first OSError only."""
        if not self._problems:
            warnings.warn(
                f"Checkpoints in {os.fspath(self)} cannot be read or written: {error.strerror or error}. Training goes on; if "
                "it is killed, it cannot be resumed from there.",
                RuntimeWarning,
                stacklevel=2,
            )
        self._problems.append(error)


class Checkpoint:
    """The checkpoint of one training run.

    Parameters
    ----------
    folder : path-like
        Created if missing.
    parameters : dict
        Parameters that the model depends on, besides the data.
    name : str, default "training"
        The checkpoint is the file ``{name}.checkpoint`` in the folder.
    """

    def __init__(self, folder, parameters, name="training"):
        texts = {key: _text(value) for key, value in parameters.items()}
        self._parameters = {"version of structrank": structrank.__version__, **texts}
        self._written = time.monotonic()
        self._folder = CheckpointFolder.create(folder)
        self.path = Path(self._folder) / f"{name}.checkpoint"

    def of(self, name):
        """Return the checkpoint of a part of this run, in the same folder."""
        part = copy.copy(self)
        part.path, part._written = self.path.with_name(f"{self.path.stem}-{name}.checkpoint"), time.monotonic()
        return part

    def load(self, facts):
        """Return the content that `save` has written, None without a file; raise if parameters or facts differ."""
        try:
            values = files.load_values(_KIND, self.path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._folder.warn(error)
            return None
        except ValueError as error:
            raise ValueError(f"the checkpoint cannot be read: {error} Delete it to train from the start.") from None
        kept, here = values.get("facts", {}), {**self._parameters, **facts}
        for name in {**here, **kept}:
            if kept.get(name) != here.get(name):
                raise ValueError(
                    f"{self.path} is the checkpoint of another run: its {name} is {kept.get(name)!r}, here it is "
                    f"{here.get(name)!r}. Use the same {name}, name another folder, or delete the file."
                )
        return values["content"]

    def save(self, facts, content):
        """Write a dict of values; return whether that succeeded, and warn if not, as training is worth more."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)  # another process may have finished and removed it
            files.save_values(_KIND, {"facts": {**self._parameters, **facts}, "content": content}, self.path)
        except OSError as error:
            self._folder.warn(error)
            return False
        finally:
            self._written = time.monotonic()
        return True

    def is_due(self):
        """Return whether it is time to write."""
        return time.monotonic() - self._written >= _SECONDS


class KeptState:
    """The state of a training loop, kept in one file.

    Parameters
    ----------
    folder : path-like or None
        None keeps nothing.
    learner : estimator
        Its class and parameters must be the same when the loop resumes, except for `n_jobs` and `verbose`.
    data : dict
        Everything else that the model depends on, by name: arrays, or values that `describe` describes by their content.

    Attributes
    ----------
    state : dict or None
        The state to resume from, None at the start.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from structrank.svm import StructRankSVM
    >>> with TemporaryDirectory() as folder:
    ...     KeptState(folder, StructRankSVM(), {"X": np.eye(2)}).finish(lambda: {"w": np.ones(2), "epoch": 7})
    ...     KeptState(folder, StructRankSVM(n_jobs=2), {"X": np.eye(2)}).state
    {'w': array([1., 1.]), 'epoch': 7}
    """

    def __init__(self, folder, learner, data):
        self.state = self._checkpoint = None
        if folder is None:
            return
        settings = {name: value for name, value in learner.get_params().items() if name not in ("n_jobs", "verbose")}
        self._checkpoint = Checkpoint(folder, {"learner": type(learner).__name__, **settings})
        self._facts = {
            f"digest of {name}": hashlib.sha256(describe(value).encode()).hexdigest()[:16] for name, value in data.items()
        }
        self.state = self._checkpoint.load(self._facts)

    def check(self, part, like):
        """Raise unless the names and arrays in a part of the state have the forms of others: compiled code relies on them."""
        if _forms(part) != _forms(like):
            raise ValueError(
                f"{self._checkpoint.path} does not fit this run: it has other names, or arrays of other shapes. Delete it to "
                "train from the start."
            )

    def update(self, state):
        """Write what ``state()`` returns, a dict of arrays and values, if it is time to write."""
        if self._checkpoint is not None and self._checkpoint.is_due():
            self.finish(state)

    def finish(self, state):
        """Write what ``state()`` returns."""
        if self._checkpoint is not None:
            self._checkpoint.save(self._facts, state())


class KeptPasses:
    """A risk whose passes are kept in numbered files, and read from there when the same pass is requested again.

    A resumed run requests the same passes in the same order, so one file at a time is in memory.

    Parameters
    ----------
    risk : Risk
    checkpoint : Checkpoint
        File names are its name and a number.
    """

    def __init__(self, risk, checkpoint):
        self._risk, self._checkpoint, self._facts = risk, checkpoint, _describe(risk)
        self._fresh = {}
        self._number = 0
        self._next_file()

    def __getattr__(self, name):
        return getattr(self._risk, name)

    def plane(self, w, kind="risk"):
        """Evaluate at w; see `structrank.training.risk.Risk.plane`."""
        key = f"{kind} {hashlib.sha256(w.tobytes()).hexdigest()}"
        while self._read is not None and key not in self._read:
            self._next_file()
        if self._read is not None:
            return Plane(**self._read[key])
        plane = self._risk.plane(w, kind)
        self._fresh[key] = dict(vars(plane))
        if self._file.is_due():
            self.write()
        return plane

    def write(self):
        """Write the passes that are not yet in a file."""
        if self._fresh and self._file.save(self._facts, self._fresh):
            self._fresh = {}
            self._next_file()

    def _next_file(self):
        """Open the next file, to read or to write."""
        self._number += 1
        self._file = self._checkpoint.of(str(self._number))
        self._read = self._file.load(self._facts)


def _forms(value):
    """Return a nested value with each array replaced by its type and shape; None for lists without arrays, of any length."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape
    if isinstance(value, dict):
        return {key: _forms(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        forms = [_forms(item) for item in value]
        return forms if any(form is not None for form in forms) else None
    return None


def _text(value):
    """Return the repr of a parameter, or a description of its content where the repr is no complete description.

    The repr of a function, or of an object that holds one, differs between processes; that of a long array is shortened.
    """
    text = repr(value)
    return describe(value) if " at 0x" in text or "..." in text else text


def _describe(risk):
    """Return the sizes of the data, and a digest of the planes at a random w, to which every number contributes."""
    w = np.random.default_rng(0).standard_normal(risk.n_features)
    plane = risk.plane(w)
    digest = hashlib.sha256()
    for array in (plane.slope, plane.offset, plane.value, risk.weights):
        digest.update(np.ascontiguousarray(array).tobytes())
    return {
        "number of features": risk.n_features,
        "number of queries": risk.n_queries,
        "number of documents": risk.n_docs,
        "digest of the data": digest.hexdigest()[:16],
    }
