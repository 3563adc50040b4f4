"""Benchmark data: synthetic data in three shapes, the embedded digits, and a user's LETOR folder."""

from __future__ import annotations

from dataclasses import dataclass

from structrank import datasets


@dataclass(frozen=True)
class Sizes:
    """Sizes of the benchmarks.

    Attributes
    ----------
    shapes : tuple of (queries, documents each, features)
        Shapes of the training sets; the last is the largest.
    Cs : tuple of float
        Values of C to train for.
    path : tuple of float
        Values of C of one path.
    peer_Cs : tuple of float
        Values of C for the comparison with other learners.
    n_trees : int
        Trees, or rounds, of the boosting libraries.
    n_pairs : tuple of int
        Pairs, at most, for the peer that learns from pairs of documents.
    repeats : int
    """

    shapes: tuple
    Cs: tuple
    path: tuple
    peer_Cs: tuple
    n_trees: int
    n_pairs: tuple
    repeats: int


FULL = Sizes(
    ((800, 20, 46), (50, 1000, 44), (3000, 120, 136)),
    (0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0),
    (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0),
    (25.0, 250.0),
    n_trees=100,
    n_pairs=(100_000, 1_000_000),
    repeats=3,
)
# Toy sizes for a smoke test.
SMOKE = Sizes(((20, 8, 5), (6, 20, 4), (30, 10, 6)), (0.1, 10.0), (0.1, 1.0), (25.0,), n_trees=3, n_pairs=(200,), repeats=1)


def made(shape):
    """Return a synthetic fold whose training part has the shape, and a quarter as many test queries."""
    n_queries, n_docs, n_features = shape
    n_test = max(n_queries // 4, 2)
    total = n_queries + 1 + n_test
    split = (n_queries / total, 1 / total, n_test / total)
    return datasets.make_ranking(total, n_docs, n_features, split=split, random_state=0)


def named(sizes, folder=None):
    """Yield a name and a function that makes the fold for each data set, so that one at a time is in memory."""
    for shape in sizes.shapes:
        yield " x ".join(str(n) for n in shape), lambda shape=shape: made(shape)
    yield "digits", datasets.load_digits_retrieval
    if folder is not None:
        yield "folder", lambda: datasets.load_letor_folds(folder)[0]
