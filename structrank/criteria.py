"""Criteria: the losses that training can bound, as small value objects.

A criterion names its loss, the measure it stands for, and the feature maps for which it has an exact oracle. To add one,
write a class here; nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from structrank import _validation, feature_maps, metrics
from structrank import oracles as exact
from structrank.discounts import DISCOUNTS, discounts, gains

if TYPE_CHECKING:
    from structrank.metrics import Measure


@dataclass(frozen=True)
class Criterion:
    """What all criteria share.

    Attributes
    ----------
    name : str
    oracles : mapping from feature map name to oracle maker
        For labels that are good or bad; the first is what ``feature_map="auto"`` means.
    graded_oracles : mapping from feature map name to oracle maker
        For graded labels (``relevant_from=None``).
    """

    name: ClassVar[str]
    oracles: ClassVar[Mapping[str, Callable]] = {}
    graded_oracles: ClassVar[Mapping[str, Callable]] = {}

    def loss(self, ranking, relevant):
        """Compute Delta(y*, y).

        Parameters
        ----------
        ranking : (n_docs,) array of int
            Document numbers, best first.
        relevant : (n_docs,) array of bool

        Returns
        -------
        float
        """
        good_ranks = np.flatnonzero(np.asarray(relevant, dtype=bool)[np.asarray(ranking)])
        return float(1.0 - self._reached(good_ranks, len(ranking)))

    def check_grades(self, labels: np.ndarray) -> None:
        """Raise if graded labels are of a size that the loss cannot take."""

    def measure(self, relevant_from: Any = 1) -> Measure:
        """Give the measure (higher is better) that is 1 - loss."""
        raise NotImplementedError(f"{type(self).__name__} must say which measure it stands for.")


@dataclass(frozen=True)
class AUC(Criterion):
    r"""Fraction of good / bad pairs in the wrong order.

    .. math:: \Delta = \frac{1}{n^+ n^-} |\{(g, b) : b \text{ before } g\}|

    With graded labels, all pairs of different labels count: the pairwise hinge of RankSVM.

    Examples
    --------
    >>> AUC().loss([1, 0, 2], [1, 0, 0])
    0.5
    """

    name: ClassVar[str] = "auc"
    oracles: ClassVar[Mapping] = {"po": exact.auc_partial_order}
    graded_oracles: ClassVar[Mapping] = {"po": exact.graded_auc_partial_order}

    def _reached(self, good_ranks, n_docs):
        n_good = good_ranks.shape[0]
        return 1.0 - (good_ranks - np.arange(n_good)).sum() / (n_good * (n_docs - n_good))

    def measure(self, relevant_from: Any = 1) -> Measure:
        """Give the measure (higher is better) that is 1 - loss."""
        return metrics.PairAccuracy() if relevant_from is None else metrics.AUC(relevant_from=relevant_from)


class _Discounted(Criterion):
    """Losses 1 - sum_g credit_g D(rank_g) / sum_g credit_g D(g), g numbering the good documents as they are ranked."""

    convex_from: ClassVar[int] = 0  # the rank from which D is convex; the unclipped oracle rests on it

    def _reached(self, good_ranks, n_docs):
        n_good = good_ranks.shape[0]
        discounts, credits = self.discounts(n_docs), self.credits(n_good)
        return credits @ discounts[good_ranks] / (credits @ discounts[:n_good])


@dataclass(frozen=True)
class MAP(_Discounted):
    r"""One minus average precision, ranks counted from 0.

    .. math:: \Delta = 1 - \frac{1}{n^+} \sum_{i=0}^{n^+ - 1} \frac{1 + i}{1 + \mathrm{rank}_i}

    Examples
    --------
    >>> MAP().loss([1, 0, 2], [1, 0, 0])
    0.5
    """

    name: ClassVar[str] = "map"
    oracles: ClassVar[Mapping] = {"po": exact.unclipped_partial_order, "dorm": exact.permutation}

    def discounts(self, n: int) -> np.ndarray:
        """Give 1/(1 + r) for the first n ranks."""
        return 1.0 / np.arange(1.0, n + 1)

    def credits(self, n: int) -> np.ndarray:
        """Give 1 + i for the first n good documents."""
        return np.arange(1.0, n + 1)

    def measure(self, relevant_from: Any = 1) -> Measure:
        """Give the measure (higher is better) that is 1 - loss."""
        return metrics.MAP(relevant_from=relevant_from)


@dataclass(frozen=True)
class NDCG(_Discounted):
    r"""One minus the normalised discounted cumulative gain of good documents in the top k; k=None does not clip (NDCG-NC).

    .. math:: \Delta = 1 - \sum_{g: \mathrm{rank}_g < k} D(\mathrm{rank}_g) \Big/ \sum_{i < \min(n^+, k)} D(i)

    ``discount="kdd08"``: D(0) = D(1) = 1, D(r) = 1/log2(1 + r); ``"log2"``: D(r) = 1/log2(2 + r); ranks from 0.
    With graded labels (permutation map only) document i counts 2^label - 1 times.

    Examples
    --------
    >>> NDCG(k=10).loss([1, 2, 0], [1, 0, 0]).__round__(4)
    0.3691
    """

    k: int | None = 10
    discount: str = "kdd08"

    oracles: ClassVar[Mapping] = {"po": exact.ndcg_partial_order, "dorm": exact.permutation}
    graded_oracles: ClassVar[Mapping] = {"dorm": exact.graded_ndcg_permutation}

    def __post_init__(self):
        _validation.check_cut("k", self.k)
        _validation.check_choice("discount", self.discount, DISCOUNTS)

    @property
    def name(self):
        """The name, by which users choose the criterion."""
        return "ndcg-nc" if self.k is None else "ndcg"

    @property
    def convex_from(self):
        """The rank from which the unclipped discount is convex."""
        return 1 if self.discount == "kdd08" else 0

    def discounts(self, n: int) -> np.ndarray:
        """Give D(r) for the first n ranks."""
        return discounts(self.discount, n, self.k)

    def credits(self, n: int) -> np.ndarray:
        """Give 1 for every good document."""
        return np.ones(n)

    def check_grades(self, labels: np.ndarray) -> None:
        """Raise if 2^label would overflow, or not differ from 1."""
        _validation.check_exp2_labels(labels)
        lost = np.flatnonzero((labels > 0) & (self.gains(labels) == 0))
        if lost.size:
            row = int(lost[0])
            raise ValueError(f"y contains {labels[row]} at row {row}, whose gain 2^label - 1 is 0; round such labels to 0.")

    def gains(self, labels: np.ndarray) -> np.ndarray:
        """Give the gain of graded labels, 2^label - 1."""
        return gains("exp2", labels)

    def measure(self, relevant_from: Any = 1) -> Measure:
        """Give the measure (higher is better) that is 1 - loss."""
        if relevant_from is None:
            return metrics.NDCG(self.k, gain="exp2", discount=self.discount)
        return metrics.NDCG(self.k, gain="binary", discount=self.discount, relevant_from=relevant_from)


@dataclass(frozen=True)
class DORM(NDCG):
    """NDCG@k with the permutation map (direct optimisation of ranking measures); the loss is that of `NDCG`.

    Examples
    --------
    >>> DORM(k=10).loss([0, 1, 2], [1, 0, 0])
    0.0
    """

    name: ClassVar[str] = "dorm"
    oracles: ClassVar[Mapping] = {"dorm": exact.permutation}


@dataclass(frozen=True)
class MRR(_Discounted):
    r"""One minus the reciprocal rank of the first good document, no credit from rank k on (k=None: no clip).

    .. math:: \Delta = 1 - \frac{[r < k]}{1 + r}, \quad r = \mathrm{rank}_{g_0}

    Examples
    --------
    >>> MRR().loss([1, 0, 2], [1, 0, 0])
    0.5
    """

    k: int | None = 10

    name: ClassVar[str] = "mrr"
    oracles: ClassVar[Mapping] = {
        "mrr": exact.mrr_first_relevant,
        "po": exact.mrr_partial_order,
        "dorm": exact.permutation,
    }

    def __post_init__(self):
        _validation.check_cut("k", self.k)

    def discounts(self, n: int) -> np.ndarray:
        """Give 1/(1 + r) for the first n ranks, 0 from k on."""
        discounts = 1.0 / np.arange(1.0, n + 1)
        if self.k is not None:
            discounts[self.k :] = 0.0
        return discounts

    def credits(self, n: int) -> np.ndarray:
        """Give 1 for the first good document, 0 for the others."""
        return (np.arange(n) == 0).astype(np.float64)

    def measure(self, relevant_from: Any = 1) -> Measure:
        """Give the measure (higher is better) that is 1 - loss."""
        return metrics.MRR(self.k, relevant_from=relevant_from)


CRITERIA = {
    "auc": lambda k, discount: AUC(),
    "map": lambda k, discount: MAP(),
    "ndcg": lambda k, discount: NDCG(k, discount),
    "ndcg-nc": lambda k, discount: NDCG(None, discount),
    "mrr": lambda k, discount: MRR(k),
    "dorm": lambda k, discount: DORM(k, discount),
}


def parse(criterion: str | Criterion, k: int | None = 10, discount: str = "kdd08") -> Criterion:
    """Give a criterion object from its name (or the object itself).

    Examples
    --------
    >>> parse("ndcg", k=5)
    NDCG(k=5, discount='kdd08')
    """
    if isinstance(criterion, Criterion):
        return criterion
    if isinstance(criterion, str) and criterion not in CRITERIA:
        name, _, cut = criterion.lower().partition("@")
        if name in CRITERIA:
            where = f", k={cut}" if cut else ""
            raise ValueError(f"criterion={criterion!r} is not known; write it as criterion={name!r}{where}.")
    _validation.check_choice("criterion", criterion, CRITERIA)
    return CRITERIA[criterion](k, discount)


def exact_pairs():
    """List the pairs (criterion, feature map) that have an exact oracle, as text for people.

    Examples
    --------
    >>> exact_pairs().split("; ")[:3]
    ['auc: po', 'map: po, dorm', 'ndcg: po, dorm']
    """
    criteria = {name: parse(name) for name in CRITERIA}
    binary = [f"{name}: {', '.join(criterion.oracles)}" for name, criterion in criteria.items()]
    graded = [
        f"{name}: {', '.join(criterion.graded_oracles)}"
        for name, criterion in criteria.items()
        if criterion.graded_oracles
    ]
    return "; ".join(binary) + "; with graded labels (relevant_from=None): " + "; ".join(graded)


def find_oracle(criterion, feature_map, graded=False, decay="sqrt"):
    """Find the feature map and the oracle maker for a criterion.

    Parameters
    ----------
    criterion : Criterion
    feature_map : str or feature map
        "auto" takes the criterion's first.
    graded : bool
        Whether labels are grades rather than good or bad.
    decay : str, array-like or callable
        Decay of the permutation map, where `feature_map` is a name.

    Returns
    -------
    feature_map, maker

    Raises
    ------
    ValueError
        Where the pair has no exact oracle; the message lists those that have one.

    Examples
    --------
    >>> find_oracle(MRR(), "auto")[0]
    FirstRelevant()
    """
    table = criterion.graded_oracles if graded else criterion.oracles
    if isinstance(feature_map, str) and feature_map == "auto":
        feature_map = next(iter(table or criterion.oracles))
    chosen = feature_maps.parse(feature_map, decay)
    if chosen.name not in table:
        labels = "graded labels (relevant_from=None)" if graded else "good and bad labels"
        advice = "Give relevant_from the least label of a good document, or take another pair. " if graded else ""
        raise ValueError(
            f"criterion {criterion.name!r} with feature_map {chosen.name!r} has no exact oracle for {labels}. "
            f"{advice}Exact pairs: {exact_pairs()}."
        )
    return chosen, table[chosen.name]
