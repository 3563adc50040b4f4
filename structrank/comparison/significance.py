"""Paired significance tests over queries."""

from __future__ import annotations

import math
import warnings

import numpy as np

from structrank._support import checks
from structrank._support.typing import ArrayLike, NDArray

# Rows of a table with at most this p-value against the column's best are marked.
SIGNIFICANT = 0.05
# Sign patterns that are drawn and summed at a time, in numbers.
_BATCH = 2**22


def paired_t_test(a: ArrayLike, b: ArrayLike) -> float:
    r"""Test whether the per-query values of two rankers differ in the mean, by the two-sided paired t-test.

    .. math:: t = \bar d \Big/ \frac{s_d}{\sqrt n}, \quad d_q = a_q - b_q, \quad p = P(|T_{n-1}| \ge |t|)

    Parameters
    ----------
    a, b : array-like of shape (n_queries,)
        One value per query, in the same order; queries where either value is nan are excluded.

    Returns
    -------
    float
        The p-value; 1 if fewer than two queries are left or all differences are 0.

    Examples
    --------
    >>> round(paired_t_test([0.9, 0.8, 0.7, 0.9], [0.5, 0.6, 0.6, 0.4]), 4)
    0.0462
    """
    return _t_test(a, b)[1]


def standard_error_ratio(a: ArrayLike, b: ArrayLike) -> float:
    r"""Compute the mean difference of the per-query values of two rankers over its standard error.

    .. math:: \bar d \Big/ \frac{s_d}{\sqrt n}, \quad d_q = a_q - b_q

    This is the t of `paired_t_test`. Over many queries, a is better than b with 95 % confidence where it exceeds 1.96
    (section 6 of Svore, Volkovs and Burges, WWW 2011).

    Parameters
    ----------
    a, b : array-like of shape (n_queries,)
        As for `paired_t_test`.

    Returns
    -------
    float
        0 if fewer than two queries are left or all differences are 0; infinite if all are equal and not 0.

    Examples
    --------
    >>> round(standard_error_ratio([0.9, 0.8, 0.7, 0.9], [0.5, 0.6, 0.6, 0.4]), 3)
    3.286
    """
    return _t_test(a, b)[0]


def paired_randomisation_test(a: ArrayLike, b: ArrayLike, n_samples: int = 10_000, random_state: int = 0) -> float:
    r"""Test whether the per-query values of two rankers differ in the mean, by the two-sided paired randomisation test.

    If the two rankers were equally good, the two values of each query could be swapped. So

    .. math:: p = P\Big(\Big|\sum_q \sigma_q d_q\Big| \ge \Big|\sum_q d_q\Big|\Big), \quad d_q = a_q - b_q

    over random signs. All sign patterns are enumerated if there are at most `n_samples`; otherwise `n_samples` are drawn, and
    the observed pattern counts as one more, so p is never 0.

    Parameters
    ----------
    a, b : array-like of shape (n_queries,)
        One value per query, in the same order; queries where either value is nan are excluded.
    n_samples : int, default 10000
    random_state : int, numpy.random.Generator or None, default 0
        Seed.

    Returns
    -------
    float
        The p-value; 1 where all differences are 0.

    Examples
    --------
    >>> paired_randomisation_test([0.9, 0.8, 0.7, 0.9], [0.5, 0.6, 0.6, 0.4])  # 2 of 16 patterns
    0.125
    """
    n_samples = checks.check_number("n_samples", n_samples, at_least=1, integer=True)
    differences = _differences(a, b)
    # Of random sign, and sorted: neither which ranker is the first nor the order of the queries shows in what is drawn.
    sizes = np.sort(np.abs(differences[differences != 0]))
    n, total = sizes.size, sizes.sum()
    # Sums that are equal on paper may differ in their last digits.
    observed = abs(math.fsum(differences)) - 1e-12 * total
    batch = max(1, _BATCH // max(1, n))

    def count_extreme(signs_of, n_patterns):
        extreme = 0
        for start in range(0, n_patterns, batch):
            negative = signs_of(start, min(start + batch, n_patterns))
            sums = total - 2 * (negative.astype(np.float64) @ sizes)
            extreme += int(np.count_nonzero(np.abs(sums) >= observed))
        return extreme

    if n <= np.log2(n_samples):
        return count_extreme(lambda start, stop: (np.arange(start, stop)[:, None] >> np.arange(n)) & 1, 2**n) / 2**n
    rng = np.random.default_rng(random_state)
    drawn = count_extreme(lambda start, stop: rng.integers(0, 2, size=(stop - start, n), dtype=np.int8), n_samples)
    return (1 + drawn) / (1 + n_samples)


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    r"""Correct p-values for their number by the step-down method of Holm (1979).

    .. math:: \tilde p_{(i)} = \max_{j \le i} \min(1, (m - j + 1) p_{(j)})

    for the m p-values in increasing order. Rejecting where the corrected value is at most alpha errs in any of the
    tests with a probability of at most alpha, however they depend on each other.

    Parameters
    ----------
    p_values : array-like of shape (m,)

    Returns
    -------
    (m,) array
        Corrected p-values, in the order given.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    given = _numbers(p_values, "p_values")
    if not ((given >= 0) & (given <= 1)).all():
        raise ValueError(f"p_values={given.tolist()!r} is not valid: expected a list of numbers from 0 to 1.")
    order = np.argsort(given, kind="stable")
    corrected = np.empty_like(given)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(np.arange(given.size, 0, -1) * given[order]))
    return corrected


def _t_test(a, b):
    """Return t and p of the paired t-test."""
    differences = _differences(a, b)
    if differences.size < 2 or not differences.any():
        return 0.0, 1.0
    from scipy import stats

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # equal differences: t is infinite
        result = stats.ttest_1samp(differences, 0.0)
    return float(result.statistic), float(result.pvalue)


def _differences(a, b):
    a, b = _numbers(a, "a"), _numbers(b, "b")
    if a.shape != b.shape:
        raise ValueError(
            f"a has shape {a.shape} and b has shape {b.shape}; expected one value per query, for the same queries."
        )
    differences = a - b
    return differences[~np.isnan(differences)]


def _numbers(values, name):
    array = checks.as_array(values, name)
    return checks.as_number_column(array, array.shape[0] if array.ndim else 1, name, "numbers", against=name)
