"""Feature maps phi(x, y) of a ranking y of documents x.

All are linear in the documents, phi(x, y) = sum_i c_i x_i with one coefficient per document, so an oracle works on scores
and coefficients and does not need X.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structrank._kernels import feature_maps as kernels
from structrank._kernels.oracles import call, make_block
from structrank._support import checks, requirements
from structrank._support.saveable import saveable


def _ranks(ranking):
    ranks = np.empty(len(ranking), dtype=np.int64)
    ranks[np.asarray(ranking)] = np.arange(len(ranking))
    return ranks


@saveable
@dataclass(frozen=True)
class PartialOrder:
    r"""phi_po: mean over the pairs of a relevant and an irrelevant document.

    .. math:: \phi_{po}(x, y) = \frac{1}{n^+ n^-} \sum_{g, b} y_{gb} (x_g - x_b)

    with y_gb = 1 if y ranks the relevant document g before the irrelevant document b, otherwise -1 (KDD 2008, eq. 3). With
    graded labels, the mean over all pairs of documents with different labels.

    Examples
    --------
    >>> PartialOrder().coefficients([1, 0, 2], [1, 0, 0])   # irrelevant 1 is ranked before relevant 0
    array([ 0. ,  0.5, -0.5])
    """

    name: ClassVar[str] = "po"
    kernel: ClassVar[int] = kernels.PARTIAL_ORDER
    worst_good_first: ClassVar[bool] = False

    def coefficients(self, ranking: np.ndarray, relevant: np.ndarray) -> np.ndarray:
        """Return c with phi(x, y) = sum_i c_i x_i.

        Parameters
        ----------
        ranking : (n_docs,) array of int
            Document numbers, best first.
        relevant : (n_docs,) array of bool, or of grades

        Returns
        -------
        (n_docs,) array
        """
        return self._of_ranks(_ranks(ranking), relevant)

    def ideal_coefficients(self, relevant: np.ndarray) -> np.ndarray:
        """Return c for the ideal ranking, by relevance or grade."""
        return self._of_ranks(-np.asarray(relevant, dtype=np.float64), relevant)

    def _of_ranks(self, ranks, relevant):
        grades = np.asarray(relevant, dtype=np.float64)
        order = np.sign(grades[:, None] - grades[None, :])
        signs = order * np.sign(ranks[None, :] - ranks[:, None])
        return (order * signs).sum(axis=1) / (np.abs(order).sum() / 2)

    def prepare(self, longest):
        """Return a function from interleavings of up to `longest` documents to coefficients of phi(y) - phi(y*)."""
        return _on_interleavings(kernels.partial_order)


@saveable
@dataclass(frozen=True)
class FirstRelevant:
    r"""phi_mrr: the first relevant document g0 of the ranking against the irrelevant documents before it, not scaled.

    .. math:: \phi_{mrr}(x, y) = \sum_{b \succ g_0(y)} (x_b - x_{g_0(y)})

    (KDD 2008, eq. 5). It is 0 for the ideal ranking.

    Examples
    --------
    >>> FirstRelevant().coefficients([1, 0, 2], [1, 0, 0])
    array([-1.,  1.,  0.])
    """

    name: ClassVar[str] = "mrr"
    kernel: ClassVar[int] = kernels.FIRST_RELEVANT
    worst_good_first: ClassVar[bool] = True

    def coefficients(self, ranking: np.ndarray, relevant: np.ndarray) -> np.ndarray:
        """Return c with phi(x, y) = sum_i c_i x_i; arguments as for `PartialOrder.coefficients`."""
        ranking = np.asarray(ranking)
        first = int(np.argmax(np.asarray(relevant, dtype=bool)[ranking]))
        coefficients = np.zeros(ranking.shape[0])
        coefficients[ranking[:first]] = 1.0
        coefficients[ranking[first]] = -first
        return coefficients

    def ideal_coefficients(self, relevant: np.ndarray) -> np.ndarray:
        """Return c for the ideal ranking: zeros."""
        return np.zeros(len(relevant))

    def prepare(self, longest):
        """Return a function from interleavings of up to `longest` documents to coefficients of phi(y) - phi(y*)."""
        return _on_interleavings(kernels.first_relevant)


_DECAYS = {"sqrt": lambda ranks: 1.0 / np.sqrt(1.0 + ranks), "log": lambda ranks: 1.0 / np.log2(2.0 + ranks)}


@saveable
@dataclass(frozen=True)
class Permutation:
    r"""phi_dorm: every document weighted by a decay of its rank, counted from 0.

    .. math:: \phi_{dorm}(x, y) = \sum_i A(\mathrm{rank}_i) x_i

    (KDD 2008, eq. 6). With equal labels there are several ideal rankings y*, and phi(x, y*) differs between them, unlike that
    of the other feature maps: phi_po depends on pairs of different labels only, and phi_mrr(x, y*) is 0. The paper leaves open
    which is meant; `ties` chooses.

    Parameters
    ----------
    decay : str, array-like or callable, default "sqrt"
        A(r): "sqrt" for 1/sqrt(1 + r), "log" for 1/log2(2 + r), an array of A(0), A(1), ... (0 after its end) or a
        function of an array of ranks. Must be non-negative and non-increasing. ``"sqrt@30"`` also sets `cut`.
    cut : int, default None
        Rank cutoff: A(r) = 0 from this rank on; None for none.
    assignment : {"lattice", "scipy"}, default "lattice"
        Algorithm for the most violated ranking with binary relevance: a lattice path, or an assignment of documents to ranks by
        ``scipy.optimize.linear_sum_assignment``, which is slower and supports any number of grades. Graded labels always use
        the latter.
    ties : {"mean", "score"}, default "mean"
        phi(x, y*): "mean" is the mean over all ideal rankings, so each document gets the mean of A over the ranks of its grade.
        "score" orders documents of equal labels by w.x, which makes w.phi(x, y*) largest: the bound on the loss is tighter, and
        seldom vacuous on long lists, but not convex. `StructRankSVM` then solves a sequence of convex problems, see
        `structrank.training.ramp`. The ramp bound is the same for both. ``feature_map="dorm(ties=score)"`` names this map.

    Examples
    --------
    >>> Permutation("sqrt", cut=2).decays(3)
    array([1.        , 0.70710678, 0.        ])
    >>> Permutation([1.0, 0.5]).coefficients([2, 0, 1], relevant=None)
    array([0.5, 0. , 1. ])
    """

    decay: str | tuple | Callable = "sqrt"
    cut: int | None = None
    assignment: str = "lattice"
    ties: str = "mean"

    name: ClassVar[str] = "dorm"
    kernel: ClassVar[int] = kernels.PERMUTATION
    worst_good_first: ClassVar[bool] = False

    def __post_init__(self):
        decay, cut = self.decay, checks.check_cut("cut", self.cut)
        if isinstance(decay, str):
            decay, at, text = decay.partition("@")
            if at:
                cut = checks.check_cut("decay cut", int(text) if text.isdigit() else text)
            checks.check_choice("decay", decay, _DECAYS)
        elif not callable(decay):
            values = checks.as_array(decay, "decay")
            if values.ndim != 1 or values.size == 0:
                text = (
                    f"decay={decay!r} is not valid: expected a name, the values A(0), A(1), ... in 1 dimension, or a function."
                )
                raise ValueError(text)
            decay = tuple(checks.as_number_column(values, values.size, "decay", "the values A(0), A(1), ...").tolist())
        checks.check_choice("assignment", self.assignment, ("lattice", "scipy"))
        checks.check_choice("ties", self.ties, ("mean", "score"))
        object.__setattr__(self, "decay", decay)
        object.__setattr__(self, "cut", cut)

    def decays(self, n: int) -> np.ndarray:
        """Return A(0), ..., A(n - 1), checked."""
        values = np.zeros(n)
        if isinstance(self.decay, tuple):
            known = self.decay[:n]
            values[: len(known)] = known
        else:
            function = _DECAYS[self.decay] if isinstance(self.decay, str) else self.decay
            values[:] = function(np.arange(n))
        if self.cut is not None:
            values[self.cut :] = 0.0
        checks.check_falling(values, "decay", "A")
        return values

    def coefficients(self, ranking: np.ndarray, relevant: np.ndarray) -> np.ndarray:
        """Return c with phi(x, y) = sum_i c_i x_i; arguments as for `PartialOrder.coefficients` (`relevant` is ignored)."""
        return self.decays(len(ranking))[_ranks(ranking)]

    def ideal_coefficients(self, relevant: np.ndarray) -> np.ndarray:
        """Return c averaged over all ideal rankings, for either value of `ties`; `relevant` may hold grades."""
        labels = np.asarray(relevant, dtype=np.float64)
        _, grade_of, counts = np.unique(-labels, return_inverse=True, return_counts=True)
        sums = np.concatenate([[0.0], np.cumsum(self.decays(labels.shape[0]))])
        stops = np.cumsum(counts)
        return ((sums[stops] - sums[stops - counts]) / counts)[grade_of]

    def prepare(self, longest):
        """Return a function from interleavings of up to `longest` documents to coefficients of phi(y) - phi(y*)."""
        table = np.zeros((4, longest + 2))
        table[2, :-1] = self.decays(longest + 1)
        table[3, 1:] = np.cumsum(table[2, :-1])
        return _on_interleavings(kernels.permutation, table=table)


def orders_ties(feature_map):
    """Return whether a feature map orders the ties of the ideal ranking by score.

    Examples
    --------
    >>> orders_ties(PartialOrder()), orders_ties(Permutation(ties="score"))
    (False, True)
    """
    return getattr(feature_map, "ties", "mean") == "score"


def _on_interleavings(kernel, **known):
    """Return a function that runs a kernel on interleavings."""

    def weigh(starts, n_good, before, coefficients):
        call((kernel,), make_block(starts=starts, n_relevant=n_good, before=before, coefficients=coefficients, **known))

    return weigh


FEATURE_MAPS = {
    "po": PartialOrder,
    "mrr": FirstRelevant,
    "dorm": Permutation,
    "dorm(ties=score)": functools.partial(Permutation, ties="score"),
}


def parse(feature_map, decay="sqrt"):
    """Return a feature map from its name (or the object itself, checked).

    Examples
    --------
    >>> parse("dorm", decay="sqrt@30")
    Permutation(decay='sqrt', cut=30, assignment='lattice', ties='mean')
    >>> parse("dorm(ties=score)")
    Permutation(decay='sqrt', cut=None, assignment='lattice', ties='score')
    """
    if not isinstance(feature_map, str):
        requirements.check(feature_map, "feature map")
        return feature_map
    checks.check_choice("feature_map", feature_map, ("auto", *FEATURE_MAPS))
    make = FEATURE_MAPS[feature_map]
    return make(decay) if feature_map.startswith("dorm") else make()
