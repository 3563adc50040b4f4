"""The rows of a comparison: which learners, and what `compare` needs to know of each."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Mapping
from typing import Any

from sklearn.base import clone

from structrank import criteria
from structrank._support import checks
from structrank._support.content import describe
from structrank.models.ranker import Ranker
from structrank.svm import StructRankSVM


class Trainer:
    """A row of a comparison: an estimator, and which of the optional parts of a learner it has.

    Every estimator has ``fit(X, y, qid=...)`` and ``predict(X)``. Beyond that, `compare` uses whatever is there:

    - ``fit_path(X, y, qid=, Cs=, checkpoint=)``: C is chosen for it, see `structrank.selection.choosing_c`;
    - a parameter `validation` of ``fit``: it gets the validation part, for example to stop early;
    - ``check_parameters()`` and ``check_labels(labels)``: called before anything is trained;
    - `relevant_from`: training needs queries with relevant and irrelevant documents (None: with different labels);
    - ``health_.vacuous`` after training: whether anything was learned.

    Parameters
    ----------
    name : str
    estimator : object
        Never trained itself; see `fresh`.

    Examples
    --------
    >>> trainer = Trainer("MAP", StructRankSVM("map"))
    >>> trainer.chooses_C, trainer.takes_validation, trainer.needs_relevance
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
        """Whether C is chosen for it, from a path of models."""
        return hasattr(self.estimator, "fit_path")

    @property
    def takes_validation(self):
        """Whether its ``fit`` has a parameter `validation`."""
        return "validation" in inspect.signature(self.estimator.fit).parameters

    @property
    def needs_relevance(self):
        """Whether it learns from relevant and irrelevant documents of a query."""
        return hasattr(self.estimator, "relevant_from")

    @property
    def relevant_from(self):
        """Lowest label that counts as relevant in training; None for grades."""
        return self.estimator.relevant_from

    def check_labels(self, labels):
        """Raise if the estimator cannot be trained on these labels."""
        if hasattr(self.estimator, "check_labels"):
            self.estimator.check_labels(labels)

    def fresh(self):
        """Return an untrained copy of the estimator."""
        return clone(self.estimator) if hasattr(self.estimator, "get_params") else copy.deepcopy(self.estimator)

    def fingerprint(self):
        """Return a text of all that the trained model depends on, beside the data."""
        # Learners of this package return the same model for any number of threads.
        text = describe(self.estimator, leave_out=("n_jobs", "verbose") if isinstance(self.estimator, Ranker) else ())
        # A criterion given by name may be the user's own, whose settings the name does not tell.
        return text + describe(self.estimator.parsed_criteria()) if hasattr(self.estimator, "parsed_criteria") else text


def default_trainers(relevant_from: float = 1, discount: str = "kdd08", bound: str = "auto") -> dict[str, StructRankSVM]:
    """Return the rows of the paper's Figure 9 that are structured SVMs, each an untrained `StructRankSVM`.

    MRR has a row for each feature map (Figure 7), COMBO one for each kind of slacks (section 3.7); the decay of DORM is cut
    at 30 ranks (section 4.4).

    Parameters
    ----------
    relevant_from : float, default 1
        Lowest label that counts as relevant.
    discount : {"kdd08", "log2"}, default "kdd08"
        Discount of the criteria that have one.
    bound : {"auto", "convex", "ramp"}, default "auto"
        See `StructRankSVM`; "auto" takes the ramp bound where the convex bound is vacuous (clipped criteria, long lists).

    Returns
    -------
    dict
        From names to trainers.

    Examples
    --------
    >>> list(default_trainers())[:4]
    ['AUC', 'MAP', 'NDCG', 'NDCG-NC']
    """
    # COMBO takes AUC, MAP and NDCG-NC, all with phi_po. Chosen on held-out queries, by the mean of mrr@10, ndcg@10
    # and map for the best C, with separate / shared slacks (four digits splits; synthetic sets like OHSUMED and MQ2008, and
    # with long lists; inner folds of webis-clueweb09's training parts):
    #                          digits        like OHSUMED  like MQ2008   long lists    webis         mean
    #   MAP + NDCG-NC + MRR    .788 / .787   .673 / .664   .618 / .614   .594 / .581   .454 / .447   .625 / .619
    #   AUC + MAP + MRR        .787 / .788   .678 / .665   .620 / .615   .593 / .584   .460 / .459   .628 / .622
    #   AUC + MAP + NDCG-NC    .787 / .785   .677 / .674   .619 / .619   .588 / .586   .459 / .456   .626 / .624
    # With shared slacks MRR, whose maximum is the largest of most queries, dominates the others, even with phi_po
    # and not clipped; phi_mrr drowns them in either case.
    make = _row_maker(relevant_from, discount, bound)
    combo = functools.partial(make, ["auc", "map", "ndcg-nc"])
    return {
        "AUC": make("auc"),
        "MAP": make("map"),
        "NDCG": make("ndcg"),
        "NDCG-NC": make("ndcg-nc"),
        "MRR (phi_mrr)": make("mrr", feature_map="mrr"),
        "MRR (phi_po)": make("mrr", feature_map="po"),
        "COMBO (separate slacks)": combo(slack="separate"),
        "COMBO (shared slacks)": combo(slack="shared"),
        "DORM": make("dorm"),
    }


def _row_maker(relevant_from, discount, bound):
    return functools.partial(StructRankSVM, relevant_from=relevant_from, discount=discount, decay="sqrt@30", bound=bound)


def as_trainers(trainers, relevant_from=1, discount="kdd08", bound="auto") -> dict[str, Any]:
    """Return what `compare` accepts as trainers as a dict from names to estimators.

    Examples
    --------
    >>> list(as_trainers(["auc", "MRR (phi_po)"]))
    ['AUC', 'MRR (phi_po)']
    """
    default = default_trainers(relevant_from, discount, bound)
    if trainers is None:
        return default
    chosen: dict[str, Any] = {}
    if isinstance(trainers, Mapping):
        for name, trainer in trainers.items():
            chosen[unique_name("trainer", name, chosen)] = trainer
    else:
        make = _row_maker(relevant_from, discount, bound)
        known = default | {name: make(name) for name in criteria.registered()}
        by_name = {name.lower(): name for name in known}
        for given in [trainers] if isinstance(trainers, str) else trainers:
            name = by_name.get(str(given).lower(), given)
            checks.check_choice("trainer", name, tuple(known))
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
