"""Synthetic ranking data."""

from itertools import pairwise
from typing import Any

import numpy as np

from structrank._support.checks import check_number
from structrank._support.requirements import require
from structrank.datasets.containers import Dataset, Fold


def make_ranking(
    n_queries: int = 100,
    n_docs: int | tuple[int, int] = 20,
    n_features: int = 20,
    n_grades: int = 2,
    noise: float = 1.0,
    relevant_share: float = 0.2,
    split: tuple[float, float, float] = (0.6, 0.2, 0.2),
    random_state: int | np.random.Generator | None = None,
) -> Fold:
    """Generate queries whose documents are graded by a hidden linear utility plus noise.

    Document i of query q has the features and the utility ::

        x_qi = o_q + z_qi,     u_qi = w.x_qi + noise * e_qi,     o_q, z_qi, e_qi standard normal, |w| = 1

    with one hidden w. The offset o_q shifts all documents of a query equally, as query-dependent features do in
    real data, so that only comparisons within a query are meaningful.

    The n_rel documents of largest u are relevant, n_rel ~ Binomial(n_docs, relevant_share), clipped so that
    every query has a relevant and an irrelevant document. They share the grades 1 .. n_grades - 1 equally,
    the best having the highest; a remainder goes to the lower grades.

    Within a query w.x has standard deviation 1, so `noise` is the ratio of noise to signal; at 0 a linear
    ranker can be perfect. The noise changes only the labels: one seed generates the same X and w for any noise.

    Parameters
    ----------
    n_queries : int, default=100
        Queries in all, at least 3.
    n_docs : int or (low, high), default=20
        Documents of each query, at least 2; a pair draws the number uniformly, both ends included.
    n_features : int, default=20
        Features, at least 1.
    n_grades : int, default=2
        Labels are 0 .. n_grades - 1, at least 2.
    noise : float, default=1.0
        Standard deviation of the noise, at least 0.
    relevant_share : float, default=0.2
        Expected share of documents with a label of at least 1, between 0 and 1.
    split : tuple of three float, default=(0.6, 0.2, 0.2)
        Shares of the queries for train, validation and test.
    random_state : int, numpy.random.Generator or None, default=None
        Seed.

    Returns
    -------
    Fold
        Parts with queries numbered 0 .. n_queries - 1 throughout, X of shape (n_docs in all, n_features).

    Examples
    --------
    >>> from structrank.datasets import make_ranking
    >>> fold = make_ranking(n_queries=50, n_docs=(5, 15), n_features=4, n_grades=3, random_state=0)
    >>> fold.validation.X.shape[1], sorted(set(fold.train.y.tolist()))
    (4, [0, 1, 2])
    """
    size_range: Any = n_docs if np.shape(n_docs) == (2,) else (n_docs, n_docs)
    low, high = size_range
    for name, count, least in (("n_queries", n_queries, 3), ("n_features", n_features, 1), ("n_grades", n_grades, 2)):
        check_number(name, count, at_least=least, integer=True)
    check_number("n_docs", low, at_least=2, integer=True)
    check_number("n_docs", high, at_least=low, integer=True)
    check_number("noise", noise, at_least=0)
    check_number("relevant_share", relevant_share, above=0, below=1)
    bounds = _split_bounds(n_queries, split)

    rng = np.random.default_rng(random_state)
    sizes = rng.integers(low, high, size=n_queries, endpoint=True)
    n_relevant = np.clip(rng.binomial(sizes, relevant_share), 1, sizes - 1)
    qid = np.repeat(np.arange(n_queries), sizes)
    w = rng.standard_normal(n_features)
    w /= np.linalg.norm(w)
    X = rng.standard_normal((n_queries, n_features))[qid]
    X += rng.standard_normal(X.shape)
    utility = X @ w + noise * rng.standard_normal(len(X))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    y = _grade(utility, qid, starts[:-1], n_relevant, n_grades)

    rows = [slice(starts[first], starts[end]) for first, end in pairwise(bounds)]
    return Fold(*(Dataset(X[part], y[part], qid[part]) for part in rows))


def _grade(utility, qid, starts, n_relevant, n_grades):
    """Return labels by rank within the query: the n_relevant best share the grades from n_grades - 1 down to 1."""
    order = np.lexsort((-utility, qid))
    rank = np.arange(len(utility)) - starts[qid]
    behind = n_relevant[qid] - 1 - rank  # relevant documents ranked lower; negative for the irrelevant
    grade = np.where(behind >= 0, 1 + behind * (n_grades - 1) // n_relevant[qid], 0)
    y = np.empty_like(grade)
    y[order] = grade
    return y


def _split_bounds(n_queries, split):
    """Return the first query of each part, and the end."""
    shares = np.asarray(split, dtype=float)
    valid = shares.shape == (3,) and (shares > 0).all() and np.isclose(shares.sum(), 1.0)
    require(valid, "split", split, "three positive shares (train, validation, test) that sum to 1")
    bounds = np.rint(np.cumsum([0.0, *shares]) * n_queries).astype(int)
    valid = (np.diff(bounds) > 0).all()
    require(valid, "split", split, f"at least one of the {n_queries} queries in each part")
    return bounds
