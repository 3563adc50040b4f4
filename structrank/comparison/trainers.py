"""The rows of a comparison: the default learners, and which optional parts of a learner `compare` uses."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from structrank import criteria, metrics
from structrank._support import checks
from structrank._support.content import describe
from structrank._support.typing import ArrayLike, Matrix, NDArray
from structrank.feature_maps import Permutation
from structrank.learners.boosting import BoostedRanker, library_notes
from structrank.learners.mcrank import McRank
from structrank.learners.structured_trees import StructRankTrees
from structrank.metrics import Measure
from structrank.models.ranker import Ranker
from structrank.selection.candidates import uses_grades
from structrank.selection.matching import MeasureMatched
from structrank.svm import StructRankSVM


class Row:
    """A row of a comparison: an estimator, and which of the optional parts of a learner it has.

    Every estimator has ``fit(X, y, qid=...)`` and ``predict(X)``. The following are used if present:

    - ``fit_path(X, y, qid=, Cs=, checkpoint=)`` and ``measures()``, without a parameter `Cs`: C is chosen by `compare`, see
      `structrank.choose_C`;
    - a parameter `validation` of ``fit``: receives the validation part, for example for early stopping;
    - ``check_parameters()`` and ``check_labels(labels)``: called before anything is trained;
    - `relevant_from`: training needs queries with relevant and irrelevant documents (None: with different labels);
    - after training, ``health_.vacuous`` (whether the bound is vacuous) and ``notes_`` (texts for the notes of the table).

    Parameters
    ----------
    name : str
    estimator : object
        Never trained; `fresh` returns copies.

    Examples
    --------
    >>> row = Row("MAP", StructRankSVM("map"))
    >>> row.chooses_C, row.takes_validation, row.needs_relevance
    (True, False, True)
    """

    def __init__(self, name, estimator):
        missing = [method for method in ("fit", "predict") if not callable(getattr(estimator, method, None))]
        if missing or isinstance(estimator, type):
            found = f"the class {estimator.__name__}" if isinstance(estimator, type) else repr(estimator)
            raise ValueError(
                f"trainer {name!r} is {found}; expected an object with fit(X, y, qid=...) and predict(X)"
                + (f", missing: {', '.join(missing)}." if missing else ".")
            )
        self.name, self.estimator = name, estimator
        if hasattr(estimator, "check_parameters"):
            try:
                estimator.check_parameters()
            except ValueError as error:
                raise ValueError(f"trainer {name!r}: {error}") from None

    @property
    def chooses_C(self):
        """Whether `compare` chooses C, from a path of models."""
        return hasattr(self.estimator, "fit_path") and not hasattr(self.estimator, "Cs")

    @property
    def takes_validation(self):
        """Whether ``fit`` has a parameter `validation`."""
        return "validation" in inspect.signature(self.estimator.fit).parameters

    @property
    def needs_relevance(self):
        """Whether training needs relevant and irrelevant documents of a query; `relevant_from` of the estimator says which."""
        return hasattr(self.estimator, "relevant_from")

    def fresh(self):
        """Return an untrained copy of the estimator."""
        return clone(self.estimator) if hasattr(self.estimator, "get_params") else copy.deepcopy(self.estimator)

    def fingerprint(self):
        """Return a text of all that the trained model depends on, besides the data."""
        # Learners of this package return the same model for any number of threads.
        text = describe(self.estimator, leave_out=("n_jobs", "verbose") if isinstance(self.estimator, Ranker) else ())
        if isinstance(self.estimator, BoostedRanker):
            text += "".join(library_notes())
        # A criterion given by name may be the user's own; the name does not include its settings.
        return text + describe(self.estimator.parsed_criteria()) if hasattr(self.estimator, "parsed_criteria") else text


class Pointwise(BaseEstimator):
    """A scikit-learn regressor as a row of a comparison: it predicts the label of each document by itself.

    Parameters
    ----------
    regressor : estimator
        Has ``fit(X, y)`` and ``predict(X)``; it is not modified.
    relevant_from : float or None, default None
        Lowest label that counts as relevant, to train on binary relevance; None trains on the labels.

    Attributes
    ----------
    regressor_ : estimator
        The trained regressor.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from structrank import datasets
    >>> train = datasets.make_ranking(n_queries=20, n_docs=8, n_features=3, random_state=0).train
    >>> Pointwise(Ridge()).fit(train.X, train.y, qid=train.qid).predict(train.X).shape == train.y.shape
    True
    """

    def __init__(self, regressor: Any, relevant_from: float | None = None) -> None:
        self.regressor = regressor
        self.relevant_from = relevant_from

    def fit(self, X: Matrix, y: ArrayLike, qid: ArrayLike | None = None) -> Self:
        """Train on all documents; `qid` makes no difference."""
        labels = np.asarray(y, dtype=np.float64)
        if self.relevant_from is not None:
            labels = (labels >= self.relevant_from).astype(np.float64)
        self.regressor_ = clone(self.regressor).fit(X, labels)
        return self

    def predict(self, X: Matrix) -> NDArray[np.float64]:
        """Score documents; higher is better."""
        return self.regressor_.predict(X)


def paper_trainers(relevant_from: float = 1, discount: str = "kdd08") -> dict[str, Any]:
    """Return the rows of the KDD 2008 paper's Figures 1 and 9, untrained.

    All structured rows are `StructRankSVM` with ``bound="convex"``; the bound of DORM is not convex all the same, see
    `structrank.training.ramp`.

    - RankSVM (Figure 1; not printed in Figure 9): the hinge loss of each pair of documents of a query with different labels,
      each pair with the same weight. It uses labels as grades, as RankSVM does: ``StructRankSVM("auc", query_weight="pairs",
      relevant_from=None)``. AUC differs in that queries have the same weight, and in binary relevance.
    - MRR has a row for each feature map (Figure 7); Figure 9 prints phi_mrr.
    - COMBO is MAP + NDCG-NC + MRR, with a row for each kind of slacks (section 3.7; the paper names components "variously").
      MRR has the feature map phi_po here: phi_mrr grows with the length of the lists and drowns the other parts (on OHSUMED of
      LETOR 2.0, cleaned, test MAP is .611 with phi_po, .569 with phi_mrr, and .578 in the paper).
    - The decay of DORM is cut at 30 ranks (section 4.4). The paper leaves open which of several ideal rankings is meant; here
      it is the one that orders documents with the same label by score. With the mean over all of them, the bound is vacuous on
      digits, on synthetic data and on webis-clueweb09 (``feature_map="dorm", decay="sqrt@30"``).
    - McRank has 30 rounds (section 4.5) on binary relevance. LightGBM grows its trees, ``pip install structrank[trees]``, or
      scikit-learn where LightGBM is not installed, which a note of the table states.

    Parameters
    ----------
    relevant_from : float, default 1
        Lowest label that counts as relevant.
    discount : {"kdd08", "log2"}, default "kdd08"
        Discount of the criteria that have one.

    Returns
    -------
    dict
        From names to trainers.

    Examples
    --------
    >>> list(paper_trainers())
    ['RankSVM', 'AUC', 'MAP', 'NDCG', 'NDCG-NC', 'MRR (phi_mrr)', 'MRR (phi_po)', 'COMBO (separate slacks)', \
'COMBO (shared slacks)', 'DORM', 'McRank']
    """
    make = _row_maker(relevant_from, discount)
    combo = functools.partial(make, ["map", "ndcg-nc", "mrr"], feature_map="po")
    measure = metrics.NDCG(k=10, gain="binary", discount=discount, relevant_from=relevant_from)
    return {
        "RankSVM": StructRankSVM("auc", query_weight="pairs", relevant_from=None),
        "AUC": make("auc"),
        "MAP": make("map"),
        "NDCG": make("ndcg"),
        "NDCG-NC": make("ndcg-nc"),
        "MRR (phi_mrr)": make("mrr", feature_map="mrr"),
        "MRR (phi_po)": make("mrr", feature_map="po"),
        "COMBO (separate slacks)": combo(slack="separate"),
        "COMBO (shared slacks)": combo(slack="shared"),
        "DORM": make("dorm", feature_map=Permutation("sqrt@30", ties="score")),
        "McRank": McRank(measure=measure, n_estimators=30, relevant_from=relevant_from),
    }


_RAMP_ROWS, _TREES, _TRAINED_FOR = ("MRR, ramp", "NDCG, ramp"), "MAP, trees", "trained for "


def is_below_the_rule(name):
    """Return whether a row is one of the default rows that are not in the paper; the table draws a rule above the first."""
    return name in (*_RAMP_ROWS, _TREES) or name.startswith(_TRAINED_FOR)


def default_trainers(
    relevant_from: float = 1,
    discount: str = "kdd08",
    *,
    Cs: Sequence[float] | None = None,
    random_state: int = 0,
    measures: Mapping[str, Measure] | None = None,
) -> dict[str, Any]:
    """Return the default rows of `compare`: those of the paper, and below a rule rows that are not in it.

    The first group is `paper_trainers`. The second group is MRR and NDCG with the ramp bound (see `structrank.training.ramp`),
    which is not vacuous on long lists, `structrank.selection.matching.MeasureMatched`, which chooses the criterion and its
    bound for a measure, and MAP with boosted trees (`structrank.StructRankTrees`) instead of a linear model.

    Parameters
    ----------
    relevant_from, discount
        As for `paper_trainers`.
    Cs : sequence of float, default None
        Candidates for C of `MeasureMatched`; None for its default.
    random_state : int, default 0
        Seed of `MeasureMatched`.
    measures : dict, default None
        Columns, by name. Those that distinguish grades, such as ``{"ndcg@10": metrics.NDCG(k=10)}``, have a row that is trained
        for them, in place of the default row of the same name if there is one.

    Returns
    -------
    dict
        From names to trainers.

    Examples
    --------
    >>> list(default_trainers())[-6:]
    ['MRR, ramp', 'NDCG, ramp', 'trained for MRR@10', 'trained for NDCG@10', 'trained for MAP', 'MAP, trees']
    >>> list(default_trainers(measures={"err@10": metrics.ERR(k=10)}))[-2:]
    ['trained for ERR@10', 'MAP, trees']
    """
    rows, make = paper_trainers(relevant_from, discount), _row_maker(relevant_from, discount)
    rows |= dict(zip(_RAMP_ROWS, (make("mrr", bound="ramp"), make("ndcg", bound="ramp")), strict=True))
    settings: dict[str, Any] = {"relevant_from": relevant_from, "discount": discount, "random_state": random_state}
    settings |= {} if Cs is None else {"Cs": tuple(Cs)}
    graded = {name: measure for name, measure in (measures or {}).items() if uses_grades(measure)}
    for name, measure in {"mrr@10": "mrr@10", "ndcg@10": "ndcg@10", "map": "map", **graded}.items():
        short, *more = name.split(" ", 1)
        rows[" ".join([_TRAINED_FOR + short.upper(), *more])] = MeasureMatched(measure, **settings)
    rows[_TREES] = StructRankTrees("map", relevant_from=relevant_from, discount=discount, patience=20)
    return rows


def _row_maker(relevant_from, discount):
    return functools.partial(StructRankSVM, relevant_from=relevant_from, discount=discount, decay="sqrt@30")


def as_trainers(trainers, relevant_from=1, discount="kdd08", Cs=None, random_state=0, measures=None) -> dict[str, Any]:
    """Return what `compare` accepts as trainers as a dict from names to estimators.

    Examples
    --------
    >>> list(as_trainers(["auc", "MRR (phi_po)"]))
    ['AUC', 'MRR (phi_po)']
    """
    default = default_trainers(relevant_from, discount, Cs=Cs, random_state=random_state, measures=measures)
    if trainers is None:
        return default
    chosen: dict[str, Any] = {}
    if isinstance(trainers, Mapping):
        for name, trainer in trainers.items():
            chosen[unique_name("trainer", name, chosen)] = trainer
    else:
        make = _row_maker(relevant_from, discount)
        paper = paper_trainers(relevant_from, discount)
        known = paper | default
        by_name = {name.lower(): name for name in known}
        for given in [trainers] if isinstance(trainers, str) or hasattr(trainers, "fit") else trainers:
            if hasattr(given, "fit"):
                raise ValueError(f"trainers has {given!r} without a name; name the row, as in {{'mine': {given!r}}}.")
            if str(given).lower() == "paper":
                chosen |= {name: trainer for name, trainer in default.items() if name in paper}
                continue
            name = by_name.get(str(given).lower(), given)
            if name not in known:
                with contextlib.suppress(ValueError):  # of names that are no criterion
                    criteria.parse(name)
                    name = name.lower()
                    known[name] = make(name)
            checks.check_choice("trainer", name, ("paper", *known))
            chosen[name] = known[name]
    if not chosen:
        raise ValueError("trainers is empty; expected at least one.")
    return chosen


def unique_name(what, given, others):
    """Return a name as text that can be written to any file; raise if it is taken."""
    name = str(given).encode("utf-8", "backslashreplace").decode()
    if name in others:
        raise ValueError(f"two {what}s are called {name!r}; expected a name of its own for each.")
    return name
