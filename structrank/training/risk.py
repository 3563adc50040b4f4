"""R(w) over a data set: the averaged loss-augmented maximum, as the cutting-plane driver sees it."""

from __future__ import annotations

from itertools import repeat
from operator import attrgetter

import numpy as np

from structrank._support import checks
from structrank.solvers import Plane
from structrank.training.shard import Facts, Shard

# More groups of queries mean fewer passes and larger QPs. A long pass is worth a larger QP, so there is one group for this many
# entries of X, within limits ...
_ENTRIES_PER_GROUP, _LEAST_GROUPS, _MOST_GROUPS = 16_000, 128, 512
# ... but planes are dense: if X is sparse and wide, the planes of a pass must have fewer entries than X by this factor, within
# these limits.
_PLANES_SMALLER_BY, _FEW_PLANE_ENTRIES, _MOST_PLANE_ENTRIES = 16, 2**15, 2**22


class Risk:
    r"""The averaged loss-augmented maximum over all queries with relevant and irrelevant documents.

    .. math:: R(w) = \sum_q u_q \max_y [w \cdot \phi(x_q, y) - w \cdot \phi(x_q, y^*_q) + \Delta(y^*_q, y)],
              \quad \sum_q u_q = 1

    With several criteria: the largest of their maxima for each query (shared slacks), or the weighted sum of their
    risks (separate slacks).

    Parameters
    ----------
    executor : InProcess or another executor
        Where the shards are: one with the whole data set, or many that are read one after another, or on a cluster; see
        `structrank.training.executor`.
    loss : StructuredLoss
    formulation : {"auto", "grouped", "one-slack", "n-slack"}
        "n-slack" has one slack per query (and per criterion if slacks are separate), the others one per group of
        neighbouring queries: 128 to 512 groups by the size of X, fewer if X is sparse and wide.

    Attributes
    ----------
    loss : StructuredLoss
    weights : (n_slacks,) array
    group_weights : (n_groups,) array
        Weights of the groups of queries, which are the slacks unless parts have their own.
    n_features, n_queries, n_docs : int
        Queries with a training signal (relevant and irrelevant documents, or different labels if graded, and a weight
        above 0), and their documents.
    median_length : int
        Median number of documents of these queries.
    has_grades : bool
        Whether there are more than two different labels.
    scale : float or (n_features,) array
        What the columns of X are divided by, see `structrank.training.scaling.ScaledRisk`.
    deviations : (n_features,) array
        Standard deviation of each column of X within queries, over a small sample.
    """

    scale = 1.0

    def __init__(self, executor, loss, formulation="auto"):
        self.loss, self.formulation = loss, formulation
        self._executor = executor
        opened = executor.map(Shard, executor.sources, repeat(loss), keep=True)
        each = Facts(*zip(*executor.map(attrgetter("facts"), opened), strict=True))
        self._check(each)
        self.n_features = each.n_features[0]
        lengths = np.concatenate(each.lengths)
        self.n_queries, self.n_docs = lengths.shape[0], int(lengths.sum())
        self.median_length = int(np.median(lengths))
        self.has_grades = len(set().union(*each.some_labels)) > 2
        n_queries = np.fromiter(map(len, each.lengths), np.int64)
        self.deviations = np.sqrt(np.average(each.sampled_variances, axis=0, weights=n_queries / self.n_queries))
        own_slacks = formulation == "n-slack" and len(loss.criteria) > 1 and not loss.shared
        total, longest = float(np.sum(each.total_weight)), int(lengths.max())
        plan = repeat(total), repeat(longest), self._group_counts(n_queries, sum(each.n_entries)), repeat(own_slacks)
        self._shards = executor.map(Shard.prepare, opened, *plan, keep=True)
        self.group_weights = np.concatenate(executor.map(attrgetter("weights"), self._shards))
        part_weights = np.array(loss.weights) if own_slacks else np.ones(1)
        self.weights = np.outer(part_weights, self.group_weights).reshape(-1)

    def _check(self, each):
        widths = sorted(set(each.n_features))
        if len(widths) > 1:
            raise ValueError(f"the shards have {widths} features; expected the same number in all.")
        checks.check_some_weight(any(each.any_weight))
        if not any(map(len, each.lengths)):
            relevant_from = self.loss.relevant_from
            if relevant_from is None:
                wanted = "different labels"
            else:
                wanted = f"both relevant (label >= {relevant_from:g}) and irrelevant documents"
            raise ValueError(
                f"no query has {wanted} (n_queries={sum(each.n_queries)}, n_samples={sum(each.n_rows)}): there is nothing to "
                "learn from. Check the query ids, the labels and relevant_from=."
            )

    def _group_counts(self, n_queries, n_entries):
        """Return the number of groups of each shard."""
        if self.formulation == "n-slack":
            return n_queries.tolist()
        wanted = min(max(_LEAST_GROUPS, n_entries // _ENTRIES_PER_GROUP), _MOST_GROUPS)
        plane_entries = min(max(n_entries // _PLANES_SMALLER_BY, _FEW_PLANE_ENTRIES), _MOST_PLANE_ENTRIES)
        most = min(wanted, max(1, plane_entries // self.n_features))
        return np.ceil(np.minimum(n_queries, most * n_queries / n_queries.sum())).astype(np.int64).tolist()

    def close(self):
        """Release the shards of the executor."""
        self._executor.close()

    def of(self, loss):
        """Return the risk of another loss over the same data."""
        return type(self)(self._executor, loss, self.formulation)

    def variances(self):
        """Compute the mean variance of each column within queries, weighted as in the risk; a pass over the data."""
        return np.sum(self._executor.map(Shard.variances, self._shards, repeat(self._executor.chunks)), axis=0)

    def plane(self, w, kind="risk"):
        """Evaluate R at w and return a plane for each slack that touches it there.

        Parameters
        ----------
        w : (n_features,) array
        kind : str or int
            "risk"; "prediction" for P(w) = sum_q u_q max_y w.(phi(y) - phi(y*)), whose planes are those of the rankings that w
            predicts and whose offset is not 0 but the loss of these rankings; "ideal" for the same with max over the ideal
            rankings y instead of all, for feature maps that order ties of y* by score (0 for others); or the number of a part,
            for the risk of that part alone. In all, phi(y*) is the mean over the ideal rankings.

        Returns
        -------
        Plane
        """
        found = self._executor.map(Shard.planes, self._shards, repeat(w), repeat(kind), repeat(self._executor.chunks))
        slopes, offsets, values, seconds = zip(*found, strict=True)
        slope = np.concatenate(slopes, axis=1).reshape(-1, w.shape[0])
        return Plane(
            slope, np.concatenate(offsets, axis=1).reshape(-1), np.concatenate(values, axis=1).reshape(-1), sum(seconds)
        )
