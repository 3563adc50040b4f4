"""Linear functions of normalised features, the common form of all exports."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from structrank._support import checks
from structrank.preparation import check_no_preparation

# Characters that databases, or files in UTF-8, cannot hold: NUL and halves of surrogate pairs.
_NOT_STORED = re.compile("[\x00\ud800-\udfff]")
# Rounding errors above this fraction of the spread of the scores cause a warning.
_LEAST_OFFSET = 1e-4


@dataclass(frozen=True, eq=False)
class LinearFunction:
    r"""The score :math:`\sum_i w_i (x_i - c_i) / d_i` of a document x.

    Attributes
    ----------
    names : tuple of str
        Names of the features.
    weights, centres, spreads : (n_features,) arrays
        w, c and d; d is above 0.
    kind : {"standard", "min_max"}
        Whether c and d are a mean and a standard deviation, or a minimum and the range.

    Examples
    --------
    >>> one = np.ones(1)
    >>> function = LinearFunction(("bm25",), weights=2 * one, centres=3 * one, spreads=4 * one, kind="standard")
    >>> function.raw_weights, function.constant
    (array([0.5]), -1.5)
    """

    names: tuple
    weights: np.ndarray
    centres: np.ndarray
    spreads: np.ndarray
    kind: str

    @property
    def raw_weights(self):
        """Weights of the features before normalisation, (n_features,)."""
        return self.weights / self.spreads

    @property
    def constant(self):
        """Score of a document whose features are all 0."""
        return -float(self.raw_weights @ self.centres)

    @property
    def is_normalised(self):
        """Whether each feature is changed before it is weighted, (n_features,) of bool."""
        return (self.centres != 0.0) | (self.spreads != 1.0)

    def check_finite(self):
        """Raise if a weight divided by its spread is not a finite number."""
        with np.errstate(over="ignore"):
            wrong = ~np.isfinite(self.raw_weights)
        if wrong.any():
            place = int(np.argmax(wrong))
            raise ValueError(
                f"feature {self.names[place]!r} has weight {self.weights[place]:g} and spread {self.spreads[place]:g}; the "
                "quotient is not a finite number. Scale or drop the feature, and train again."
            )

    def contributions(self, X):
        """Return the contribution of each feature to the score of each row of a dense matrix, (n_docs, n_features)."""
        return self.weights * ((X - self.centres) / self.spreads)

    def shifted(self, shift):
        """Return the function plus a constant, which becomes part of the centre of a feature: engines have no constants.

        Examples
        --------
        >>> one = np.ones(1)
        >>> LinearFunction(("bm25",), 2 * one, 0 * one, one, "standard").shifted(3.0).constant
        3.0
        """
        if shift == 0.0:
            return self
        # The larger the weight, the smaller the change of its centre, and the fewer digits are lost in 32 bits.
        longest = int(np.argmax(np.abs(self.weights)))
        if self.weights[longest] == 0.0:
            raise ValueError(f"shift={shift!r}: all weights of the model are 0, so there is no score to shift.")
        centres = self.centres.copy()
        centres[longest] -= shift * self.spreads[longest] / self.weights[longest]
        return replace(self, centres=centres)

    def for_engine(self, engine, shift):
        """Return the function for a search engine, after checks and warnings.

        Parameters
        ----------
        engine : str
            Name of the engine, for messages.
        shift : float or None
            Constant to add to scores; None adds none, and warns if scores can be negative.
        """
        if shift is not None:
            function = self.shifted(checks.check_number("shift", shift))
        else:
            function = self
            # Engines compute features of at least 0.
            if (self.raw_weights < 0.0).any() or self.constant < 0.0:
                warn_of_negative_scores(engine)
        function._check_single_precision(engine)
        self._warn_of_offsets(engine)
        return function

    def _warn_of_offsets(self, engine):
        """Warn if a feature is so far from 0, relative to its spread, that rounding it to 32 bits changes the scores."""
        errors = np.abs(self.weights * self.centres / self.spreads) * 2.0**-24
        place, size = int(np.argmax(errors)), float(np.abs(self.weights).max())
        if errors[place] > _LEAST_OFFSET * size:
            text = (
                f"Feature {self.names[place]!r} is around {self.centres[place]:g} with a spread of {self.spreads[place]:g}; "
                f"{engine} rounds it to 32 bits, which changes scores by about {errors[place] / size:.0e} of their spread and "
                "may swap documents. Subtract a constant from that feature in the engine, and train on the result."
            )
            warnings.warn(text, checks.StructRankWarning, stacklevel=5)

    def _check_single_precision(self, engine):
        with np.errstate(over="ignore"):
            weights, spreads = self.weights.astype(np.float32), self.spreads.astype(np.float32)
            low, high = self.centres.astype(np.float32), (self.centres + self.spreads).astype(np.float32)
        wrong = ~np.isfinite(weights) | ~np.isfinite(low) | ~np.isfinite(high) | ((weights == 0) & (self.weights != 0))
        wrong |= (spreads == 0) | ~np.isfinite(spreads)
        if self.kind == "min_max":
            wrong |= self.is_normalised & (low >= high)
        if wrong.any():
            place = int(np.argmax(wrong))
            raise ValueError(
                f"feature {self.names[place]!r} has weight {self.weights[place]:g}, centre {self.centres[place]:g} and spread "
                f"{self.spreads[place]:g}; {engine} computes in 32 bits, which cannot represent them. Scale or drop "
                "the feature, and train again."
            )


def linear_function(model, scaler=None, feature_names=None):
    """Return the `LinearFunction` that a fitted model computes.

    Parameters
    ----------
    model : linear model or Pipeline
        Fitted: `StructRankSVM`, `RankNet` and the like without hidden units; or a Pipeline that ends in one and has at most
        one other step, which is a scaler.
    scaler, feature_names
        As for `structrank.models.exports.to_solr`.

    Examples
    --------
    >>> from structrank import StructRankSVM
    >>> linear_function(StructRankSVM("auc").fit([[0.0], [1.0]], [0, 1], qid=0)).names
    ('f1',)
    """
    model, scaler = split_pipeline(model, scaler)
    weights = weights_of(model)
    if weights.shape[0] != model.n_features_in_:
        raise ValueError(
            f"{type(model).__name__} has hidden_units={model.hidden_units}; expected a linear model, hidden_units=0."
        )
    if scaler is None:
        centres, spreads, kind = 0.0, 1.0, "standard"
    else:
        centres, spreads, kind = _normaliser(scaler, weights.shape[0])
    centres, spreads = (np.full(weights.shape, values, dtype=np.float64) for values in (centres, spreads))
    function = LinearFunction(feature_names_of(model, scaler, feature_names), weights, centres, spreads, kind)
    function.check_finite()
    return function


def feature_names_of(model, scaler=None, feature_names=None):
    """Return the names of the features of a fitted model: the given ones, those seen in training, or f1, f2, ..."""
    n_features = model.n_features_in_
    if feature_names is None:
        for seen in (scaler, model):
            if hasattr(seen, "feature_names_in_"):
                return tuple(seen.feature_names_in_.tolist())
        return tuple(f"f{number}" for number in range(1, n_features + 1))
    if isinstance(feature_names, str) or not hasattr(feature_names, "__iter__"):
        raise ValueError(f"feature_names={feature_names!r} is not valid: expected a list of {n_features} texts.")
    names = tuple(feature_names)
    if len(names) != n_features:
        raise ValueError(f"feature_names has {len(names)} entries; the model has {n_features} features.")
    return check_names(names)


def check_names(names):
    """Return names of features as a tuple of str; raise unless engines can store them and tell them apart."""
    names = tuple(str(check_text(f"feature_names[{place}]", name)) for place, name in enumerate(names))
    check_distinct(names, names)
    return names


def check_distinct(names, keys):
    """Raise if two features have the same key, by which an engine identifies them."""
    known = {}
    for place, (name, key) in enumerate(zip(names, keys, strict=True)):
        other = known.setdefault(key, place)
        if other != place:
            twice = (
                f"{name!r} twice"
                if names[other] == name
                else f"{names[other]!r} and {name!r}, which are one name to the engine"
            )
            raise ValueError(f"feature_names has {twice}; engines identify features by name.")


def warn_of_negative_scores(engine):
    """Warn the caller of an export that Lucene rejects negative scores."""
    text = (
        f"Scores of this model can be negative, and Lucene, on which {engine} is built, rejects negative scores. Pass shift=, "
        "a constant to add, which positive_shift() computes from documents; shift=0.0 exports the model unchanged."
    )
    warnings.warn(text, checks.StructRankWarning, stacklevel=5)


def last_step(model):
    """Return the last step of a Pipeline; any other object itself."""
    return getattr(model, "steps", [(None, model)])[-1][1]


def split_pipeline(model, scaler=None):
    """Return the model and the scaler (or None) of a Pipeline; any other object is the model itself."""
    from sklearn.pipeline import Pipeline

    check_no_preparation(last_step(model), "this export")
    if not isinstance(model, Pipeline):
        return model, scaler
    if scaler is not None:
        raise ValueError("scaler is given together with a Pipeline, which has its own; pass one or the other.")
    before = [step for _, step in model.steps[:-1] if step is not None and not isinstance(step, str)]
    if len(before) > 1:
        named = ", ".join(type(step).__name__ for step in before)
        raise ValueError(f"the Pipeline has {named} before the model; an export supports one StandardScaler or MinMaxScaler.")
    return model.steps[-1][1], before[0] if before else None


def check_text(name, value):
    """Raise unless `value` is a text that is not blank, and that engines can store."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name}={value!r} is not valid: expected a text that is not empty.")
    if found := _NOT_STORED.search(value):
        raise ValueError(f"{name}={value!r} is not valid: engines cannot store the character {found[0]!r}.")
    return value


def weights_of(model, expected="a linear model"):
    """Return the vector of weights of a fitted model: of a linear function or of a network; `expected` ends the error."""
    check_is_fitted(model)
    for name in ("weights_", "coef_"):
        weights = getattr(model, name, None)
        if isinstance(weights, np.ndarray) and weights.ndim == 1:
            return weights
    raise ValueError(f"{type(model).__name__} has no vector of weights in weights_ or coef_; expected {expected}.")


def _normaliser(scaler, n_features):
    from sklearn.preprocessing import StandardScaler

    _check_scaler(scaler, n_features)
    if isinstance(scaler, StandardScaler):
        return scaler.mean_ if scaler.with_mean else 0.0, scaler.scale_ if scaler.with_std else 1.0, "standard"
    return scaler.data_min_ - scaler.feature_range[0] / scaler.scale_, 1.0 / scaler.scale_, "min_max"


def column_scaling(scaler, n_features):
    """Return a function ``scale(values, columns)`` that scales values of columns bit for bit as the scaler does."""
    from sklearn.preprocessing import StandardScaler

    _check_scaler(scaler, n_features)
    if isinstance(scaler, StandardScaler):
        mean = scaler.mean_ if scaler.with_mean else np.zeros(n_features)
        deviation = scaler.scale_ if scaler.with_std else np.ones(n_features)
        return lambda values, columns: (values - mean[columns]) / deviation[columns]
    return lambda values, columns: values * scaler.scale_[columns] + scaler.min_[columns]


def _check_scaler(scaler, n_features):
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    if not isinstance(scaler, (StandardScaler, MinMaxScaler)):
        raise ValueError(
            f"the scaler is a {type(scaler).__name__}; expected a StandardScaler or a MinMaxScaler. Others, such as scaling "
            "within each query, are not one linear function of a document, and cannot be exported."
        )
    check_is_fitted(scaler)
    if scaler.n_features_in_ != n_features:
        raise ValueError(f"the scaler has {scaler.n_features_in_} features, the model {n_features}.")
    if getattr(scaler, "clip", False):
        raise ValueError("the scaler is a MinMaxScaler with clip=True, which is not linear; fit one with clip=False.")
