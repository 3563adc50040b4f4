"""The paper's Figures 3 and 4: accuracy against the number of factors, and against theta.

The displays follow the manners of `structrank.plotting`.
"""

from __future__ import annotations

from structrank import _validation
from structrank.clicks.evaluation import pair_accuracy
from structrank.plotting import _Display, _styles, plain

__all__ = ["FactorsDisplay", "ThetaDisplay"]


class _AccuracyDisplay(_Display):
    """Lines of pair accuracy against a number; subclasses say which.

    Parameters
    ----------
    curves : dict from str to (x, accuracy)
        For each name two sequences of equal length.
    """

    def __init__(self, curves):
        self.curves = {}
        for name, (x, accuracy) in curves.items():
            x = _validation.as_number_column(x, _validation.count_rows(x, f"x of {name!r}"), "x", "numbers")
            accuracy = _validation.as_number_column(accuracy, x.shape[0], "accuracy", "numbers", against="x")
            self.curves[name] = x, accuracy

    def plot(self, *, ax=None):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default None
            Where to draw; None makes a new figure.

        Returns
        -------
        self
        """
        ax = self._place(ax, figsize=(6.0, 4.0))
        self.lines_ = {}
        for (name, (x, accuracy)), style in zip(self.curves.items(), _styles(), strict=False):
            (self.lines_[name],) = ax.plot(x, accuracy, label=plain(name), **style)
        ax.set_xlabel(self._along)
        ax.set_ylabel("pair accuracy")
        ax.grid(alpha=0.3)
        if len(self.lines_) > 1:
            ax.legend()
        return self


class FactorsDisplay(_AccuracyDisplay):
    """Accuracy against the number of latent factors: Figure 3 of Cao, Shen, Wang and Yang (AAAI 2010).

    Parameters
    ----------
    curves : dict from str to (numbers of factors, accuracies)
        A line for each name.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict
        From names to the lines drawn.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> display = FactorsDisplay({"CoRank": ([5, 10, 20], [0.80, 0.84, 0.86])}).plot()
    >>> display.ax_.get_xlabel(), display.lines_["CoRank"].get_ydata().tolist()
    ('number of factors', [0.8, 0.84, 0.86])
    >>> matplotlib.pyplot.close(display.figure_)
    """

    _along = "number of factors"

    @classmethod
    def from_estimator(cls, estimator, train, test, *, factors=(2, 5, 10, 20, 50), name="CoRank", ax=None):
        """Train for several numbers of factors and draw.

        Parameters
        ----------
        estimator : CollaborativeRanker
            Need not be fitted, and is not changed.
        train, test : Preferences
            What to learn from and what to measure on, as ``pairs.split()`` gives them.
        factors : sequence of int, default (2, 5, 10, 20, 50)
        name : str, default "CoRank"
            Of the line.
        ax
            As for `plot`.

        Returns
        -------
        FactorsDisplay
        """
        from sklearn.base import clone

        factors = [_validation.check_number("factors", k, at_least=1, integer=True) for k in factors]
        models = (clone(estimator).set_params(factors=k).fit(train) for k in factors)
        return cls({name: (factors, [pair_accuracy(test, model) for model in models])}).plot(ax=ax)


class ThetaDisplay(_AccuracyDisplay):
    """Accuracy of the hybrid against theta, the share of the random walk in it: Figure 4 of the paper.

    Parameters
    ----------
    curves : dict from str to (thetas, accuracies)
        A line for each name.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict
        From names to the lines drawn.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> display = ThetaDisplay({"hybrid": ([0.0, 0.5, 1.0], [0.89, 0.94, 0.88])}).plot()
    >>> display.ax_.get_xlabel()
    'theta: 0 is collaborative ranking alone, 1 the random walk'
    >>> matplotlib.pyplot.close(display.figure_)
    """

    _along = "theta: 0 is collaborative ranking alone, 1 the random walk"

    @classmethod
    def from_estimator(cls, estimator, *, name="hybrid", ax=None):
        """Draw the curve that a hybrid has chosen its theta by, with a line at its choice.

        Parameters
        ----------
        estimator : HybridRanker
            Fitted.
        name : str, default "hybrid"
            Of the line.
        ax
            As for `plot`.

        Returns
        -------
        ThetaDisplay
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator, "curve_")
        if not estimator.curve_:
            raise ValueError("estimator was given its theta and has no curve; fit it with theta=None, which chooses one.")
        display = cls({name: zip(*estimator.curve_, strict=True)}).plot(ax=ax)
        if estimator.combine == "prior":
            display.ax_.set_xlabel("theta: strength of the random walk as prior of the factors")
        display.ax_.axvline(estimator.theta_, color="0.3", linestyle=":", zorder=0)
        return display
