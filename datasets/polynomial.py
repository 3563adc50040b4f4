"""Ranking data graded by a random polynomial, without noise."""

from collections.abc import Sequence
from itertools import pairwise
from numbers import Real

import numpy as np

from structrank._support.checks import check_number
from structrank._support.requirements import require
from structrank.datasets.containers import Dataset, Fold
from structrank.datasets.synthetic import _split_bounds

_N_TERMS = 10


def make_polynomial_ranking(
    n_queries: int = 200,
    n_docs: int = 50,
    n_features: int = 50,
    grade_shares: Sequence[float] = (0.52, 0.32, 0.13, 0.02, 0.01),
    split: tuple[float, float, float] = (0.5, 0.25, 0.25),
    random_state: int | np.random.Generator | None = None,
) -> Fold:
    r"""Generate queries whose documents are graded by a random cubic polynomial of their features.

    Document i has standard normal features x_i and the utility ::

        u_i = sum_t (1 + a_t.x_i / sqrt(3)) (1 + b_t.x_i / sqrt(3)) (1 + c_t.x_i / sqrt(3)) e_t,     t = 1 .. 10

    with random directions :math:`|a_t| = |b_t| = |c_t| = 1` and standard normal e_t, the same for all queries. The constants
    are such that the linear, quadratic and cubic parts hold about 73, 24 and 3 % of the variance, as they do for products of
    three features that are uniform on [0, 1]: a linear ranker performs well, and a network can perform better. Labels follow
    from u by thresholds that are the same for all queries, without noise.

    Data of this kind, without the variance that stems from the quality of features and labels, are used by Burges et al.
    (ICML 2005), Yue and Burges (MSR-TR-2007-115) and Donmez, Svore and Burges (SIGIR 2009): 50 documents a query, 50 or 300
    features, five grades with a distribution as in real data, 10000 training queries.

    Parameters
    ----------
    n_queries, n_docs, n_features, split, random_state
        As for `make_ranking`, except that `n_docs` is one number.
    grade_shares : sequence of float, default=(0.52, 0.32, 0.13, 0.02, 0.01)
        Shares of the documents with the labels 0, 1, 2, ...; positive, with sum 1. The default is that of a web search engine.

    Returns
    -------
    Fold
        Parts with queries numbered 0 .. n_queries - 1 throughout.

    Examples
    --------
    >>> from structrank.datasets import make_polynomial_ranking
    >>> fold = make_polynomial_ranking(n_queries=40, n_docs=20, n_features=5, random_state=0)
    >>> fold.train
    Dataset(400 documents, 20 queries, 5 features, labels 0: 223, 1: 115, 2: 49, 3: 8, 4: 5)
    """
    for name, count, least in (("n_queries", n_queries, 3), ("n_docs", n_docs, 2), ("n_features", n_features, 1)):
        check_number(name, count, at_least=least, integer=True)
    valid = np.ndim(grade_shares) == 1 and len(grade_shares) >= 2
    valid = valid and all(isinstance(share, Real) and share > 0 for share in grade_shares)
    valid = valid and bool(np.isclose(sum(grade_shares), 1.0))
    require(valid, "grade_shares", grade_shares, "at least two positive shares, of the labels 0, 1, ..., that sum to 1")
    bounds = _split_bounds(n_queries, split)

    rng = np.random.default_rng(random_state)
    directions = rng.standard_normal((3, _N_TERMS, n_features))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    factors = rng.standard_normal(_N_TERMS)
    X = rng.standard_normal((n_queries * n_docs, n_features))
    utility = np.prod([1 + X @ direction.T / np.sqrt(3) for direction in directions], axis=0) @ factors
    order = np.argsort(utility, kind="stable")
    ends = np.rint(np.cumsum(grade_shares) * len(X)).astype(int)
    y = np.empty(len(X), dtype=np.int64)
    y[order] = np.searchsorted(ends[:-1], np.arange(len(X)), side="right")
    qid = np.repeat(np.arange(n_queries), n_docs)
    rows = [slice(first * n_docs, end * n_docs) for first, end in pairwise(bounds)]
    return Fold(*(Dataset(X[part], y[part], qid[part]) for part in rows))
