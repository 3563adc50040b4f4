"""Sources of the shards of a training set: arrays, or files and parts of arrays that are read when a pass needs them."""

from __future__ import annotations

from structrank._support import checks
from structrank.datasets.shards import Shards
from structrank.training.data import RankingData


class ShardSource:
    """Source of one shard; no data are held between passes.

    Parameters
    ----------
    shard : object
        With `X`, `y`, `qid`, `sample_weight` and `name`.

    Examples
    --------
    >>> import numpy as np
    >>> from structrank import datasets
    >>> shards = datasets.cut_shards(np.eye(4), [0, 1, 0, 1], qid=[7, 7, 8, 8], docs_per_shard=2)
    >>> ShardSource(shards[1]).load().grouping.ids.tolist()
    [8]
    """

    def __init__(self, shard):
        self.shard = shard

    def load(self):
        """Read and check the shard, except for nan and infinity; return a `RankingData`."""
        try:
            return RankingData(
                self.shard.X,
                self.shard.y,
                self.shard.qid,
                self.shard.sample_weight,
                is_part=True,
                name=f"{self.shard.name}: X",
                check_finite=False,
            )
        except ValueError as error:
            raise ValueError(f"{self.shard.name}: {error}") from None

    def matrix(self):
        """Return the matrix, read again."""
        return checks.as_matrix(self.shard.X, check_indices=False)  # `load` has checked them


def is_dask(X):
    """Return whether X is a dask collection of partitions."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "npartitions")


def check_alone(X, y, qid, sample_weight):
    """Raise if labels, ids or weights are passed along with shards, which have their own."""
    given = [name for name, value in (("y", y), ("qid", qid), ("sample_weight", sample_weight)) if value is not None]
    if given:
        raise ValueError(f"{', '.join(given)} given, but X is {type(X).__name__}, which has its own; do not pass them.")


def sources_of(X, y=None, qid=None, sample_weight=None):
    """Return the sources of a training set for `structrank.training.risk.Risk`.

    The pass at w = 0 checks that X is finite, see `structrank.training.shard.Shard.planes`.

    Parameters
    ----------
    X : Shards, RankingData, array-like or sparse matrix of shape (n_docs, n_features)
    y, qid, sample_weight : array-like of shape (n_docs,), default None
        None if X is `Shards` or `RankingData`.

    Returns
    -------
    list
        One source for each shard, or one `RankingData` for arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from structrank import datasets
    >>> shards = datasets.cut_shards(np.eye(4), [0, 1, 0, 1], qid=[7, 7, 8, 8], docs_per_shard=2)
    >>> len(sources_of(shards)), len(sources_of(np.eye(2), [0, 1], qid=0))
    (2, 1)
    """
    if not isinstance(X, (Shards, RankingData)):
        return [RankingData(X, y, qid, sample_weight, check_finite=False)]
    check_alone(X, y, qid, sample_weight)
    if isinstance(X, RankingData):
        return [X]
    checks.check_column_names(checks.column_names(X))
    return [ShardSource(shard) for shard in X]
