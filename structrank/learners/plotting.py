"""Figures of learners other than `StructRankSVM`; matplotlib is imported when something is drawn."""

from __future__ import annotations

import numpy as np

from structrank._support import checks
from structrank.learners.diagnostics import labels_at_top, lambda_agreement, lambda_contribution
from structrank.learners.optimality import local_optimality
from structrank.learners.weight_curves import smoothness
from structrank.plots import Display, LinesDisplay, add_legend


class LocalOptimalityDisplay(Display):
    """The measure around the weights of a ranker: Figures 1 to 4 and 6 of Donmez, Svore and Burges (SIGIR 2009).

    Parameters
    ----------
    result : LocalOptimality
        Result of `local_optimality`.

    Examples
    --------
    >>> from structrank import datasets
    >>> from structrank.learners import LambdaRank
    >>> train = datasets.make_ranking(n_queries=20, n_docs=8, n_features=3, random_state=0).train
    >>> model = LambdaRank("map", hidden_units=0, max_epochs=5).fit(train.X, train.y, qid=train.qid)
    >>> display = LocalOptimalityDisplay.from_estimator(model, train.X, train.y, qid=train.qid, n_directions=20)
    >>> display.ax_.get_xlabel(), len(display.lines_)
    ('step / |w|', 4)
    """

    def __init__(self, result):
        self.result = result

    @classmethod
    def from_estimator(cls, estimator, X, y, *, qid=None, measure=None, kind="directions", n_shown=4, ax=None, **settings):
        """Test a fitted ranker by `local_optimality` and draw; parameters as for it and for `plot`."""
        settings.setdefault("each_weight", kind == "weights")
        return cls(local_optimality(estimator, X, y, qid, measure, **settings)).plot(kind, n_shown=n_shown, ax=ax)

    def plot(self, kind="directions", *, n_shown=4, ax=None):
        """Draw the measure against the step, relative to the norm of the weights.

        Parameters
        ----------
        kind : {"directions", "weights"}, default "directions"
            Random directions, from step 0 on, or single weights, moved down and up.
        n_shown : int, default 4
            Number of curves: the directions with the highest values, or the first weights.
        ax : matplotlib Axes, default None
            Axes to draw on; None creates a figure.
        """
        checks.check_choice("kind", kind, ("directions", "weights"))
        checks.check_number("n_shown", n_shown, at_least=1, integer=True)
        result = self.result
        if kind == "directions":
            shown = np.argsort(-result.curves.max(axis=1), kind="stable")[:n_shown]
            steps, curves, middle = result.steps, result.curves[shown], 0
        elif result.weight_curves is None:
            raise ValueError("the result has no curves of single weights; call local_optimality with each_weight=True.")
        else:
            shown = np.arange(min(n_shown, result.weight_curves.shape[0]))
            steps, curves, middle = result.weight_steps, result.weight_curves[shown], result.steps.size
        steps, curves = np.insert(steps, middle, 0.0), np.insert(curves, middle, result.value, axis=1)
        curves = {int(number): (steps, curve) for number, curve in zip(shown, curves, strict=True)}
        label = f"{kind[:-1]} {{}}".format
        ax = self._lines(ax, curves, "step / |w|", f"mean {result.measure.name}", size=(6.0, 3.6), label=label)
        ax.axhline(result.value, color="0.3", linestyle=":", linewidth=1, label="weights as given")
        add_legend(ax)
        return self


class SmoothnessDisplay(Display):
    """The measure against one weight: Figures 2 to 5 of Yue and Burges (MSR-TR-2007-115).

    Parameters
    ----------
    result : Smoothness
        Result of `structrank.learners.smoothness`.

    Examples
    --------
    >>> from structrank import datasets
    >>> from structrank.learners import LambdaRank
    >>> train = datasets.make_ranking(n_queries=20, n_docs=8, n_features=3, random_state=0).train
    >>> model = LambdaRank("ndcg", hidden_units=0, max_epochs=5).fit(train.X, train.y, qid=train.qid)
    >>> display = SmoothnessDisplay.from_estimator(model, train.X, train.y, qid=train.qid)
    >>> display.ax_.get_ylabel(), len(display.lines_)
    ('mean ndcg', 3)
    """

    def __init__(self, result):
        self.result = result

    @classmethod
    def from_estimator(cls, estimator, X, y, *, qid=None, measure=None, ax=None, **settings):
        """Compute `structrank.learners.smoothness` of a fitted ranker and draw; parameters as for it and for `plot`."""
        return cls(smoothness(estimator, X, y, qid, measure, **settings)).plot(ax=ax)

    def plot(self, n_queries=None, *, ax=None):
        """Draw one curve per weight.

        Parameters
        ----------
        n_queries : int, default None
            Size of the sample of queries to show; None for the largest.
        ax : matplotlib Axes, default None
            Axes to draw on; None creates a figure.
        """
        result = self.result
        n_queries = max(result.curves) if n_queries is None else n_queries
        if n_queries not in result.curves:
            raise ValueError(f"n_queries={n_queries!r} is not one of the samples: {', '.join(map(str, result.curves))}.")
        curves = {
            weight: (100 * result.shifts, curve) for weight, curve in zip(result.weights, result.curves[n_queries], strict=True)
        }
        ylabel = f"mean {result.measure.name}"
        ax = self._lines(ax, curves, "change of the weight (%)", ylabel, size=(6.0, 3.6), label="weight {}".format)
        ax.set_title(f"{n_queries} queries" if n_queries > 1 else "1 query", fontsize="medium")
        add_legend(ax)
        return self


class TrainingDisplay(Display):
    """The measure on the training and the validation set by round.

    Parameters
    ----------
    history : History
        `history_` of a learner.
    measure : str
        Its name, for the axis.

    Examples
    --------
    >>> from structrank import datasets
    >>> from structrank.learners import LambdaRank
    >>> fold = datasets.make_ranking(n_queries=20, n_docs=8, n_features=3, random_state=0)
    >>> model = LambdaRank(max_epochs=5).fit(fold.train.X, fold.train.y, qid=fold.train.qid, validation=fold.validation)
    >>> display = TrainingDisplay.from_estimator(model)
    >>> sorted(display.lines_)
    ['train', 'validation']
    """

    def __init__(self, history, measure):
        self.history, self.measure = history, measure

    @classmethod
    def from_estimator(cls, estimator, *, ax=None):
        """Draw the history of a fitted learner on matplotlib axes; None creates a figure."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator, "history_")
        return cls(estimator.history_, estimator.parsed_measure().name).plot(ax=ax)

    def plot(self, *, ax=None):
        """Draw on matplotlib axes; None creates a figure."""
        if not len(self.history):
            raise ValueError("history is empty; there is nothing to draw.")
        frame = self.history.to_frame()[["train", "validation"]].dropna(how="all", axis=1)
        curves = {name: (frame.index, frame[name]) for name in frame}
        ax = self._lines(ax, curves, "round", f"mean {self.measure}", size=(5.0, 3.6))
        ax.locator_params(axis="x", integer=True)
        add_legend(ax)
        return self


class LambdaAgreementDisplay(LinesDisplay):
    """Agreement of the lambdas of the tiers by round: Figure 2 of the WWW 2011 paper.

    Parameters
    ----------
    shares : pandas.DataFrame
        Result of `lambda_agreement`.
    """

    def __init__(self, shares):
        super().__init__(100 * shares, "round", "documents whose lambdas agree (%)")

    @classmethod
    def from_estimator(cls, model, X, y, *, qid=None, labels=None, objective=None, every=1, ax=None):
        """Compute and draw; parameters as for `lambda_agreement` and `plot`."""
        return cls(lambda_agreement(model, X, y, qid, labels, objective, every)).plot(ax=ax)


class LambdaContributionDisplay(LinesDisplay):
    """Share of each grade in the forces on highly relevant documents, by round: Figure 3(a) of the WWW 2011 paper.

    Parameters
    ----------
    shares : pandas.DataFrame
        Result of `lambda_contribution`.
    """

    def __init__(self, shares):
        super().__init__(100 * shares, "round", "share of the force (%)", label="grade {:g}".format)

    @classmethod
    def from_estimator(cls, model, X, y, *, qid=None, measure="ndcg", high=None, every=1, ax=None):
        """Compute and draw; parameters as for `lambda_contribution` and `plot`."""
        return cls(lambda_contribution(model, X, y, qid, measure, high, every)).plot(ax=ax)


class TopLabelsDisplay(LinesDisplay):
    """Share of each grade in the first ranks, by round: Figure 3(b) of the WWW 2011 paper.

    Parameters
    ----------
    shares : pandas.DataFrame
        Result of `labels_at_top`.
    """

    def __init__(self, shares):
        super().__init__(100 * shares, "round", "share of the first ranks (%)", label="grade {:g}".format)

    @classmethod
    def from_estimator(cls, model, X, y, *, qid=None, k=3, every=1, ax=None):
        """Compute and draw; parameters as for `labels_at_top` and `plot`."""
        return cls(labels_at_top(model, X, y, qid, k, every)).plot(ax=ax)
