"""Significance tests against SciPy, enumeration and examples computed by hand."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from structrank.comparison.significance import holm, paired_randomisation_test, paired_t_test


def enumerated(a, b):
    """Compute the randomisation test from its definition, over all ways to swap the two values of each query."""
    differences = [x - y for x, y in zip(a, b, strict=True) if not math.isnan(x - y)]
    observed = abs(math.fsum(differences))
    sums = [
        abs(math.fsum(sign * d for sign, d in zip(signs, differences, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    return sum(s >= observed - 1e-12 for s in sums) / len(sums)


@pytest.mark.parametrize("n", [2, 3, 10, 200])
def test_the_t_test_agrees_with_scipy(n):
    rng = np.random.default_rng(n)
    a, b = rng.random(n), rng.random(n)
    assert paired_t_test(a, b) == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-12)


@pytest.mark.parametrize("n", range(1, 12))
def test_the_randomisation_test_is_exact_if_all_signs_can_be_enumerated(n):
    rng = np.random.default_rng(n)
    for _ in range(5):
        # Few distinct values, so that sums tie and some differences are 0.
        a, b = rng.integers(0, 4, n) / 10, rng.integers(0, 4, n) / 10
        assert paired_randomisation_test(a, b) == enumerated(a, b)


def test_the_sampled_randomisation_test_is_near_the_exact_one():
    rng = np.random.default_rng(0)
    a, b = rng.random(14) + 0.15, rng.random(14)
    exact = paired_randomisation_test(a, b, n_samples=2**14)
    sampled = paired_randomisation_test(a, b, n_samples=2**14 - 1)
    assert exact != sampled
    assert sampled == pytest.approx(exact, abs=0.01)


def test_the_sampled_randomisation_test_is_never_zero():
    a, b = np.linspace(0.5, 1.0, 100), np.zeros(100)
    assert paired_randomisation_test(a, b, n_samples=999) == 1 / 1000


@pytest.mark.parametrize("test", [paired_t_test, paired_randomisation_test])
def test_queries_undefined_for_either_ranker_are_excluded(test):
    a, b = [0.9, 0.8, 0.4, 0.9, math.nan, 0.1], [0.5, 0.6, 0.6, 0.4, 0.3, math.nan]
    assert test(a, b) == test(a[:4], b[:4])


@pytest.mark.parametrize("test", [paired_t_test, paired_randomisation_test])
@pytest.mark.parametrize("values", [([], []), ([0.5], [0.1]), ([0.5, 0.7, 0.2], [0.5, 0.7, 0.2])])
def test_the_p_value_is_1_without_evidence(test, values):
    assert test(*values) == 1.0


def test_the_p_value_of_the_t_test_is_0_for_equal_differences():
    assert paired_t_test([0.5, 1.0, 1.5], [0.25, 0.75, 1.25]) == 0.0


def test_holms_correction_of_an_example_computed_by_hand():
    # Sorted: 0.005 x 4, 0.01 x 3, 0.03 x 2, 0.04 x 1 = 0.02, 0.03, 0.06, 0.04; the last may not fall below 0.06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]).tolist() == [1.0, 1.0]
    assert holm([]).size == 0


def test_invalid_input_is_rejected():
    with pytest.raises(ValueError, match=r"a has shape \(2,\) and b has shape \(3,\)"):
        paired_t_test([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="from 0 to 1"):
        holm([0.5, 1.5])
    with pytest.raises(ValueError, match="n_samples=0"):
        paired_randomisation_test([1, 2], [2, 1], n_samples=0)


def test_the_randomisation_test_does_not_depend_on_the_order_of_queries_or_rankers():
    rng = np.random.default_rng(1)
    a, b = rng.random(40), rng.random(40) + 0.1
    order = rng.permutation(40)
    p = paired_randomisation_test(a, b)
    assert paired_randomisation_test(a[order], b[order]) == p == paired_randomisation_test(b, a)


def test_enumeration_in_batches_gives_the_same_result(monkeypatch):
    rng = np.random.default_rng(2)
    a, b = rng.random(9), rng.random(9)
    whole = paired_randomisation_test(a, b)
    monkeypatch.setattr("structrank.comparison.significance._BATCH", 100)
    assert paired_randomisation_test(a, b) == whole == pytest.approx(enumerated(a, b))
