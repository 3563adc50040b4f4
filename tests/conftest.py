"""Data that several test files train on."""

import importlib.util
import os
import pathlib
import signal
import sys

import numpy as np
import pytest

from structrank import criteria, datasets, metrics

os.environ["MPLBACKEND"] = "Agg"  # before matplotlib is imported: figures need no screen
# A shell starts programs in the background with Ctrl-C ignored, and tests send it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def fold():
    """A small ranking problem with short lists, on which every criterion learns something."""
    return datasets.make_ranking(n_queries=100, n_docs=8, n_features=6, noise=0.5, random_state=0)


@pytest.fixture(scope="session")
def train(fold):
    return fold.train


@pytest.fixture(scope="session")
def assert_same_optimum():
    """Return a check that two models can have the same optimum, which is as much as their tolerances promise.

    The objective is strongly convex: 1/2 |w - w*|^2 is at most the gap. So the intervals of the optimum overlap, and the
    weights differ by at most sqrt(2 gap) of the one plus that of the other, in the scale of training.
    """

    def check(one, other):
        ours, theirs = one.certificate_, other.certificate_
        rounding = 1e-12 * ours.primal
        assert max(ours.dual, theirs.dual) <= min(ours.primal, theirs.primal) + rounding
        weights = [model.coef_ * (1.0 if model.scale_ is None else model.scale_) for model in (one, other)]
        most = sum(np.sqrt(2.0 * (certificate.gap + rounding)) for certificate in (ours, theirs))
        assert np.linalg.norm(weights[0] - weights[1]) <= most

    return check


@pytest.fixture(scope="session")
def backend():
    """Return the module that builds wheels."""
    path = pathlib.Path(__file__).parent.parent / "build_backend" / "backend.py"
    spec = importlib.util.spec_from_file_location("backend", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(autouse=True)
def registries_are_restored():
    """Remove the names that a test registered."""
    registries = (criteria.CRITERIA, criteria._MEASURE_OF, metrics.MEASURES)
    earlier = [dict(registry) for registry in registries]
    yield
    for registry, content in zip(registries, earlier, strict=True):
        registry.clear()
        registry.update(content)


@pytest.fixture(autouse=True)
def figures_are_closed():
    """Close the figures that a test opened."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
