"""Pooled and compared estimates agree with SciPy, or with calculations by hand."""

from math import exp, sqrt
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.unit.stats.estimates import sample
from tierbench.advice.comparison import RUN_SIGNIFICANCE
from tierbench.stats.estimates import (
    EventCount,
    MeanDifference,
    RunMean,
    compare_with_runs,
    dispersion,
    holm_adjusted,
    pool_nodes,
    pool_rates,
    pool_trials,
    rate_interval,
)
from tierbench.stats.posterior import prospects

SAMPLES = st.lists(st.floats(1, 1e6), min_size=2, max_size=12).filter(lambda values: stdev(values) > 1e-3)


@given(SAMPLES, SAMPLES)
def test_welch_agrees_with_scipy(first: list[float], second: list[float]) -> None:
    ours, theirs = MeanDifference(sample(first), sample(second)), stats.ttest_ind(first, second, equal_var=False)
    assert ours.p == pytest.approx(theirs.pvalue, abs=1e-8)
    assert ours.degrees == pytest.approx(theirs.df, rel=1e-9)
    assert ours.interval == pytest.approx(tuple(theirs.confidence_interval(0.95)), rel=1e-6, abs=1e-6)


def test_unequal_variances_are_not_pooled() -> None:
    """With pooled variances p would be 0.02; with Welch's it is 0.16."""
    wide, narrow = [1.0, 9.0, 2.0, 8.0], [9.0, 9.01, 9.0, 9.02, 9.01, 9.0, 9.0, 9.01, 9.02, 9.0]
    assert stats.ttest_ind(wide, narrow).pvalue < 0.05
    assert MeanDifference(sample(wide), sample(narrow)).p > 0.1


def test_single_value_shows_no_difference() -> None:
    difference = MeanDifference(sample([1.0]), sample([9.0, 9.1, 9.2]))
    assert (difference.p, difference.interval) == (1.0, None)


@pytest.mark.parametrize(("count", "shown"), [(2, False), (3, False), (4, True), (10, True)])
def test_constant_values_have_the_p_value_of_the_permutation_test(count: int, shown: bool) -> None:
    first, second = [1.0] * count, [2.0] * count
    ours = MeanDifference(sample(first), sample(second)).p
    theirs = stats.permutation_test((first, second), lambda a, b: fmean(a) - fmean(b), n_resamples=10**6)
    assert ours == pytest.approx(theirs.pvalue)
    assert (ours <= 0.05) is shown
    assert MeanDifference(sample(first), sample(first)).p == 1


def test_holm_adjustment_agrees_with_values_by_hand() -> None:
    found = holm_adjusted({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert found == pytest.approx({"d": 0.02, "a": 0.03, "c": 0.06, "b": 0.06})
    assert holm_adjusted({"a": 0.7, "b": 0.9}) == {"a": 1.0, "b": 1.0}
    assert holm_adjusted({}) == {}


def test_nodes_are_the_sample_of_a_class() -> None:
    """Each of two nodes has ten trials that hardly differ. Their deviation does not show the one between nodes."""
    nodes = [sample([base + step / 100 for step in range(10)]) for base in (1.0, 2.0)]
    found = pool_nodes(nodes)
    assert found is not None
    assert (found.size, found.degrees, found.count) == (2, 1, 20)
    assert found.mean == pytest.approx(1.545)
    assert found.error == pytest.approx(stdev([1.045, 2.045]) / sqrt(2))
    other = pool_nodes([sample([3.0 + step / 100 for step in range(10)]) for _ in range(2)])
    assert other is not None
    assert MeanDifference(found, other).p > 0.05


def test_results_of_one_node_are_one_sample() -> None:
    first, second = [1.0, 2.0, 4.0], [3.0, 5.0]
    found = pool_trials([sample(first), sample(second)])
    whole = sample(first + second)
    assert (found.count, found.size) == (5, 5)
    assert (found.mean, found.deviation, found.error) == pytest.approx((whole.mean, whole.deviation, whole.error))


def test_interval_of_a_positive_mean_is_above_zero() -> None:
    """One of three round trips stalled: the mean is 492 µs, and its interval on the linear scale is -350 to 1,334."""
    found = sample([290e3, 300e3, 886e3])
    assert found.low is not None and found.high is not None
    assert 0 < found.low < found.mean < found.high
    assert found.low * found.high == pytest.approx(found.mean**2)
    assert sample([0.0, 0.0]).interval == (0.0, 0.0)


def test_similar_runs_narrow_the_wide_interval_of_the_prior() -> None:
    now, one = RunMean(0.3, 1e-6, 9), RunMean(0.0, 1e-6, 9)
    similar = [RunMean(each / 1000, 1e-6, 9) for each in (0, 2, -3, 1, -1)]
    assert compare_with_runs(now, [one]).p > RUN_SIGNIFICANCE > compare_with_runs(now, [one], similar).p
    low, high = compare_with_runs(now, similar).interval
    assert 1 < low < high


def test_the_quantiles_are_those_of_jeffreys_posterior() -> None:
    found = pool_rates([(1.0, [EventCount(3, 20)])])
    for tail in (0.025, 0.975):
        assert exp(found.quantile(tail)) == pytest.approx(stats.gamma.ppf(tail, 3.5) / 20, rel=1e-6)
    assert found.minus(found).cdf(0.0) == pytest.approx(0.5)


def test_different_nodes_widen_the_posterior() -> None:
    even, uneven = (
        pool_rates([(1.0, [EventCount(5, 10), EventCount(5, 10)])]),
        pool_rates([(1.0, [EventCount(10, 10), EventCount(0, 10)])]),
    )
    assert uneven.deviation > 2 * even.deviation


def test_a_rate_without_events_may_be_positive() -> None:
    never, once = pool_rates([(1.0, [EventCount(0, 10)])]), pool_rates([(1.0, [EventCount(1, 10)])])
    found = prospects({"never": never, "once": once})
    assert found["never"].best == pytest.approx(never.minus(once).cdf(0.0), abs=0.01)
    assert 0.7 < found["never"].best < 0.95


def test_the_interval_without_events_has_a_positive_upper_end() -> None:
    assert rate_interval(0, 10) == pytest.approx((0, 0.2512), abs=1e-4)
    assert rate_interval(4, 10)[0] > 0


def test_more_exposure_narrows_the_interval() -> None:
    few, many = rate_interval(4, 10), rate_interval(400, 1000)
    assert few[0] < many[0] < 0.4 < many[1] < few[1]


def test_events_in_bursts_widen_the_interval() -> None:
    assert dispersion([0, 0, 0, 12]) == pytest.approx(12)
    assert dispersion([3, 3, 3, 3]) == dispersion([0, 0]) == dispersion([5]) == dispersion([]) == 1
    even, burst = rate_interval(12, 4), rate_interval(12, 4, 12)
    assert burst[0] < even[0] < even[1] < burst[1]


@pytest.mark.parametrize(("exposure", "spread"), [(0, 1), (1, 0)])
def test_a_rate_needs_exposure_and_dispersion(exposure: float, spread: float) -> None:
    with pytest.raises(ValueError, match="exposure"):
        rate_interval(1, exposure, spread)
