"""Handwritten digits as a retrieval task: real data that needs no download."""

from numbers import Integral

import numpy as np

from structrank._support.checks import check_number
from structrank._support.requirements import require
from structrank.datasets.containers import Dataset, Fold

_N_IMAGES = 1797
_POOL = _N_IMAGES // 3


def load_digits_retrieval(
    n_queries: tuple[int, int, int] = (60, 40, 60), n_docs: int = 60, random_state: int | np.random.Generator | None = 0
) -> Fold:
    """Query by example on scikit-learn's bundled handwritten digits.

    A query is one of the 1797 images of 8 x 8 pixels, its documents are other images, and images of
    the same digit are relevant. With pixels p in [0, 1], feature k of document d for query q is ::

        x_k = |p_k(q) - p_k(d)|

    so a good linear ranker has mostly negative weights: it learns which pixels must agree. The task is far from solved by a
    linear model: logistic regression on the rows has a test MAP of about 0.7 and an MRR of about 0.9.

    The images are divided at random into three pools of 599, for train, validation and test: no image occurs,
    as query or as document, in more than one part. Each query draws its documents from its pool
    at random, among them at least one relevant and one irrelevant; about 10 % are relevant.

    Parameters
    ----------
    n_queries : tuple of three int, default=(60, 40, 60)
        Queries for train, validation and test, each from 1 to 599.
    n_docs : int, default=60
        Documents of each query, from 2 to 598.
    random_state : int, numpy.random.Generator or None, default=0
        Seed of the pools, queries and documents.

    Returns
    -------
    Fold
        Parts with X of shape (n_queries * n_docs, 64) and y in {0, 1}; `qid` and `docid` are the numbers of
        the images in ``sklearn.datasets.load_digits()``.

    Examples
    --------
    >>> from structrank.datasets import load_digits_retrieval
    >>> fold = load_digits_retrieval()
    >>> fold.test
    Dataset(3600 documents, 60 queries, 64 features, labels 0: 3226, 1: 374)
    """
    valid = np.shape(n_queries) == (3,) and all(isinstance(n, Integral) and 1 <= n <= _POOL for n in n_queries)
    require(valid, "n_queries", n_queries, f"three integers from 1 to {_POOL} (train, validation, test)")
    check_number("n_docs", n_docs, at_least=2, at_most=_POOL - 1, integer=True)

    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    pixels /= 16.0
    rng = np.random.default_rng(random_state)
    pools = rng.permutation(_N_IMAGES).reshape(3, _POOL)
    sizes = zip(pools, n_queries, strict=True)
    return Fold(*(_part(pixels, digits, pool, size, n_docs, rng) for pool, size in sizes))


def _part(pixels, digits, pool, n_queries, n_docs, rng):
    queries = rng.choice(pool, size=n_queries, replace=False)
    docs = np.concatenate([_draw_documents(digits, pool, query, n_docs, rng) for query in queries])
    qid = np.repeat(queries, n_docs)
    return Dataset(X=np.abs(pixels[qid] - pixels[docs]), y=(digits[qid] == digits[docs]).astype(np.int64), qid=qid, docid=docs)


def _draw_documents(digits, pool, query, n_docs, rng):
    others = rng.permutation(pool[pool != query])
    same = digits[others] == digits[query]
    one_of_each = [np.argmax(same), np.argmin(same)]
    docs = np.concatenate([others[one_of_each], np.delete(others, one_of_each)[: n_docs - 2]])
    return rng.permutation(docs)  # the order of the rows must not reveal the labels
