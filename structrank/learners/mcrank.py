"""McRank: ranking by classification, with boosted trees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structrank._support import checks
from structrank._support.saveable import saveable
from structrank.learners.boosting import BoostedRanker
from structrank.learners.training import TreeParameters
from structrank.metrics import Measure

_MAX_GRADES = 64  # each grade costs one tree per round


@saveable
@dataclass(eq=False, repr=False)
class McRank(TreeParameters, BoostedRanker):
    r"""Boosted trees that learn the probability of each grade; documents are ranked by their expected grade.

    .. math:: s(x) = \sum_z z \, P(z \mid x)

    The method is pointwise: the loss of a document does not depend on the other documents of its query. The probabilities are
    learned by classification, plain (softmax over the grades, one tree per grade and round) or ordinal (one tree per threshold
    between two grades and round, :math:`P(y \ge z)`, from which the expected grade follows without subtraction:
    :math:`s = z_0 + \sum_{k \ge 1} (z_k - z_{k-1}) P(y \ge z_k)`). LightGBM or scikit-learn grows the
    trees, as for `LambdaMART`.

    Parameters
    ----------
    classification : {"plain", "ordinal"}, default "plain"
        Kind of classification, see above. With two grades, the two differ only in the effect of regularisation.
    measure : str or Measure, default "ndcg@10"
        Measure of `score` and of early stopping.
    relevant_from : float or None, default None
        Lowest label that counts as relevant, to learn binary relevance; None learns the grades.
    n_estimators, learning_rate, num_leaves, min_child_samples, min_child_weight, subsample, colsample_bytree, reg_lambda
        Of the trees and of boosting, as for `LambdaMART`.
    patience, n_jobs, random_state, verbose, missing, preparation, normalise
        As for `LambdaMART`.

    Attributes
    ----------
    grades_ : (n_grades,) array
        The distinct labels of the training set, ascending.
    trees_ : list of str
        The trees in LightGBM's text format: one entry, or with ``classification="ordinal"`` one per threshold.
    n_iter_, best_round_, history_, stop_reason_, notes_, n_features_in_, feature_names_in_
        As for `LambdaMART`.

    References
    ----------
    Li, Burges and Wu, McRank: learning to rank using multiple classification and gradient boosting, NIPS 2007; reviewed in
    section 3.8 of the KDD 2008 paper.

    Examples
    --------
    >>> from structrank import datasets
    >>> fold = datasets.make_ranking(n_queries=60, n_docs=20, n_features=4, n_grades=3, noise=0.3, random_state=0)
    >>> model = McRank("ordinal", n_estimators=20).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    >>> model.grades_, len(model.trees_)
    (array([0., 1., 2.]), 2)
    >>> bool(model.score(fold.test.X, fold.test.y, qid=fold.test.qid) > 0.6)
    True
    """

    classification: str = "plain"
    measure: str | Measure = "ndcg@10"
    relevant_from: float | None = None

    def check_parameters(self):
        """Raise if a parameter is not valid, whatever the data."""
        checks.check_choice("classification", self.classification, ("plain", "ordinal"))
        super().check_parameters()
        if self.relevant_from is not None:
            checks.check_number("relevant_from", self.relevant_from)

    def _grow(self, course):
        data = course.data
        labels = data.labels if self.relevant_from is None else (data.labels >= self.relevant_from).astype(np.float64)
        grades, classes = np.unique(labels, return_inverse=True)
        _check_grades(grades)
        if self.classification == "plain":
            course.add_booster(classes, data.row_weights, objective="multiclass", num_class=grades.shape[0])
        else:
            for threshold in range(1, grades.shape[0]):
                course.add_booster(classes >= threshold, data.row_weights, objective="binary")

        def grow(_):
            grown = [not booster.update() for booster in course.boosters]
            return 0 if any(grown) else None

        course.run(grow, lambda outputs: _expected_grades(outputs, grades))
        self.grades_ = grades

    def _loaded_outputs(self):
        checks.check_choice("classification", self.classification, ("plain", "ordinal"))
        grades = checks.check_fitted_attribute(self, "grades_", np.ndarray)
        checks.check_array("grades_", grades, "f", (grades.size,))
        _check_grades(grades)
        return (1, grades.size) if self.classification == "plain" else (grades.size - 1, 1)

    def _scores(self, outputs):
        return _expected_grades(outputs, self.grades_)


def _expected_grades(outputs, grades):
    """Compute expected grades, from class probabilities of one booster or threshold probabilities of several."""
    if outputs[0].ndim == 2:
        return outputs[0] @ grades
    return grades[0] + np.stack(outputs, axis=1) @ np.diff(grades)


def _check_grades(grades):
    if not 2 <= grades.shape[0] <= _MAX_GRADES:
        raise ValueError(
            f"y has {grades.shape[0]} different label(s); McRank learns the probability of each grade and accepts 2 to "
            f"{_MAX_GRADES}. Round labels to grades first."
        )
