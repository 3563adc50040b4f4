"""Criteria: the losses that training can bound, as small value objects.

A criterion defines a loss and the feature maps for which it has an exact oracle. `register` makes a custom criterion and its
measure available by name; the criteria of the package are registered in the same way. It registers all other classes, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from structrank import feature_maps, metrics
from structrank import oracles as exact
from structrank._support import checks, requirements
from structrank._support.discounts import reciprocal_ranks
from structrank._support.lazy import import_public
from structrank._support.saveable import SAVEABLE, saveable
from structrank._support.typing import ArrayLike
from structrank.datasets.queries import group_by_query
from structrank.metrics import Measure


@dataclass(frozen=True)
class Criterion:
    """Base class of the criteria.

    A subclass is a frozen dataclass that defines `name`, and `oracles` or `graded_oracles`; for discounted ranks, `Discounted`
    has the oracles. `register` adds the measure, which defines the loss. Fields need defaults, so that the name alone stands
    for a criterion; fields called `k`, `discount` and `gain` can also be set by the parameters of `StructRankSVM`.

    Attributes
    ----------
    name : str
    oracles : mapping from feature map to oracle maker
        For binary relevance. A key is the name of a feature map, or the object for a custom map; ``feature_map="auto"`` selects
        the first. An oracle maker is a function of criterion, feature map and length of the longest
        query, see `structrank.oracles`.
    graded_oracles : mapping from feature map to oracle maker
        For graded labels (``relevant_from=None``).
    """

    name: ClassVar[str]
    oracles: ClassVar[Mapping[Any, Callable]] = {}
    graded_oracles: ClassVar[Mapping[Any, Callable]] = {}

    def __post_init__(self):
        checks.check_settings(self)

    @property
    def measure(self) -> Any:
        """Function from `relevant_from` to the measure; None until `register` is given its class."""
        paired = next((_MEASURE_OF[cls] for cls in type(self).__mro__ if cls in _MEASURE_OF), None)
        if paired is None:
            return None
        return lambda relevant_from=1: checks.make(paired, vars(self) | {"relevant_from": relevant_from})

    def loss(self, ranking: ArrayLike, labels: ArrayLike, relevant_from: float | None = 1) -> float:
        r"""Compute Delta(y*, y), by the measure m.

        .. math:: \Delta(y^*, y) = 1 - m(y) / m(y^*)

        Parameters
        ----------
        ranking : (n_docs,) array of int
            Document numbers, best first.
        labels : (n_docs,) array
            Binary relevance, or labels.
        relevant_from : float or None, default 1
            Lowest label that counts as relevant; None uses labels as grades.

        Returns
        -------
        float
        """
        if self.measure is None:
            _check(self)  # raises
        labels = np.asarray(labels, dtype=np.float64)
        evaluator = metrics.Evaluator(self.measure(relevant_from), labels, group_by_query(0, labels.shape[0]))
        reached, best = (evaluator.per_query(-np.argsort(best_first))[0] for best_first in (ranking, np.argsort(-labels)))
        return float(1.0 - reached / best)

    def check_grades(self, labels: np.ndarray) -> None:
        """Raise if graded labels are outside the range of the loss."""


@dataclass(frozen=True)
class AUC(Criterion):
    r"""Fraction of pairs of a relevant and an irrelevant document in the wrong order.

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

    def measure(self, relevant_from: Any = 1) -> Measure:
        """Return the measure (higher is better) that is 1 - loss."""
        return metrics.PairAccuracy() if relevant_from is None else metrics.AUC(relevant_from=relevant_from)


class Discounted(Criterion):
    r"""Base class of losses with credits for relevant documents, discounted by rank.

    .. math:: \Delta = 1 - \sum_{i=0}^{n^+ - 1} c_i D(\mathrm{rank}_i) \Big/ \sum_{i=0}^{n^+ - 1} c_i D(i)

    over the relevant documents i = 0, 1, ... in the order of the ranking, with ranks counted from 0, a non-increasing
    discount D and credits c.

    A subclass is a frozen dataclass that defines `name`. D is the discount of the measure, 0 from rank `k` on. If the measure
    has none, the subclass defines ``discounts(n)``, which returns D(0), ..., D(n - 1), and, unless all credits are 1,
    ``credits(n)``, which returns the first n. The inherited oracles are exact and compiled: for the feature map
    "dorm" with any discount and credits; for "po" if D is 0 from rank `k` on and all credits are equal, or, for a criterion
    without `k`, if D is convex from rank `convex_from` (0 or 1) on. Making an oracle checks these conditions.

    Examples
    --------
    Precision in the first k ranks; the loss divides it by its largest possible value:

    >>> @dataclass(frozen=True)
    ... class Precision(Discounted):
    ...     k: int = 5
    ...     name: ClassVar[str] = "precision"
    ...
    ...     def discounts(self, n):
    ...         return (np.arange(n) < self.k).astype(float)
    ...
    ...     def measure(self, relevant_from=1):
    ...         return metrics.P(self.k, relevant_from=relevant_from)
    >>> Precision(k=2).loss([1, 0, 2], [1, 0, 1])
    0.5
    """

    oracles: ClassVar[Mapping] = {"po": exact.discounted_partial_order, "dorm": exact.permutation}
    convex_from: ClassVar[int] = 0

    def discounts(self, n: int) -> np.ndarray:
        """Return D(r) for the first n ranks, that of the measure."""
        measure: Any = self.measure()
        requirements.check(measure, "measure of a discounted criterion", f"{type(self).__name__} has none of its own.")
        k = getattr(self, "k", None)
        return np.where(np.arange(n) < (n if k is None else k), measure.discounts(n), 0.0)

    def credits(self, n: int) -> np.ndarray:
        """Return 1 for each of the first n relevant documents."""
        return np.ones(n)


@dataclass(frozen=True)
class MAP(Discounted):
    r"""One minus average precision, ranks counted from 0.

    .. math:: \Delta = 1 - \frac{1}{n^+} \sum_{i=0}^{n^+ - 1} \frac{1 + i}{1 + \mathrm{rank}_i}

    Examples
    --------
    >>> MAP().loss([1, 0, 2], [1, 0, 0])
    0.5
    """

    name: ClassVar[str] = "map"

    def discounts(self, n: int) -> np.ndarray:
        """Return 1/(1 + r) for the first n ranks."""
        return 1.0 / np.arange(1.0, n + 1)

    def credits(self, n: int) -> np.ndarray:
        """Return 1 + i for the first n relevant documents."""
        return np.arange(1.0, n + 1)


@dataclass(frozen=True)
class NDCG(Discounted):
    r"""One minus the NDCG of relevant documents in the top k; k=None for no cutoff (NDCG-NC).

    .. math:: \Delta = 1 - \sum_{g: \mathrm{rank}_g < k} D(\mathrm{rank}_g) \Big/ \sum_{i < \min(n^+, k)} D(i)

    ``discount="kdd08"``: D(0) = D(1) = 1, D(r) = 1/log2(1 + r); ``"log2"``: D(r) = 1/log2(2 + r); ranks from 0.

    With graded labels (``relevant_from=None``) document i has a gain G(l_i) by its label:

    .. math:: \Delta = 1 - \sum_{i: \mathrm{rank}_i < k} G(l_i) D(\mathrm{rank}_i) \Big/ \mathrm{ideal}

    ``gain="exp2"``: G(l) = 2^l - 1; ``"linear"``: G(l) = l; or a table of rising gains of the labels 0, 1, .... The number of
    different labels of a query and k are limited, see `structrank.oracles.graded_partial_order`.

    Parameters
    ----------
    k : int or None, default 10
        Rank cutoff; None for none.
    discount : {"kdd08", "log2"}, default "kdd08"
        D, as above.
    gain : {"exp2", "linear"} or tuple of float, default "exp2"
        G, for graded labels.

    Examples
    --------
    >>> NDCG(k=10).loss([1, 2, 0], [1, 0, 0]).__round__(4)
    0.3691
    >>> NDCG(k=10, gain="linear").loss([1, 0, 2], [2, 1, 0], relevant_from=None)  # equal discounts of the first two ranks
    0.0
    """

    k: int | None = 10
    discount: str = "kdd08"
    gain: str | tuple[float, ...] = "exp2"

    def __post_init__(self):
        super().__post_init__()
        if self.gain == "binary":
            raise ValueError(
                "gain='binary' is not a gain of a criterion; set relevant_from, the lowest relevant label, instead."
            )

    @property
    def name(self):
        """Name of the criterion in user input."""
        return "ndcg-nc" if self.k is None else "ndcg"

    @property
    def graded_oracles(self):
        """Oracles for graded labels; without a cutoff first that of phi_dorm, which has no limit on the length of lists."""
        makers = {"po": exact.graded_partial_order, "dorm": exact.graded_ndcg_permutation}
        return makers if self.k is not None else dict(reversed(makers.items()))

    @property
    def convex_from(self):
        """The rank from which the discount without cutoff is convex."""
        return 1 if self.discount == "kdd08" else 0

    def check_grades(self, labels: np.ndarray) -> None:
        """Raise if a label has no gain, or one that overflows or rounds to 0."""
        if self.gain == "exp2":
            checks.check_exp2_labels(labels)
        lost = np.flatnonzero((labels > 0) & (self.gains(labels) == 0))
        if lost.size:
            row = int(lost[0])
            raise ValueError(f"y contains {labels[row]} at row {row}, whose gain 2^label - 1 is 0; round such labels to 0.")

    def gains(self, labels: np.ndarray) -> np.ndarray:
        """Return the gain of graded labels."""
        return self.measure(None).gains(labels)

    def measure(self, relevant_from: Any = 1) -> metrics.NDCG:
        """Return the measure (higher is better) that is 1 - loss."""
        if relevant_from is None:
            return metrics.NDCG(self.k, gain=self.gain, discount=self.discount)
        return metrics.NDCG(self.k, gain="binary", discount=self.discount, relevant_from=relevant_from)


@dataclass(frozen=True)
class DORM(NDCG):
    """NDCG@k with phi_dorm (direct optimisation of ranking measures); the loss is that of `NDCG`.

    Parameters
    ----------
    k, discount, gain
        As for `NDCG`.

    Examples
    --------
    >>> DORM(k=10).loss([0, 1, 2], [1, 0, 0])
    0.0
    """

    name: ClassVar[str] = "dorm"
    oracles: ClassVar[Mapping] = {"dorm": exact.permutation}
    graded_oracles: ClassVar[Mapping] = {"dorm": exact.graded_ndcg_permutation}


@dataclass(frozen=True)
class MRR(Discounted):
    r"""One minus the reciprocal rank of the first relevant document, no credit from rank k on (k=None: no cutoff).

    .. math:: \Delta = 1 - \frac{[r < k]}{1 + r}, \quad r = \mathrm{rank}_{g_0}

    Parameters
    ----------
    k : int or None, default 10
        Rank cutoff; None for none.

    Examples
    --------
    >>> MRR().loss([1, 0, 2], [1, 0, 0])
    0.5
    """

    k: int | None = 10

    name: ClassVar[str] = "mrr"
    oracles: ClassVar[Mapping] = {"mrr": exact.mrr_first_relevant, "po": exact.mrr_partial_order, "dorm": exact.permutation}

    def discounts(self, n: int) -> np.ndarray:
        """Return 1/(1 + r) for the first n ranks, 0 from k on."""
        return reciprocal_ranks(n, self.k)

    def credits(self, n: int) -> np.ndarray:
        """Return 1 for the first relevant document, 0 for the others."""
        return (np.arange(n) == 0).astype(np.float64)


@dataclass(frozen=True)
class ERR(Criterion):
    r"""One minus the expected reciprocal rank in the top k, relative to the ideal ranking; for graded labels.

    .. math:: \Delta = 1 - \frac{\mathrm{ERR}(y)}{\mathrm{ERR}(y^*)}, \quad
              \mathrm{ERR}(y) = \sum_{r < k} \frac{R(l_r)}{1 + r} \prod_{j < r} (1 - R(l_j)), \quad
              R(l) = \frac{2^l - 1}{2^{l_{max}}}

    with l_r the label at rank r, counted from 0: the reader stops at a document with probability R (Chapelle et al., CIKM
    2009). The measure `structrank.metrics.ERR` is not relative to the ideal ranking. Needs ``relevant_from=None``; the number
    of different labels of a query and k are limited, see `structrank.oracles.graded_partial_order`.

    Parameters
    ----------
    k : int or None, default 10
        Rank cutoff; None for none.
    max_grade : float, default 4
        l_max, the highest grade of the labelling scheme.

    Examples
    --------
    >>> ERR(max_grade=1).loss([1, 0], [1, 0])
    0.5
    """

    k: int | None = 10
    max_grade: float = 4

    name: ClassVar[str] = "err"
    graded_oracles: ClassVar[Mapping] = {"po": exact.graded_partial_order}
    cascade: ClassVar[bool] = True

    def discounts(self, n: int) -> np.ndarray:
        """Return 1/(1 + r) for the first n ranks, 0 from k on."""
        return reciprocal_ranks(n, self.k)

    def check_grades(self, labels: np.ndarray) -> None:
        """Raise if a label is above the highest grade."""
        self.measure().check_labels(labels)

    def gains(self, labels: np.ndarray) -> np.ndarray:
        """Return R(label), the probability to stop."""
        return self.measure().stops(labels)

    def measure(self, relevant_from: Any = None) -> metrics.ERR:
        """Return the measure (higher is better), which needs grades."""
        return metrics.ERR(self.k, max_grade=self.max_grade)


# By name: the class, and the settings implied by the name.
CRITERIA: dict[str, tuple[type[Criterion], dict[str, Any]]] = {}
_MEASURE_OF: dict[type[Criterion], type[Measure]] = {}
_Class = TypeVar("_Class", bound=type)


def register(cls: _Class, measure: type[Measure] | None = None) -> _Class:
    """Register a class by its name: a criterion with its measure, a measure, or another class for model files.

    `StructRankSVM`, `most_violated` and `compare` then accept a criterion by its `name`; `structrank.metrics`, `compare`,
    `train_for` and `structrank.selection.polish` accept a measure by its `short` name; model files may contain objects of the
    class, and are loaded after a class of that name has been registered. On the command line, ``--import`` names a module that
    calls `register`. Names are registered for the current process; those of criteria and their measures also for the processes
    that `compare` starts.

    Parameters
    ----------
    cls : class
        A subclass of `Criterion`, most easily of `Discounted`; a frozen dataclass derived from `structrank.metrics.Measure`; a
        learner with ``get_params`` and fitted attributes that end in "_"; or a dataclass, such as a feature map.
    measure : class, default None
        Of a criterion: subclass of `structrank.metrics.Measure`, which defines the loss, see `Criterion.loss`. Fields of both
        classes are passed from one to the other. None for a criterion that defines ``measure(relevant_from)`` itself.

    Returns
    -------
    cls
        Unchanged, so that this can decorate it.

    Raises
    ------
    ValueError
        If a required attribute is missing, or the name is used by another class. A class that is defined again, as by rerunning
        a notebook cell, replaces the earlier one.

    Examples
    --------
    A criterion, and the measure that defines its loss:

    >>> from structrank import StructRankSVM, most_violated, register
    >>> @dataclass(frozen=True, repr=False)
    ... class PossibleHits(metrics.Discounted, metrics.Binary):
    ...     short: ClassVar[str] = "hits"
    ...     k: int = 5
    ...
    ...     def discounts(self, n):
    ...         return np.ones(n)
    >>> @dataclass(frozen=True)
    ... class Hits(Discounted):
    ...     k: int = 5
    ...     name: ClassVar[str] = "hits"
    >>> register(Hits, PossibleHits) is Hits
    True
    >>> most_violated([0.3, 0.2, 0.1], [0, 1, 0], criterion="hits@1").loss
    1.0

    A measure alone, with a discount that falls linearly with the rank:

    >>> @register
    ... @dataclass(frozen=True, repr=False)
    ... class Linear(metrics.Discounted, metrics.Binary):
    ...     short: ClassVar[str] = "linear"
    ...
    ...     def discounts(self, n):
    ...         return np.linspace(1.0, 0.0, n)
    >>> metrics.evaluate([0, 1, 0], [0.3, 0.2, 0.1], None, "linear")["linear"]
    0.5

    A learner, so that its models can be saved:

    >>> @register
    ... class Patient(StructRankSVM):
    ...     pass
    """
    if measure is not None or not isinstance(cls, type) or issubclass(cls, Criterion):
        _register(cls, measure)
    elif issubclass(cls, metrics.Measure):
        _register_measure(cls)
    else:
        _register_for_files(cls)
    return cls


def _register_measure(measure):
    checks.check_extension(measure, metrics.Measure, checks.SETTINGS)
    checks.check_name_is_free(measure.short, measure, metrics.MEASURES)
    metrics.MEASURES[measure.short] = measure


def _register_for_files(cls):
    name = cls.__name__
    import_public(name)
    other = classes_in_files().get(name, cls)
    if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(f"{name} is the name of a class of {other.__module__.partition('.')[0]}; choose another name.")
    if not is_dataclass(cls) and not hasattr(cls, "get_params"):
        raise ValueError(f"{name} is neither a dataclass nor a learner with get_params; only these can be saved.")
    saveable(cls)


def classes_in_files():
    """Return the classes that have been imported, by their names in model files; those of measures have a prefix.

    Examples
    --------
    >>> classes_in_files()["metrics.MAP"] is metrics.MAP
    True
    """
    found = {cls.__name__: cls for cls, _ in CRITERIA.values()}
    return found | {f"metrics.{cls.__name__}": cls for cls in metrics.MEASURES.values()} | SAVEABLE


def _check(criterion):
    if not isinstance(criterion, (Criterion, type)):
        raise ValueError(
            f"criterion={criterion!r} is not valid: expected one of {', '.join(map(repr, CRITERIA))}, or an object of a class "
            "derived from structrank.criteria.Criterion."
        )
    adding = f"structrank.register({type(criterion).__name__}, MEASURE) adds measure."
    requirements.check(criterion, "criterion", "" if getattr(criterion, "measure", None) else adding)
    if isinstance(criterion, Discounted):
        criterion.discounts(1)  # raises unless it or its measure defines them


def _register(criterion, measure=None, **settings):
    checks.check_extension(criterion, Criterion)
    made = checks.make(criterion, settings)
    if measure is None and made.measure is not None:
        measure = type(made.measure(1))
    if measure is not None:
        checks.check_extension(measure, metrics.Measure, checks.SETTINGS)
        _MEASURE_OF[criterion] = measure
    _check(made)
    metrics.parse(made.measure(1))
    checks.check_name_is_free(made.name, criterion, {name: cls for name, (cls, _) in CRITERIA.items()})
    _register_measure(measure)
    CRITERIA[made.name] = criterion, settings


def registered() -> dict[str, tuple[type[Criterion], type[Measure]]]:
    """Return the criteria registered by users, with their measures, by name.

    Examples
    --------
    >>> "map" in registered()
    False
    """
    own = {name: criterion for name, (criterion, _) in CRITERIA.items() if criterion.__module__ != __name__}
    return {name: (criterion, _MEASURE_OF[criterion]) for name, criterion in own.items()}


_register(AUC)
_register(MAP, metrics.MAP)
_register(NDCG)
_register(NDCG, k=None)
_register(MRR, metrics.MRR)
_register(DORM)
_register(ERR)


_ADVICE = (
    " A custom criterion must be registered first: structrank.register(CRITERION, MEASURE), on the command line in a module "
    "named by --import."
)


def parse(criterion: str | Criterion, k: int | str | None = "auto", discount: str = "auto", gain: Any = "auto") -> Criterion:
    """Return a criterion from its name, such as "ndcg@5" or "err@10(max_grade=2)", or the object itself, checked.

    Parameters
    ----------
    criterion : str or Criterion
        Names have the grammar of `structrank.metrics.parse`.
    k, discount, gain
        Settings of a criterion given by name that has them; "auto" for the default of the criterion.

    Returns
    -------
    Criterion

    Raises
    ------
    ValueError
        If a name is not known, or a setting contradicts the cutoff in the name or the object.

    Examples
    --------
    >>> parse("ndcg@5"), parse("mrr", k=None)
    (NDCG(k=5, discount='kdd08', gain='exp2'), MRR(k=None))
    """
    given = {"k": k, "discount": discount, "gain": gain}
    given = {
        name: checks.SETTINGS[name](name, value)
        for name, value in given.items()
        if not (isinstance(value, str) and value == "auto")
    }
    if isinstance(criterion, str):
        uncut = [name for name, (_, implied) in CRITERIA.items() if "k" in implied]
        classes = {name: cls for name, (cls, _) in CRITERIA.items()}
        name, fixed = metrics.parse_name(f"criterion={criterion!r}", criterion, classes, uncut, _ADVICE)
        cls, implied = CRITERIA[name]
        found = checks.make(cls, given | fixed | implied)
    else:
        _check(criterion)
        found, fixed = criterion, vars(criterion)
    for name in given.keys() & fixed.keys():
        if given[name] != fixed[name]:
            raise ValueError(
                f"{name}={given[name]!r} contradicts criterion={criterion!r}, whose {name} is {fixed[name]!r}; set it in one "
                f"place."
            )
    return found


def has_criterion(measure: Measure) -> bool:
    """Return whether there is a criterion to train on for a measure, see `matched_criterion`.

    Examples
    --------
    >>> has_criterion(metrics.MAP()), has_criterion(metrics.P(k=5))
    (True, False)
    """
    return type(measure) in _MEASURE_OF.values()


def matched_criterion(measure: Measure) -> Criterion:
    """Return the criterion whose loss is 1 - measure: with graded labels, or for a binary measure with its `relevant_from`.

    Parameters
    ----------
    measure : Measure

    Returns
    -------
    Criterion

    Examples
    --------
    >>> matched_criterion(metrics.parse("mrr@5"))
    MRR(k=5)
    """
    for criterion, _ in CRITERIA.values():
        if _MEASURE_OF[criterion] is type(measure):
            settings = {name: value for name, value in vars(measure).items() if (name, value) != ("gain", "binary")}
            return checks.make(criterion, settings)
    raise ValueError(
        f"measure {measure.name!r} has no criterion to train on; choose one of: {measures_of(Criterion)}. "
        "structrank.register(CRITERION, MEASURE) adds one."
    )


def measures_of(base: type) -> str:
    """Return the names of the measures whose criteria are subclasses of `base`, as text for messages.

    Examples
    --------
    >>> measures_of(AUC)
    "'auc'"
    """
    found = {_MEASURE_OF[criterion] for criterion, _ in CRITERIA.values() if issubclass(criterion, base)}
    return ", ".join(repr(metrics.usage(one.short, one)) for one in sorted(found, key=lambda one: one.short))


def _by_map_name(makers):
    """Return oracle makers by the name of their feature map; keys may be names or custom maps."""
    return {getattr(key, "name", key): maker for key, maker in makers.items()}


def exact_pairs():
    """List the pairs (criterion, feature map) that have an exact oracle, as text for messages.

    Examples
    --------
    >>> exact_pairs().split("; ")[:3]
    ['auc: po', 'map: po, dorm', 'ndcg: po, dorm']
    """
    criteria = {name: parse(name) for name in CRITERIA}
    binary = [
        f"{name}: {', '.join(_by_map_name(criterion.oracles))}" for name, criterion in criteria.items() if criterion.oracles
    ]
    graded = [
        f"{name}: {', '.join(_by_map_name(criterion.graded_oracles))}"
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
        "auto" selects the criterion's first.
    graded : bool
        Whether labels are grades rather than binary.
    decay : str, array-like or callable
        Decay of phi_dorm, if `feature_map` is a name.

    Returns
    -------
    feature_map, maker

    Raises
    ------
    ValueError
        If the pair has no exact oracle; the message lists the pairs that have one.

    Examples
    --------
    >>> find_oracle(MRR(), "auto")[0]
    FirstRelevant()
    """
    makers = criterion.graded_oracles if graded else criterion.oracles
    if isinstance(feature_map, str) and feature_map == "auto":
        feature_map = next(iter(makers or criterion.oracles or criterion.graded_oracles))
    chosen = feature_maps.parse(feature_map, decay)
    maker = _by_map_name(makers).get(chosen.name)
    if maker is None:
        labels = "graded labels (relevant_from=None)" if graded else "binary relevance"
        advice = "Set relevant_from=1, or another lowest label that counts as relevant, or use another pair. "
        if not graded:
            advice = "Set relevant_from=None for graded labels. " if criterion.graded_oracles and not criterion.oracles else ""
        raise ValueError(
            f"criterion {criterion.name!r} with feature_map {chosen.name!r} has no exact oracle for {labels}. "
            f"{advice}Exact pairs: {exact_pairs()}."
        )
    return chosen, functools.partial(exact.make, maker)
