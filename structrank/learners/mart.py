"""LambdaMART: boosted trees fitted to lambda gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from structrank._kernels.lambdas import add_lambdas, scale_by_deviation
from structrank._support import checks
from structrank._support.saveable import saveable
from structrank._support.typing import ArrayLike, Matrix, NDArray, Path
from structrank.datasets import Dataset
from structrank.learners.boosting import BoostedRanker, Course
from structrank.learners.objectives import Objective, parse_objective
from structrank.learners.training import Round, TreeParameters
from structrank.metrics import Measure
from structrank.training.data import score_rows


@saveable
@dataclass(eq=False, repr=False)
class LambdaMART(TreeParameters, BoostedRanker):
    r"""Boosted trees that are trained on lambdas, for a measure or for several at once.

    In each round, the force :math:`\lambda_j` on document j is the sum over the documents k of its query with another label of

    .. math:: \lambda_{jk} = |\Delta M(j, k)| \frac{1}{1 + e^{s_j - s_k}}

    with positive sign if j has the larger label and negative sign otherwise, where :math:`\Delta M` is the change of the
    measure M if the two swap ranks. A regression tree is fitted to the forces and added to the scores s. Documents of equal
    score are ranked in an order that depends on their features only, not on the order of the rows.

    LightGBM grows the trees (``pip install structrank[trees]``), leaf by leaf, with its own split criterion: the split with the
    largest gain :math:`(\sum \lambda)^2 / (\sum h + \text{reg\_lambda})`, summed over both sides. With leaf values
    "newton", h are the second derivatives of the cost; with "gradient", h is the weight of the query and the gain is the
    decrease of the squared error. The papers split by squared error always, and use second derivatives for leaf values.
    Where LightGBM is not installed, scikit-learn grows the trees by the same criterion with reg_lambda = 0 (in leaf values,
    `reg_lambda` counts as above). That takes longer, and its models differ: thresholds are not limited to 255 bins of each
    feature. `notes_` states it. The format is the same, so that all exports and files work, with either library.

    Parameters
    ----------
    objective : str, Measure or Objective, default "ndcg@30"
        Objective of the lambdas. "ndcg", "ndcg@k", "map", "mrr", "mrr@k" or None (equal weights, RankNet's cost) for the
        lambdas above; or from `structrank.learners.objectives`: `Graded` for several measures over several label sources,
        `IterationDependent` for one objective early in training and another late.
    measure : str or Measure, default "ndcg@10"
        Measure of `score` and of early stopping. Its cutoff may be smaller than that of the objective: lambdas of pairs at
        lower ranks carry training signal too.
    leaf_values : {"auto", "newton", "gradient"}, default "auto"
        Value of a leaf, before the learning rate: "newton" for the sum of lambdas over the sum of second derivatives of
        the cost, "gradient" for the mean of lambdas divided by their standard deviation within each query (section 5.3 of
        the paper). "auto" takes Newton steps if second derivatives cannot be negative.
    margin : float or None, default None
        Not part of the papers: divide :math:`\lambda_{jk}` by ``margin + |s_j - s_k|``, which emphasises pairs of close
        scores, similar to LightGBM's lambdarank with its default 0.01. None for the lambdas above, as in the papers.
    n_estimators : int, default 100
        Maximum number of rounds, one tree each.
    learning_rate : float, default 0.1
    num_leaves : int, default 31
        Maximum number of leaves of a tree.
    min_child_samples : int, default 20
        Minimum number of documents in a leaf.
    min_child_weight : float, default 1e-3
        Minimum sum of second derivatives in a leaf.
    subsample : float, default 1.0
        Share of the documents drawn for each tree.
    colsample_bytree : float, default 1.0
        Share of the features drawn for each tree.
    reg_lambda : float, default 0.0
        Added to the sum of second derivatives in a leaf; shrinks its value.
    patience : int or None, default None
        Stop after this many rounds without a better value on the validation set; None disables early stopping.
    n_jobs : int or None, default None
        Threads: None is 1, -1 all cores. Results are bit-identical for any `n_jobs`.
    random_state : int, default 0
        Seed of the subsamples.
    verbose : int, default 0
        1 shows a progress line; 0 prints nothing.
    missing, preparation, normalise
        From raw values to features, as for `StructRankSVM`.

    Attributes
    ----------
    trees_ : list of str
        The trees in LightGBM's text format, one entry: ``lightgbm.Booster(model_str=model.trees_[0])`` reads it.
    n_iter_ : int
        Number of rounds.
    best_round_ : int
        Number of rounds kept: up to the best on the validation set, if given.
    history_ : History
        A `structrank.learners.training.Round` per round: the measure on both sets, pairs with a non-zero lambda, seconds.
    stop_reason_ : str
        "n_estimators", "patience", "callback", "interrupted" (Ctrl-C), or "no split" if no further tree could be grown.
    notes_ : tuple of str
        Remarks on training: that scikit-learn grew the trees.
    n_features_in_ : int
    feature_names_in_ : (n_features,) array
        Defined if X has string column names.

    References
    ----------
    Wu, Burges, Svore and Gao, Adapting boosting for information retrieval measures, Information Retrieval 2010. Svore, Volkovs
    and Burges, Learning to rank with multiple objective functions, WWW 2011 ("the paper").

    Examples
    --------
    >>> from structrank import datasets
    >>> fold = datasets.make_ranking(n_queries=60, n_docs=20, n_features=4, n_grades=3, noise=0.3, random_state=0)
    >>> train, test = fold.train, fold.test
    >>> model = LambdaMART(n_estimators=20, patience=5).fit(train.X, train.y, qid=train.qid, validation=fold.validation)
    >>> model.predict(test.X).shape == test.y.shape
    True

    Two label sources, the second for pairs with equal labels in the first:

    >>> from structrank.learners.objectives import Graded
    >>> clicks = datasets.make_click_labels(train.X, train.y, train.qid, random_state=0)
    >>> both = LambdaMART(Graded(), n_estimators=20).fit(train.X, train.y, qid=train.qid, labels={"clicks": clicks})
    >>> both.n_iter_
    20
    """

    objective: str | Measure | Objective | None = "ndcg@30"
    measure: str | Measure = "ndcg@10"
    leaf_values: str = "auto"
    margin: float | None = None

    def fit(  # type: ignore[override]  # `labels` stands before the arguments of the other learners
        self,
        X: Matrix,
        y: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        labels: dict[str, Any] | None = None,
        validation: Dataset | tuple | None = None,
        callback: Callable[[Round], object] | None = None,
        checkpoint: Path | None = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X, y, qid, sample_weight, validation, callback, checkpoint
            As for `McRank.fit`.
        labels : dict, default None
            The other label sources of a `Graded` objective: mapping from names to array-likes of shape (n_docs,), such as
            ``{"clicks": rates}``. nan marks a document without such a label.
        """
        return self._fit(X, y, qid, sample_weight, validation, callback, checkpoint, labels=labels)

    def _train(self, sets, callback, checkpoint, labels):
        course = Course(self, sets, callback, checkpoint, labels=labels)
        objective = self._checked_objective()
        labels = check_label_sources(labels, objective, sets.given)
        labels = {name: column[sets.rows] for name, column in labels.items()}
        lambdas = _Lambdas(objective, course.data, labels, self.n_estimators, self._newton(), self.margin)
        course.add_booster(np.zeros(course.data.labels.shape[0]), objective="none")

        def grow(number):
            no_split = course.boosters[0].update(fobj=lambda scores, _: lambdas(scores, number))
            return None if no_split else lambdas.effective_pairs

        course.run(grow, self._scores)
        return self._keep_trees(course)

    def staged_predict(self, X: Matrix, qid: ArrayLike | None = None) -> Iterator[NDArray[np.float64]]:
        """Score documents by the first tree, the first two, and so on.

        Parameters
        ----------
        X, qid
            As for `predict`.

        Yields
        ------
        (n_docs,) array
            One array per tree; the last holds the scores of `predict`.
        """
        check_is_fitted(self)
        (learner, X), scores = self._prepared(X, qid), 0.0
        for number in range(self.best_round_):
            scores = scores + self._scores(learner._outputs(X, start_iteration=number, num_iteration=1))
            yield scores

    def _scores(self, outputs):
        return outputs[0]

    def _newton(self):
        if self.leaf_values == "auto":
            return self._checked_objective().convex
        return self.leaf_values == "newton"

    def _checked_objective(self):
        objective = parse_objective(self.objective)
        if self.margin is not None:
            checks.check_number("margin", self.margin, above=0)
        checks.check_choice("leaf_values", self.leaf_values, ("auto", "newton", "gradient"))
        if self.leaf_values == "newton" and not objective.convex:
            raise ValueError(
                "leaf_values='newton' needs non-negative second derivatives, which the sigmoid cost does not have; "
                "choose 'gradient' or 'auto'."
            )
        return objective


class _Lambdas:
    """First and second derivatives for LightGBM, in the caller's row order, round by round.

    Parameters
    ----------
    objective : Objective
    data : RankingData
    labels : dict
        Mapping from the names of label sources besides y to columns.
    n_rounds : int
    newton : bool
        Whether to return second derivatives; otherwise lambdas are normalised within each query, and second derivatives are 1.
    margin : float or None
    """

    def __init__(self, objective, data, labels, n_rounds, newton, margin):
        self.grouping, self.query_weights, self.newton = data.grouping, data.query_weights, newton
        self.rows = _by_content(data)
        self.terms = objective.terms(n_rounds)
        labels = {name: values[self.rows] for name, values in {None: data.labels, **labels}.items()}
        self.plans = [term.plan(labels, data.grouping.indptr, data.query_weights) for term in self.terms]
        if margin is not None:
            self.plans = [plan._replace(margin=float(margin)) for plan in self.plans]
        n_docs = data.labels.shape[0]
        self.lambdas, self.curvatures = np.empty(n_docs), np.empty(n_docs)
        self.effective_pairs = 0
        self(np.zeros(n_docs), 0)
        if not self.effective_pairs:
            raise ValueError(
                "no query carries a training signal: the objective has no pair of non-zero weight in any query. "
                "Check labels, qid and sample_weight."
            )

    def __call__(self, scores, number):
        """Compute gradients and second derivatives of the cost for round `number`, counted from 0."""
        rows = self.rows
        self.lambdas[:], self.curvatures[:] = 0.0, 0.0
        ordered = scores[rows]
        self.effective_pairs = sum(
            add_lambdas(ordered, plan, term.weights[number], self.lambdas, self.curvatures)
            for plan, term in zip(self.plans, self.terms, strict=True)
        )
        if not self.newton:
            weights = np.repeat(self.query_weights, self.grouping.sizes)
            scale_by_deviation(self.lambdas, self.grouping.indptr)
            self.lambdas *= weights
            self.curvatures[:] = weights
        gradient, second = np.empty(rows.shape[0]), np.empty(rows.shape[0])
        gradient[rows] = -self.lambdas
        second[rows] = self.curvatures
        return gradient, second


def _by_content(data):
    """Return the rows of each query in a pseudo-random order that depends on their features only.

    Equal scores rank in this order; in the first round all scores are equal. In the order of the caller's rows, training on a
    file that lists relevant documents first would start from a perfect ranking.
    """
    rows = data.grouping.rows
    mixed = score_rows(data.X, np.random.default_rng(0).standard_normal(data.n_features)) + 0.0  # no -0.0
    # Drop the last bits, which differ between sparse and dense X; the multiplier scatters close values.
    keys = (mixed.view(np.uint64) >> np.uint64(24)) * np.uint64(0x9E3779B97F4A7C15)
    return rows[np.lexsort((keys[rows], np.repeat(np.arange(data.grouping.n_queries), data.grouping.sizes)))]


def check_label_sources(labels, objective, data):
    """Return the label sources besides y that an objective needs, checked, as float64 arrays.

    Parameters
    ----------
    labels : dict or None
        Argument of ``fit``.
    objective : Objective
    data : RankingData

    Returns
    -------
    dict
        Mapping from names to (n_docs,) arrays.

    Examples
    --------
    >>> from structrank.training.data import RankingData
    >>> from structrank.learners.objectives import Graded
    >>> check_label_sources({"clicks": [0.5, None]}, Graded(), RankingData([[1.0], [2.0]], [0, 1], qid=0))
    Traceback (most recent call last):
    ...
    ValueError: labels['clicks'] has None at row 1; expected numbers, nan where a document has no label.
    """
    labels = {} if labels is None else labels
    if not isinstance(labels, dict):
        raise ValueError(f"labels is a {type(labels).__name__}; expected a dict from label sources to columns, or None.")
    missing = [name for name in objective.sources if name not in labels]
    if missing:
        raise ValueError(
            f"labels has no {missing[0]!r}, which the objective needs; call fit(..., labels={{{missing[0]!r}: ...}}) with one "
            "value per row of X, nan where a document has none."
        )
    unused = [name for name in labels if name not in objective.sources]
    if unused:
        needs = ", ".join(map(repr, objective.sources)) or "none"
        raise ValueError(f"labels has {unused[0]!r}, which the objective does not read; it reads {needs} besides y.")
    expected = "numbers, nan where a document has no label"
    n_docs = data.labels.shape[0]
    found = {name: checks.as_number_column(labels[name], n_docs, f"labels[{name!r}]", expected) for name in labels}
    for term in objective.terms(1):
        if term.measure is None:
            continue
        if term.source is None:
            term.measure.check_labels(data.labels)
            continue
        column = found[term.source]
        if np.isnan(column).all():
            raise ValueError(f"labels[{term.source!r}] is nan at every row; expected a label for some documents.")
        try:
            term.measure.check_labels(np.nan_to_num(column, nan=0.0, posinf=np.inf, neginf=-np.inf))
        except ValueError as error:  # the message names y
            raise ValueError(f"labels[{term.source!r}] {str(error).removeprefix('y ')}") from None
    return found
