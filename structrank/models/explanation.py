"""Explanations of linear models: the exact contribution of each feature to a score, or to the difference of two scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from structrank._support import checks
from structrank._support.text import printable
from structrank._support.typing import DataFrame, Matrix
from structrank.models.exports.linear import linear_function, split_pipeline
from structrank.models.ranker import checked_features
from structrank.plots import COLOURS, Display, plain


def explain(
    model: Any,
    X: Matrix,
    *,
    pair: tuple[int, int] | None = None,
    scaler: Any = None,
    feature_names: Sequence[str] | None = None,
) -> Explanation | PairExplanation:
    r"""Compute the contributions of features to the scores of a query's documents, or to the difference of two scores.

    .. math:: s(x) = \sum_i a_i(x), \quad a_i(x) = w_i x_i; \qquad s(x) - s(x') = \sum_i w_i (x_i - x'_i)

    where x is the input of the model, after its preparation or scaling.

    Parameters
    ----------
    model : linear model or Pipeline
        Fitted; a Pipeline of a StandardScaler or MinMaxScaler and a linear model.
    X : array-like or sparse matrix of shape (n_docs, n_features)
        The documents of one query, before preparation or scaling.
    pair : tuple of two int, default None
        Rows of two documents to compare; None explains the whole list.
    scaler : StandardScaler or MinMaxScaler, default None
        Fitted scaler that was applied to the features before training.
    feature_names : sequence of str, default None
        None uses the names seen in training, or f1, f2, ...; of prepared columns, with the names of their steps, as in log(f1).

    Returns
    -------
    Explanation, or with `pair` a PairExplanation

    Examples
    --------
    >>> from structrank import StructRankSVM
    >>> model = StructRankSVM("auc").fit([[0.0, 1.0], [1.0, 1.0]], [0, 1], qid=0)
    >>> explain(model, [[0.0, 5.0], [2.0, 3.0]], pair=(1, 0))
    Document 1 is above document 0 by 1: f1 +1.
    """
    if hasattr(model, "preparation_"):
        if scaler is not None:
            raise ValueError("scaler is given, but the model has a preparation; pass X before it, and no scaler.")
        if feature_names is None:
            feature_names = model.after_preparation().feature_names_in_.tolist()
        model, X = model._prepared(X, 0)
    function = linear_function(model, scaler, feature_names)
    learner, scaler = split_pipeline(model, scaler)
    # The scaler sees X first, but only one of both may have seen names.
    seen = [step for step in (scaler, learner) if step is not None]
    matrix = checked_features(next((step for step in seen if hasattr(step, "feature_names_in_")), seen[0]), X)
    checks.check_finite_matrix(matrix, checks.column_names(X))
    dense = np.asarray(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix).astype(np.float64)
    explanation = Explanation(function.names, dense, function.contributions(dense))
    return explanation if pair is None else explanation.pair(*_checked_pair(pair))


def _checked_pair(pair):
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ValueError(f"pair={pair!r} is not valid: expected two row numbers, such as (0, 3).")
    return pair


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Contribution of each feature to the score of each document of a list.

    Attributes
    ----------
    names : tuple of str
        Names of the features.
    values : (n_docs, n_features) array
        Features before scaling; after the preparation of the model, if it has one.
    contributions : (n_docs, n_features) array
        Each row sums to the score of the document.

    Examples
    --------
    >>> list_ = Explanation(("bm25", "age"), np.array([[1.0, 3.0], [2.0, 0.0]]), np.array([[0.5, -3.0], [1.0, 0.0]]))
    >>> list_.scores, list_.ranks
    (array([-2.5,  1. ]), array([2, 1]))
    >>> list_
    Explanation(2 documents, 2 features; largest differences by age, bm25)
    """

    names: tuple
    values: np.ndarray
    contributions: np.ndarray

    @property
    def scores(self):
        """Scores of the documents, (n_docs,)."""
        return self.contributions.sum(axis=1)

    @property
    def ranks(self):
        """Rank of each document, 1 is best; ties in row order."""
        ranks = np.empty(self.values.shape[0], dtype=np.int64)
        ranks[self._best_first()] = np.arange(1, ranks.shape[0] + 1)
        return ranks

    def _best_first(self):
        return np.argsort(-self.scores, kind="stable")

    def _by_importance(self):
        """Return the features by the standard deviation of their contributions over the list, largest first."""
        return np.argsort(-self.contributions.std(axis=0), kind="stable")

    def largest(self, n_features: int) -> list[str]:
        """Return the names of the features whose contributions differ most over the list, largest first."""
        return [self.names[place] for place in self._by_importance()[:n_features]]

    def __repr__(self):
        leading = ", ".join(map(printable, self.largest(3)))
        n_docs, n_features = self.values.shape
        return f"Explanation({n_docs} documents, {n_features} features; largest differences by {leading})"

    def pair(self, above: int, below: int) -> PairExplanation:
        """Compare the documents of two rows."""
        for name, row in (("above", above), ("below", below)):
            checks.check_number(name, row, at_least=0, integer=True)
            if row >= self.values.shape[0]:
                raise ValueError(f"{name}={row} is not valid: X has {self.values.shape[0]} rows, counted from 0.")
        return PairExplanation(self, int(above), int(below))

    def to_frame(self) -> DataFrame:
        """Return a pandas frame with one row per document, best first: rank, score and contributions."""
        import pandas as pd

        order = self._best_first()
        frame = pd.DataFrame(self.contributions[order], index=pd.Index(order, name="document"), columns=list(self.names))
        # A feature may itself be called "score".
        frame.insert(0, "score", self.scores[order], allow_duplicates=True)
        frame.insert(0, "rank", np.arange(1, order.size + 1), allow_duplicates=True)
        return frame

    def plot(self, *, n_features: int = 10, ax: Any = None) -> ExplanationDisplay:
        """Draw, see `ExplanationDisplay.plot`."""
        return ExplanationDisplay(self).plot(n_features=n_features, ax=ax)


@dataclass(frozen=True, eq=False, repr=False)
class PairExplanation:
    """Contribution of each feature to the difference of the scores of two documents.

    Attributes
    ----------
    whole : Explanation
        Explanation of the list.
    above, below : int
        Rows of the documents.

    Examples
    --------
    >>> whole = Explanation(("bm25", "age"), np.array([[1.0, 3.0], [2.0, 0.0]]), np.array([[0.5, -3.0], [1.0, 0.0]]))
    >>> why = whole.pair(1, 0)
    >>> why
    Document 1 is above document 0 by 3.5: age +3, bm25 +0.5.
    >>> why.to_frame()
             above  below  contribution
    feature
    age        0.0    3.0           3.0
    bm25       2.0    1.0           0.5
    """

    whole: Explanation
    above: int
    below: int

    @property
    def names(self):
        """Names of the features."""
        return self.whole.names

    @property
    def contributions(self):
        """Contribution of each feature to the difference, (n_features,)."""
        return self.whole.contributions[self.above] - self.whole.contributions[self.below]

    @property
    def difference(self):
        """Score of `above` minus score of `below`; negative if `above` is ranked below."""
        return float(self.contributions.sum())

    def _by_importance(self):
        return np.argsort(-np.abs(self.contributions), kind="stable")

    def __repr__(self):
        added = self.contributions
        leading = [place for place in self._by_importance()[:5] if added[place] != 0.0]
        parts = ", ".join(f"{printable(self.names[place])} {added[place]:+.3g}" for place in leading) or "no feature differs"
        others = int(np.count_nonzero(added)) - len(leading)
        rest = f", and {others} more" if others else ""
        if self.difference == 0:
            return f"Documents {self.above} and {self.below} are tied: {parts}{rest}."
        relation = "above" if self.difference > 0 else "below"
        return f"Document {self.above} is {relation} document {self.below} by {abs(self.difference):.3g}: {parts}{rest}."

    def to_frame(self) -> DataFrame:
        """Return a pandas frame with one row per feature, largest contribution first, and the values of both documents."""
        import pandas as pd

        order = self._by_importance()
        columns = {
            "above": self.whole.values[self.above],
            "below": self.whole.values[self.below],
            "contribution": self.contributions,
        }
        index = pd.Index([self.names[place] for place in order], name="feature")
        return pd.DataFrame({name: column[order] for name, column in columns.items()}, index=index)

    def plot(self, *, n_features: int = 10, ax: Any = None) -> ExplanationDisplay:
        """Draw, see `ExplanationDisplay.plot`."""
        return ExplanationDisplay(self).plot(n_features=n_features, ax=ax)


class ExplanationDisplay(Display):
    """Plot of contributions: bars for a pair, a heat map of documents and features for a list.

    Parameters
    ----------
    explanation : Explanation or PairExplanation

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    shown_ : list of str
        Features drawn, in order; the last is the sum of all other features.

    Examples
    --------
    >>> from structrank import StructRankSVM
    >>> model = StructRankSVM("auc").fit([[0.0, 1.0], [1.0, 1.0]], [0, 1], qid=0)
    >>> display = ExplanationDisplay.from_estimator(model, [[0.0, 5.0], [2.0, 3.0]], pair=(1, 0))
    >>> display.shown_, display.ax_.get_xlabel()
    (['f1', 'f2'], 'contribution to the difference of scores')
    """

    def __init__(self, explanation):
        self.explanation = explanation

    @classmethod
    def from_estimator(cls, estimator, X, *, pair=None, scaler=None, feature_names=None, n_features=10, ax=None):
        """Explain and draw; parameters as for `explain` and `plot`."""
        explanation = explain(estimator, X, pair=pair, scaler=scaler, feature_names=feature_names)
        return cls(explanation).plot(n_features=n_features, ax=ax)

    def plot(self, *, n_features: int = 10, ax: Any = None) -> Any:
        """Draw.

        Parameters
        ----------
        n_features : int, default 10
            Number of features to show, most important first; the others are summed.
        ax : matplotlib Axes, default None
            Axes to draw on; None creates a new figure.
        """
        checks.check_number("n_features", n_features, at_least=1, integer=True)
        order = self.explanation._by_importance()
        shown, others = order[:n_features], order[n_features:]
        added = np.atleast_2d(self.explanation.contributions)
        columns = [added[:, shown]]
        self.shown_ = [self.explanation.names[place] for place in shown]
        if others.size:
            columns.append(added[:, others].sum(axis=1, keepdims=True))
            self.shown_.append(f"{others.size} others")
        if isinstance(self.explanation, PairExplanation):
            self._plot_pair(np.hstack(columns), ax)
        else:
            self._plot_list(np.hstack(columns), shown.size, ax)
        return self

    def _plot_pair(self, added, ax):
        ax = self._place(ax, (6.0, 1.2 + 0.3 * len(self.shown_)))
        places = np.arange(len(self.shown_))
        colours = [COLOURS[0] if value >= 0 else COLOURS[1] for value in added[0]]
        ax.barh(places, added[0], color=colours)
        ax.axvline(0.0, color="black", linewidth=0.8)
        ax.set_yticks(places, [plain(name) for name in self.shown_])
        ax.invert_yaxis()
        ax.set_xlabel("contribution to the difference of scores")
        pair = self.explanation
        ax.set_title(f"document {pair.above} against {pair.below}: {pair.difference:+.3g}")

    def _plot_list(self, added, n_single, ax):
        # A contribution that all documents share does not change their order.
        apart = added - added.mean(axis=0)
        order = self.explanation._best_first()
        ax = self._place(ax, (1.5 + 0.5 * len(self.shown_), 1.5 + 0.25 * min(order.size, 40)))
        # Colours span the contributions of single features; the sum of all others may lie outside.
        largest = np.abs(apart[:, :n_single]).max() or 1.0
        image = ax.imshow(apart[order], cmap="PuOr_r", vmin=-largest, vmax=largest, aspect="auto")
        extend = "both" if np.abs(apart).max() > largest else "neither"
        ax.figure.colorbar(image, ax=ax, label="contribution to the score, minus the mean of the list", extend=extend)
        ax.set_xticks(np.arange(len(self.shown_)), [plain(name) for name in self.shown_], rotation=90)
        ax.set_ylabel("rank")
        step = max(1, -(-order.size // 20))
        ax.set_yticks(np.arange(0, order.size, step), np.arange(1, order.size + 1, step))
