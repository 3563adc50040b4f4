"""R(w) over a data set: the averaged loss-augmented maximum, as the cutting-plane driver sees it."""

from __future__ import annotations

import numpy as np

from structrank import _validation
from structrank._threads import Threads
from structrank.shard import Plan, Shard
from structrank.solvers.cutting_plane import Plane
from structrank.solvers.dual import combine

# Slacks of the formulation "auto": the more, the fewer passes and the larger QPs. A long pass is worth a larger QP, so there is
# one for as many entries of X, within limits ...
_ENTRIES_PER_GROUP, _LEAST_GROUPS, _MOST_GROUPS = 16_000, 128, 512
# ... but planes are dense: where X is sparse and wide, those of a pass are to have fewer entries than X by this factor, in
# these limits.
_PLANES_SMALLER_BY, _FEW_PLANE_ENTRIES, _MOST_PLANE_ENTRIES = 16, 2**15, 2**22


class LocalShards:
    """Shards on this machine: the whole data set as one, or many that are read one after another.

    A backend opens its shards for an objective, tells their facts, prepares each by a plan, and gives each one's planes, always
    in the same order.

    Parameters
    ----------
    sources : list
        `RankingData`, or objects with ``load() -> RankingData`` and ``matrix()``, which gives its matrix again.
    n_threads : int
    """

    def __init__(self, sources, n_threads=1):
        self._sources, self._n_threads = sources, n_threads
        self._threads = Threads(n_threads)

    def again(self):
        """Give a backend over the same shards, for another objective."""
        return LocalShards(self._sources, self._n_threads)

    def open(self, objective):
        """Read the shards; gives the facts of each."""
        self._shards = [Shard(_loaded(source), objective) for source in self._sources]
        return [shard.facts for shard in self._shards]

    def prepare(self, plans):
        """Deal each shard's queries to groups by its plan; gives the weights of the groups of each."""
        for shard, plan in zip(self._shards, plans, strict=True):
            shard.prepare(plan)
        return [shard.weights for shard in self._shards]

    def planes(self, w, kind):
        """Give the planes of each shard, see `Shard.planes`."""
        return [
            shard.planes(source.matrix() if hasattr(source, "matrix") else source.X, w, kind, self._threads)
            for shard, source in zip(self._shards, self._sources, strict=True)
        ]

    def close(self):
        """End the threads."""
        self._threads.close()


def _loaded(source):
    return source.load() if hasattr(source, "load") else source


class Risk:
    r"""The averaged loss-augmented maximum over all queries with good and bad documents.

    .. math:: R(w) = \sum_q u_q \max_y [w \cdot \phi(x_q, y) - w \cdot \phi(x_q, y^*_q) + \Delta(y^*_q, y)],
              \quad \sum_q u_q = 1

    With several criteria: the largest of their maxima for each query (shared slacks), or the weighted sum of their
    risks (separate slacks).

    Parameters
    ----------
    backend : object
        `LocalShards`, or another with the same methods.
    objective : Objective
    formulation : {"auto", "one-slack", "n-slack"}
        How many slacks: 128 to 512 by the size of X, fewer where it is sparse and wide; one; or one per query (and criterion,
        where separate).

    Attributes
    ----------
    objective : Objective
    parts : tuple of Part
        Its parts.
    weights : (n_slacks,) array
    n_features, n_queries, n_docs : int
        Queries that count, with good and bad documents (different labels, where graded) and a weight above 0, and their
        documents.
    median_length : int
        Documents in a typical query that counts.
    """

    def __init__(self, backend, objective, formulation="auto"):
        self.objective, self.parts, self.formulation = objective, objective.parts, formulation
        self._backend = backend
        facts = backend.open(objective)
        self._check(facts, objective.relevant_from)
        self.n_features = facts[0].n_features
        lengths = np.concatenate([fact.lengths for fact in facts])
        self.n_queries, self.n_docs = lengths.shape[0], int(lengths.sum())
        self.median_length = int(np.median(lengths))
        own_slacks = formulation == "n-slack" and len(self.parts) > 1 and not objective.shared
        total = float(np.sum([fact.total_weight for fact in facts]))
        plans = [Plan(total, int(lengths.max()), n_groups, own_slacks) for n_groups in self._deal_groups(facts)]
        group_weights = np.concatenate(backend.prepare(plans))
        self._group_weights = group_weights
        if formulation == "one-slack":
            self.weights = np.ones(1)
        else:
            part_weights = objective.part_weights if own_slacks else np.ones(1)
            self.weights = np.outer(part_weights, group_weights).reshape(-1)

    @staticmethod
    def _check(facts, relevant_from):
        widths = sorted({fact.n_features for fact in facts})
        if len(widths) > 1:
            raise ValueError(f"the shards have {widths} features; expected the same number in all.")
        _validation.check_some_weight(any(fact.any_weight for fact in facts))
        if not any(fact.lengths.size for fact in facts):
            if relevant_from is None:
                wanted = "different labels"
            else:
                wanted = f"both good (label >= {relevant_from:g}) and bad documents"
            n_queries, n_rows = sum(fact.n_queries for fact in facts), sum(fact.n_rows for fact in facts)
            raise ValueError(
                f"none of the {n_queries} queries (n_samples={n_rows}) has {wanted}: there is nothing to learn from. "
                "Check qid, the labels and relevant_from."
            )

    def _deal_groups(self, facts):
        """Give the number of groups of each shard."""
        n_queries = np.array([fact.lengths.shape[0] for fact in facts])
        if self.formulation == "n-slack":
            return n_queries.tolist()
        n_entries = sum(fact.n_entries for fact in facts)
        wanted = min(max(_LEAST_GROUPS, n_entries // _ENTRIES_PER_GROUP), _MOST_GROUPS)
        plane_entries = min(max(n_entries // _PLANES_SMALLER_BY, _FEW_PLANE_ENTRIES), _MOST_PLANE_ENTRIES)
        most = min(wanted, max(1, plane_entries // self.n_features))
        return [int(n) for n in np.ceil(np.minimum(n_queries, most * n_queries / n_queries.sum()))]

    def plane(self, w):
        """Evaluate R at w and give a plane for each slack that touches it there.

        Parameters
        ----------
        w : (n_features,) array

        Returns
        -------
        Plane
        """
        return self._plane(w, "risk", merged=self.formulation == "one-slack")

    def prediction(self, w):
        """Evaluate P(w) = sum_q u_q max_y w.(phi(y) - phi(y*)), with a plane for each slack, as for `plane`.

        The plane is that of the ranking which w predicts; its offset is not 0, as it should be, but the loss of that ranking.
        """
        return self._plane(w, "prediction", merged=self.formulation == "one-slack")

    def part_plane(self, number, w):
        """Evaluate the risk of one part alone."""
        return self._plane(w, number, merged=True)

    def _plane(self, w, kind, merged):
        found = self._backend.planes(w, kind)
        slope, offset, value = (np.concatenate(arrays, axis=1) for arrays in list(zip(*found, strict=True))[:3])
        slope, offset, value = slope.reshape(-1, w.shape[0]), offset.reshape(-1), value.reshape(-1)
        if merged:
            weights = self._group_weights
            slope, offset, value = combine(weights, slope)[None], np.array([weights @ offset]), np.array([weights @ value])
        return Plane(slope, offset, value, sum(seconds for *_, seconds in found))

    def of(self, objective):
        """Give the risk of another objective over the same data."""
        return Risk(self._backend.again(), objective, self.formulation)

    def close(self):
        """Let go of what the backend holds."""
        self._backend.close()
