"""Plots of pair accuracy against the number of factors and against theta (Figures 3 and 4 of Cao et al., AAAI 2010).

The displays have the same interface as the displays of `structrank.comparison.plotting`.
"""

from __future__ import annotations

from structrank._support import checks
from structrank._support.plotting import Display, plain, styles
from structrank.clicks.evaluation import pair_accuracy

__all__ = ["FactorsDisplay", "ThetaDisplay"]


class _AccuracyDisplay(Display):
    """Plot of pair accuracy against a parameter; subclasses set its name, `_xlabel`.

    Parameters
    ----------
    curves : dict from str to (x, accuracy)
        Two sequences of equal length per line.
    """

    def __init__(self, curves):
        self.curves = {}
        for name, (x, accuracy) in curves.items():
            x = checks.as_number_column(x, checks.count_rows(x, f"x of {name!r}"), "x", "numbers")
            accuracy = checks.as_number_column(accuracy, x.shape[0], "accuracy", "numbers", against="x")
            self.curves[name] = x, accuracy

    def plot(self, *, ax=None):
        """Draw the lines.

        Parameters
        ----------
        ax : matplotlib Axes, default None
            Axes to draw on; None creates a new figure.

        Returns
        -------
        self
        """
        ax = self._place(ax, figsize=(6.0, 4.0))
        self.lines_ = {}
        for (name, (x, accuracy)), style in zip(self.curves.items(), styles(), strict=False):
            (self.lines_[name],) = ax.plot(x, accuracy, label=plain(name), **style)
        ax.set_xlabel(self._xlabel)
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
        One line per name.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict
        Lines drawn, by name.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> display = FactorsDisplay({"CoRank": ([5, 10, 20], [0.80, 0.84, 0.86])}).plot()
    >>> display.ax_.get_xlabel(), display.lines_["CoRank"].get_ydata().tolist()
    ('number of factors', [0.8, 0.84, 0.86])
    >>> matplotlib.pyplot.close(display.figure_)
    """

    _xlabel = "number of factors"

    @classmethod
    def from_estimator(cls, estimator, train, test, *, factors=(2, 5, 10, 20, 50), name="CoRank", ax=None):
        """Train with several numbers of factors and draw.

        Parameters
        ----------
        estimator : CollaborativeRanker
            Fitted or not; it is cloned.
        train, test : Preferences
            Training and test pairs, for example from ``pairs.split()``.
        factors : sequence of int, default (2, 5, 10, 20, 50)
        name : str, default "CoRank"
            Name of the line.
        ax
            As for `plot`.

        Returns
        -------
        FactorsDisplay
        """
        from sklearn.base import clone

        factors = [checks.check_number("factors", k, at_least=1, integer=True) for k in factors]
        models = (clone(estimator).set_params(factors=k).fit(train) for k in factors)
        return cls({name: (factors, [pair_accuracy(test, model) for model in models])}).plot(ax=ax)


class ThetaDisplay(_AccuracyDisplay):
    """Accuracy of the hybrid against theta, the weight of the random walk: Figure 4 of Cao et al. (AAAI 2010).

    Parameters
    ----------
    curves : dict from str to (thetas, accuracies)
        One line per name.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict
        Lines drawn, by name.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> display = ThetaDisplay({"hybrid": ([0.0, 0.5, 1.0], [0.89, 0.94, 0.88])}).plot()
    >>> display.ax_.get_xlabel()
    'theta: 0 is collaborative ranking alone, 1 the random walk'
    >>> matplotlib.pyplot.close(display.figure_)
    """

    _xlabel = "theta: 0 is collaborative ranking alone, 1 the random walk"

    @classmethod
    def from_estimator(cls, estimator, *, name="hybrid", ax=None):
        """Draw the validation curve of a hybrid, with a vertical line at the theta it chose.

        Parameters
        ----------
        estimator : HybridRanker
            Fitted with ``theta=None``.
        name : str, default "hybrid"
            Name of the line.
        ax
            As for `plot`.

        Returns
        -------
        ThetaDisplay
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator, "curve_")
        if not estimator.curve_:
            raise ValueError(
                "estimator was fitted with a fixed theta and has no curve; fit it with theta=None to choose theta."
            )
        display = cls({name: zip(*estimator.curve_, strict=True)}).plot(ax=ax)
        if estimator.combine == "prior":
            display.ax_.set_xlabel("theta: strength of the random walk as prior of the factors")
        chosen = f"chosen theta = {estimator.theta_:g}"
        display.ax_.axvline(estimator.theta_, color="0.3", linestyle=":", zorder=0, label=chosen)
        display.ax_.legend()
        return display
