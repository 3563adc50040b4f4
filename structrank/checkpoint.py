"""Checkpoints: a training run that is killed goes on where it was, and ends with the same model, bit by bit.

A run depends on nothing but its data, its parameters and its state, which is the planes, the points visited and a few numbers.
These are written now and then to one file, in one step, in the format of model files.
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import numpy as np

from structrank import model_file

_KIND = "checkpoint"
_SECONDS = 20.0  # at least, between two writes


class Checkpoint:
    """The checkpoint of one training run.

    Parameters
    ----------
    folder : path-like
        Made where it does not exist; the checkpoint is the file ``training.checkpoint`` in it.
    parameters : dict
        What the model's course depends on; text or numbers.
    """

    def __init__(self, folder, parameters):
        self.path = Path(folder) / "training.checkpoint"
        self._parameters = parameters
        self._written = time.monotonic()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"checkpoint={os.fspath(folder)!r} cannot be used as a folder: {error.strerror}.") from None

    def resume(self, driver, risk):
        """Bring a driver to where the run was, if there is a checkpoint; one of another run is refused."""
        self._facts = {**self._parameters, **_facts(risk)}
        if not self.path.exists():
            return
        values = model_file.load_values(_KIND, self.path)
        kept = values["facts"]
        for name in {**self._facts, **kept}:
            if kept.get(name) != self._facts.get(name):
                raise ValueError(
                    f"{self.path} is the checkpoint of another run: its {name} is {kept.get(name)!r}, here it is "
                    f"{self._facts.get(name)!r}. Continue with what it was made for, name another folder, or delete it."
                )
        driver.restore(values["state"])

    def keep(self, driver, now=False):
        """Write the driver's state, if it is time to."""
        if now or time.monotonic() - self._written >= _SECONDS:
            model_file.save_values(_KIND, {"facts": self._facts, "state": driver.state()}, self.path)
            self._written = time.monotonic()


def _facts(risk):
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
