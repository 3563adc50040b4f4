"""Linear and two-layer scoring functions with all weights in one vector."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from structrank._kernels import networks as kernels
from structrank._support import checks
from structrank.training.data import score_rows

# Number of matrix entries that are made dense and standardised at a time.
_BLOCK = 2**20


@dataclass(frozen=True)
class Network:
    r"""A linear scoring function :math:`w \cdot x`, or one of two layers, :math:`v \cdot \tanh(W^T x + b)`.

    Attributes
    ----------
    n_features : int
    n_hidden : int
        0 for linear: the vector of weights is w. Otherwise it holds W, (n_features, n_hidden), b and v, concatenated.

    Examples
    --------
    >>> Network(n_features=2, n_hidden=0).scores(np.array([[1.0, 2.0]]), np.array([3.0, 0.5]))
    array([4.])
    >>> Network(n_features=2, n_hidden=3).size
    12
    """

    n_features: int
    n_hidden: int

    @classmethod
    def of(cls, n_features, weights):
        """Return the network with this number of features and weights."""
        return cls(n_features, 0 if weights.shape[0] == n_features else weights.shape[0] // (n_features + 2))

    @property
    def size(self):
        """Number of weights."""
        return self.n_hidden * (self.n_features + 2) if self.n_hidden else self.n_features

    def random_weights(self, rng, spread=1.0):
        """Draw normal weights; standardised features give inputs of about 1 to hidden units and scores of about `spread`."""
        weights = np.zeros(self.size)
        if self.n_hidden:
            n_first = self.n_features * self.n_hidden
            weights[:n_first] = rng.standard_normal(n_first) / np.sqrt(self.n_features)
        n_last = self.n_hidden or self.n_features
        weights[-n_last:] = spread * rng.standard_normal(n_last) / np.sqrt(n_last)
        return weights

    def scores(self, X, weights):
        """Score all rows of a matrix returned by `checks.as_matrix`."""
        scores = np.empty(X.shape[0])
        for rows in blocks(X.shape[0], self.n_features):
            block = dense_rows(X, rows)
            hidden = np.empty((block.shape[0], self.n_hidden))
            kernels.forward(block, weights, self.n_hidden, hidden, scores[rows])
        return scores

    def paths(self, X, weights, directions):
        """Yield for each direction r a function from t to the scores at ``weights + t * r``.

        Examples
        --------
        >>> network, X = Network(n_features=1, n_hidden=0), np.array([[1.0], [2.0]])
        >>> [path(0.5).tolist() for path in network.paths(X, np.array([3.0]), np.array([[2.0], [-2.0]]))]
        [[4.0, 8.0], [2.0, 4.0]]
        """
        X = dense_rows(X, slice(None))
        if not self.n_hidden:
            scores = score_rows(X, weights)
            for direction in directions:
                slope = score_rows(X, direction)
                yield lambda t, slope=slope: scores + t * slope
            return
        first, bias, last = self._layers(weights)
        inputs = _by_rows(X, first) + bias
        outputs = np.tanh(inputs)
        for direction in directions:
            first_direction, bias_direction, last_direction = self._layers(direction)
            # A direction along one weight changes at most one unit.
            units = np.flatnonzero(first_direction.any(axis=0) | (bias_direction != 0))
            slopes = _by_rows(X, first_direction[:, units]) + bias_direction[units]
            yield lambda t, units=units, slopes=slopes, last_direction=last_direction: self._shifted_scores(
                inputs, outputs, last + t * last_direction, units, t * slopes
            )

    def _shifted_scores(self, inputs, outputs, last, units, shift):
        fixed = np.ones(self.n_hidden, dtype=bool)
        fixed[units] = False
        scores = score_rows(outputs[:, fixed], last[fixed])
        if units.size:
            scores += score_rows(np.tanh(inputs[:, units] + shift), last[units])
        return scores

    def _layers(self, weights):
        """Split a vector of weights into W, b and v."""
        n_first = self.n_features * self.n_hidden
        first = weights[:n_first].reshape(self.n_features, self.n_hidden)
        return first, weights[n_first : n_first + self.n_hidden], weights[-self.n_hidden :]

    def rescale(self, weights, mean, scale):
        """Return weights that score x as `weights` score ``(x - mean) * scale``, up to a constant."""
        if not self.n_hidden:
            return weights * scale
        first, bias, last = self._layers(weights)
        first = first * scale[:, None]
        return np.concatenate([first.ravel(), bias - mean @ first, last])

    def standardise(self, weights, mean, scale):
        """Return weights that score ``(x - mean) * scale`` as `weights` score x, up to a constant: the inverse of `rescale`.

        Examples
        --------
        >>> network, mean, scale = Network(n_features=1, n_hidden=1), np.array([3.0]), np.array([0.5])
        >>> network.standardise(network.rescale(np.array([4.0, 1.0, 2.0]), mean, scale), mean, scale)
        array([4., 1., 2.])
        """
        deviation = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
        if not self.n_hidden:
            return weights * deviation
        first, bias, last = self._layers(weights)
        return np.concatenate([(first * deviation[:, None]).ravel(), bias + mean @ first, last])

    def layer_lengths(self, weights):
        """Return for each weight the norm of its layer: all of w, or W with b, or v.

        Examples
        --------
        >>> Network(n_features=1, n_hidden=1).layer_lengths(np.array([3.0, 4.0, 0.5]))
        array([5. , 5. , 0.5])
        """
        n_last = self.n_hidden or self.n_features
        layers = [layer for layer in (weights[:-n_last], weights[-n_last:]) if layer.size]
        return np.concatenate([np.full(layer.size, np.linalg.norm(layer)) for layer in layers])


def blocks(n_rows, n_features):
    """Yield slices of rows, one per block."""
    step = max(1, _BLOCK // n_features)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def dense_rows(X, rows):
    """Return rows of a dense or CSR matrix as a contiguous float64 array."""
    chosen = X[rows]
    if scipy.sparse.issparse(chosen):
        chosen = chosen.toarray()
    return np.ascontiguousarray(chosen, dtype=np.float64)


def _by_rows(X, weights):
    """Compute X @ weights row by row: equal rows then have equal products, which BLAS does not guarantee."""
    product = np.empty((X.shape[0], weights.shape[1]))
    for column in range(weights.shape[1]):
        product[:, column] = score_rows(X, np.ascontiguousarray(weights[:, column]))
    return product


def moments(data):
    """Compute mean and 1 / standard deviation of each column of `RankingData`; the latter is 0 for a constant column.

    Rows are weighted by the weights of their queries. Warns if no column varies.

    Examples
    --------
    >>> from structrank.training.data import RankingData
    >>> mean, scale = moments(RankingData([[0.0, 5.0], [4.0, 5.0]], [0, 1], qid=0))
    >>> mean.tolist(), scale.tolist()
    ([2.0, 5.0], [0.5, 0.0])
    """
    X, weights = data.X, data.row_weights
    total = weights.sum()
    largest = np.zeros(X.shape[1])
    for rows in blocks(*X.shape):
        np.maximum(largest, np.abs(dense_rows(X, rows)).max(axis=0), out=largest)
    # Scaling by a power of two keeps squares in the range of float64 without rounding.
    unit = np.ldexp(1.0, np.frexp(largest)[1] - 1)
    mean = np.zeros(X.shape[1])
    for rows in blocks(*X.shape):
        mean += (weights[rows, None] * (dense_rows(X, rows) / unit)).sum(axis=0) / total
    variance = np.zeros(X.shape[1])
    for rows in blocks(*X.shape):
        variance += (weights[rows, None] * (dense_rows(X, rows) / unit - mean) ** 2).sum(axis=0) / total
    deviation = np.sqrt(variance)
    # A constant column may have a tiny deviation from rounding, which must not be scaled up.
    varies = deviation > 1e-12 * np.abs(mean)
    if not varies.any():
        text = "No column of X varies, so nothing can be learned and all documents get the same score."
        warnings.warn(text, checks.StructRankWarning, stacklevel=7)
    return mean * unit, np.divide(1.0, deviation * unit, out=np.zeros_like(deviation), where=varies)
