"""Checkpoints: a training run that is killed goes on where it was, and ends with the same model, bit by bit.

A run depends on nothing but its data, its parameters and its state. Of a run of cutting planes the state is kept: the planes,
the points visited and a few numbers, written now and then to one file. The ramp bound makes many short runs of a few planes
each; of these the passes over the data are kept, and the rest is done again. All files have the format of model files, and
are written in one step.
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import numpy as np

import structrank
from structrank import model_file
from structrank.solvers.cutting_plane import Plane

_KIND = "checkpoint"
_SECONDS = 20.0  # at least, between two writes


class Checkpoint:
    """The checkpoint of one training run.

    Parameters
    ----------
    folder : path-like
        Made where it does not exist.
    parameters : dict
        What the model's course depends on; text or numbers.
    name : str, default "training"
        The checkpoint is the file ``{name}.checkpoint`` in the folder.
    """

    def __init__(self, folder, parameters, name="training"):
        self._parameters = {"version of structrank": structrank.__version__, **parameters}
        self._written = time.monotonic()
        try:
            self.path = Path(folder) / f"{name}.checkpoint"
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except TypeError:
            raise ValueError(f"checkpoint={folder!r} is not valid: expected the name of a folder.") from None
        except OSError as error:
            raise ValueError(f"checkpoint={os.fspath(folder)!r} cannot be used as a folder: {error.strerror}.") from None

    def of(self, name):
        """Give the checkpoint of a run that this one needs, in the same folder."""
        return Checkpoint(self.path.parent, self._parameters, f"{self.path.stem}-{name}")

    def load(self, facts):
        """Give what `save` has written, if there is a file; one of other parameters or facts is refused."""
        if not self.path.exists():
            return None
        try:
            values = model_file.load_values(_KIND, self.path)
        except ValueError as error:
            raise ValueError(f"the checkpoint cannot be read: {error} Delete it to train from the start.") from None
        kept, here = values.get("facts", {}), {**self._parameters, **facts}
        for name in {**here, **kept}:
            if kept.get(name) != here.get(name):
                raise ValueError(
                    f"{self.path} is the checkpoint of another run: its {name} is {kept.get(name)!r}, here it is "
                    f"{here.get(name)!r}. Continue with what it was made for, name another folder, or delete it."
                )
        return values["content"]

    def save(self, facts, content):
        """Write a dict of values."""
        self.path.parent.mkdir(parents=True, exist_ok=True)  # another process may be through with it, and have cleaned up
        model_file.save_values(_KIND, {"facts": {**self._parameters, **facts}, "content": content}, self.path)
        self._written = time.monotonic()

    def is_due(self):
        """Tell whether it is time to write."""
        return time.monotonic() - self._written >= _SECONDS


class KeptPasses:
    """A risk that keeps what passes have found in numbered files, and reads it there when asked for the same again.

    Training that is done again asks for the same in the same order, so that one file at a time is in memory.

    Parameters
    ----------
    risk : Risk
    checkpoint : Checkpoint
        Files have numbers after its name.
    facts : dict
        Of the data; files of others are refused.
    """

    def __init__(self, risk, checkpoint, facts):
        self.weights, self.n_features = risk.weights, risk.n_features
        self._risk, self._checkpoint, self._facts = risk, checkpoint, facts
        self._fresh = {}
        self._number = 0
        self._go_on()

    def plane(self, w):
        """Evaluate at w; see `structrank.risk.Risk.plane`."""
        return self._kept(self._risk.plane, w)

    def prediction(self, w):
        """See `structrank.risk.Risk.prediction`."""
        return self._kept(self._risk.prediction, w)

    def write(self):
        """Write what is not yet in a file."""
        if self._fresh:
            self._file.save(self._facts, self._fresh)
            self._fresh = {}
            self._go_on()

    def _kept(self, evaluate, w):
        key = f"{evaluate.__name__} {hashlib.sha256(w.tobytes()).hexdigest()}"
        while self._read is not None and key not in self._read:
            self._go_on()
        if self._read is not None:
            return Plane(**self._read[key])
        plane = evaluate(w)
        self._fresh[key] = dict(vars(plane))
        if self._file.is_due():
            self.write()
        return plane

    def _go_on(self):
        """Take the next file, to read or to write."""
        self._number += 1
        self._file = self._checkpoint.of(str(self._number))
        self._read = self._file.load(self._facts)


def describe_data(risk):
    """Say what the data are: their sizes, and a digest of the planes at some w, in which every number has a part."""
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
