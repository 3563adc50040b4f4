"""Plots of pair accuracy against the number of factors and against theta (Figures 3 and 4 of Cao et al., AAAI 2010)."""

from __future__ import annotations

from structrank._support import checks
from structrank.clicks.evaluation import pair_accuracy
from structrank.plots import LinesDisplay


class _AccuracyDisplay(LinesDisplay):
    """Plot of pair accuracy against a parameter; subclasses set its name, `_xlabel`."""

    def __init__(self, curves):
        checked = {}
        for name, (x, accuracy) in curves.items():
            x = checks.as_number_column(x, checks.count_rows(x, f"x of {name!r}"), "x", "numbers")
            checked[name] = x, checks.as_number_column(accuracy, x.shape[0], "accuracy", "numbers", against="x")
        super().__init__(checked, self._xlabel, "pair accuracy")


class FactorsDisplay(_AccuracyDisplay):
    """Accuracy against the number of latent factors: Figure 3 of Cao, Shen, Wang and Yang (AAAI 2010).

    Parameters
    ----------
    curves : dict from str to (numbers of factors, accuracies)
        One line per name.

    Examples
    --------
    >>> display = FactorsDisplay({"CoRank": ([5, 10, 20], [0.80, 0.84, 0.86])}).plot()
    >>> display.ax_.get_xlabel(), display.lines_["CoRank"].get_ydata().tolist()
    ('number of factors', [0.8, 0.84, 0.86])
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
        ax : matplotlib Axes, default None
            Axes to draw on; None creates a new figure.
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
    """

    _xlabel = "theta: 0 is collaborative ranking alone, 1 the random walk"

    @classmethod
    def from_estimator(cls, estimator, *, name="hybrid", ax=None):
        """Draw the validation curve of a `HybridRanker` fitted with ``theta=None``, with a vertical line at its theta."""
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
