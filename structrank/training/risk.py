"""R(w) over a data set: the averaged loss-augmented maximum, as the cutting-plane driver sees it."""

from __future__ import annotations

import numpy as np

from structrank._support import checks
from structrank._support.threads import Threads
from structrank.solvers import Plane
from structrank.training.shard import Shard

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
    sources : list
        `RankingData`, or objects with ``load() -> RankingData`` and ``matrix()``, which reads the matrix again: one shard with
        the whole data set, or many shards that are read one after another.
    objective : Objective
    formulation : {"auto", "grouped", "one-slack", "n-slack"}
        "n-slack" has one slack per query (and per criterion if slacks are separate), the others one per group of
        neighbouring queries: 128 to 512 groups by the size of X, fewer if X is sparse and wide.
    n_threads : int

    Attributes
    ----------
    objective : Objective
    parts : tuple of Part
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

    def __init__(self, sources, objective, formulation="auto", n_threads=1):
        self.objective, self.parts, self.formulation = objective, objective.parts, formulation
        self._sources, self._n_threads = sources, n_threads
        facts = self._open()
        self._check(facts)
        self.n_features = facts[0].n_features
        lengths = np.concatenate([fact.lengths for fact in facts])
        self.n_queries, self.n_docs = lengths.shape[0], int(lengths.sum())
        self.median_length = int(np.median(lengths))
        self.has_grades = len(set().union(*(fact.some_labels for fact in facts))) > 2
        shares = np.array([fact.lengths.shape[0] for fact in facts]) / self.n_queries
        self.deviations = np.sqrt(sum(share * fact.sampled_variances for share, fact in zip(shares, facts, strict=True)))
        own_slacks = formulation == "n-slack" and len(self.parts) > 1 and not objective.shared
        total = float(np.sum([fact.total_weight for fact in facts]))
        plans = [(total, int(lengths.max()), n_groups, own_slacks) for n_groups in self._group_counts(facts)]
        self.group_weights = np.concatenate(self._prepare(plans))
        part_weights = objective.part_weights if own_slacks else np.ones(1)
        self.weights = np.outer(part_weights, self.group_weights).reshape(-1)
        self._threads = Threads(n_threads) if n_threads > 1 else None

    def _check(self, facts):
        widths = sorted({fact.n_features for fact in facts})
        if len(widths) > 1:
            raise ValueError(f"the shards have {widths} features; expected the same number in all.")
        checks.check_some_weight(any(fact.any_weight for fact in facts))
        if not any(fact.lengths.size for fact in facts):
            relevant_from = self.objective.relevant_from
            if relevant_from is None:
                wanted = "different labels"
            else:
                wanted = f"both relevant (label >= {relevant_from:g}) and irrelevant documents"
            n_queries, n_rows = sum(fact.n_queries for fact in facts), sum(fact.n_rows for fact in facts)
            raise ValueError(
                f"no query has {wanted} (n_queries={n_queries}, n_samples={n_rows}): there is nothing to learn from. "
                "Check the query ids, the labels and relevant_from=."
            )

    def _group_counts(self, facts):
        """Return the number of groups of each shard."""
        n_queries = np.array([fact.lengths.shape[0] for fact in facts])
        if self.formulation == "n-slack":
            return n_queries.tolist()
        n_entries = sum(fact.n_entries for fact in facts)
        wanted = min(max(_LEAST_GROUPS, n_entries // _ENTRIES_PER_GROUP), _MOST_GROUPS)
        plane_entries = min(max(n_entries // _PLANES_SMALLER_BY, _FEW_PLANE_ENTRIES), _MOST_PLANE_ENTRIES)
        most = min(wanted, max(1, plane_entries // self.n_features))
        return [int(n) for n in np.ceil(np.minimum(n_queries, most * n_queries / n_queries.sum()))]

    # A cluster overrides the next five methods.

    def _open(self):
        """Read the shards; return the facts of each."""
        loaded = (source.load() if hasattr(source, "load") else source for source in self._sources)
        self._shards = [Shard(data, self.objective) for data in loaded]
        return [shard.facts for shard in self._shards]

    def _prepare(self, plans):
        """Group the queries of each shard by its plan, the arguments of `Shard.prepare`; return the weights of the groups."""
        for shard, plan in zip(self._shards, plans, strict=True):
            shard.prepare(*plan)
        return [shard.weights for shard in self._shards]

    def _planes(self, w, kind):
        """Return the planes of each shard, in the order of the shards; see `Shard.planes`."""
        found = []
        for shard, source in zip(self._shards, self._sources, strict=True):
            found.append(shard.planes(_matrix(source), w, kind, self._threads))
        return found

    def _variances(self):
        """Return the variances of the columns of each shard; see `Shard.variances`."""
        pairs = zip(self._shards, self._sources, strict=True)
        return [shard.variances(_matrix(source), self._threads) for shard, source in pairs]

    def close(self):
        """Release the threads."""
        if self._threads is not None:
            self._threads.close()

    def of(self, objective):
        """Return the risk of another objective over the same data."""
        return type(self)(self._sources, objective, self.formulation, self._n_threads)

    def variances(self):
        """Compute the mean variance of each column within queries, weighted as in the risk; a pass over the data."""
        return np.sum(self._variances(), axis=0)

    def plane(self, w, kind="risk"):
        """Evaluate R at w and return a plane for each slack that touches it there.

        Parameters
        ----------
        w : (n_features,) array
        kind : str or int
            "risk"; "prediction" for P(w) = sum_q u_q max_y w.(phi(y) - phi(y*)), whose planes are those of the rankings that w
            predicts and whose offset is not 0 but the loss of these rankings; or the number of a part, for the risk of that
            part alone.

        Returns
        -------
        Plane
        """
        found = self._planes(w, kind)
        slope, offset, value = (np.concatenate(arrays, axis=1) for arrays in list(zip(*found, strict=True))[:3])
        seconds = sum(seconds for *_, seconds in found)
        return Plane(slope.reshape(-1, w.shape[0]), offset.reshape(-1), value.reshape(-1), seconds)


def _matrix(source):
    return source.matrix() if hasattr(source, "matrix") else source.X
