"""Distributions of samples and histograms agree with NumPy and SciPy, which the operator does not depend on."""

from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.histograms import bucket_index, histogram_of
from tierbench.results.client_output import merge_histograms
from tierbench.stats.distributions import (
    bucket_quantile,
    exponent_of,
    interval_ranks,
    mean_interval,
    percentile,
    required_count,
    sample_quantile,
    standard_error,
    summarize,
    summarize_trimmed,
    upper_bound,
)

VALUES = st.lists(st.integers(0, 10**9), min_size=1, max_size=60)
TIMES = st.lists(st.integers(1, 10**13), max_size=80)


@given(VALUES, st.floats(0, 1))
def test_percentile_is_type_7(values: list[int], share: float) -> None:
    ordered = sorted(values)
    assert percentile(ordered, share) == pytest.approx(
        stats.mstats.mquantiles(ordered, [share], 1, 1)[0], rel=1e-6, abs=1e-3
    )


@given(st.lists(st.integers(0, 10**12), min_size=2, max_size=50))
def test_summarize_agrees_with_scipy(values: list[int]) -> None:
    found = summarize(values)
    mean = float(np.mean(values))
    assert found.mean == pytest.approx(mean, abs=1)
    assert found.deviation == pytest.approx(np.std(values, ddof=1), abs=1)
    assert found.p50 == pytest.approx(np.percentile(values, 50, method="linear"), abs=1)
    if found.deviation:
        low, high = np.exp(stats.t.interval(0.95, len(values) - 1, np.log(mean), stats.sem(values) / mean))
        assert found.low == pytest.approx(low, rel=1e-6, abs=1)
        assert found.high == pytest.approx(high, rel=1e-6, abs=1)


def test_no_interval_is_negative() -> None:
    """On the linear scale, the interval of a mean of 492 µs would be −350 to 1,334 µs."""
    found = summarize([250_000, 340_000, 886_000])
    assert found.low is not None and found.high is not None
    assert 0 < found.low < found.mean < found.high
    assert (summarize([0, 0, 0]).low, summarize([0, 0, 0]).high) == (0, 0)
    lone = summarize([0, 4])
    assert lone.low == pytest.approx(0, abs=1e-5)
    assert lone.mean == 2


def test_standard_error_inverts_the_interval() -> None:
    high = mean_interval(7.0, 0.4, 9)[1]
    assert standard_error(7.0, high, 9) == pytest.approx(0.4)
    assert standard_error(0.0, 0.0, 9) == standard_error(7.0, 7.0, 9) == 0


def test_one_value_has_no_spread() -> None:
    found = summarize([7])
    assert (found.count, found.mean, found.p50) == (1, 7, 7)
    assert found.deviation is None
    assert found.low is None


def test_an_empty_sample_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one"):
        summarize([])


def test_summarize_trimmed_returns_the_interval_of_a_trimmed_mean() -> None:
    """By hand: Winsorized 4 4 5 6 7 8 8, mean 6, squares 4+4+1+0+1+4+4 = 18. Error sqrt(18/20). t(4) = 2.776."""
    values = [value * 1000 for value in (1, 4, 5, 6, 7, 8, 50)]
    found = summarize_trimmed(values, 1, 1)
    assert found.mean == 6000
    factor = exp(2.776445 * (18 / 20) ** 0.5 / 6)
    assert found.high == pytest.approx(6000 * factor, abs=1)
    assert found.low == pytest.approx(6000 / factor, abs=1)


@pytest.mark.parametrize(("share", "count"), [(0.5, 6), (0.9, 36), (0.95, 72), (0.99, 368)])
def test_required_count_is_the_least_count_with_an_upper_bound(share: float, count: int) -> None:
    assert required_count(share) == count
    assert interval_ranks(count, share)[1] == count
    assert interval_ranks(count - 1, share)[1] is None


@given(st.sampled_from([0.5, 0.9, 0.99]), st.integers(1, 40_000))
def test_ranks_enclose_the_quantile_in_95_percent_of_samples(share: float, count: int) -> None:
    low, high = interval_ranks(count, share)
    if low is not None:
        assert stats.binom.cdf(low - 1, count, share) <= 0.026
    if high is not None:
        assert stats.binom.sf(high - 1, count, share) <= 0.026


def test_few_values_give_a_lower_bound_only() -> None:
    found = sample_quantile([float(value) for value in range(1, 11)], 0.99)
    assert (found.low, found.high) == (9, None)


@given(st.integers(2, 10**18) | st.sampled_from([151822085212527, 896859299891658]))
def test_a_value_is_within_the_bounds_of_its_bucket(value: int) -> None:
    index = bucket_index(value)
    assert 2 ** (index - 1) < value**64 <= 2**index
    assert upper_bound(index - 1) <= value * (1 + 1e-12)
    assert value <= upper_bound(index) * (1 + 1e-12)


@given(st.integers(1, 50))
def test_a_power_of_two_is_the_largest_value_of_its_bucket(exponent: int) -> None:
    assert bucket_index(2**exponent) == 64 * exponent
    assert bucket_index(2**exponent + 1) > 64 * exponent


@given(TIMES, TIMES, TIMES)
def test_merging_is_exact_in_any_order(one: list[int], two: list[int], three: list[int]) -> None:
    everything = histogram_of([*one, *two, *three])
    assert merge_histograms([histogram_of(one), histogram_of(two), histogram_of(three)]) == everything
    assert (
        merge_histograms([merge_histograms([histogram_of(three), histogram_of(one)]), histogram_of(two)]) == everything
    )


@given(st.lists(st.integers(1, 10**13), min_size=1, max_size=80), st.floats(0, 1))
def test_a_quantile_is_at_most_a_bucket_too_high(values: list[int], share: float) -> None:
    ordered = sorted(values)
    exact = ordered[max(0, -int(-share * len(ordered) // 1) - 1)]
    assert exact <= bucket_quantile(histogram_of(values), share) * (1 + 1e-12)
    assert bucket_quantile(histogram_of(values), share) <= exact * 2 ** (1 / 64) * (1 + 1e-12)


def test_a_quantile_is_not_moved_by_rounding() -> None:
    """0.07 * 100 is 7.000000000000001 as a float, but the quantile is the seventh of 100 values."""
    doublings = histogram_of(2**exponent for exponent in range(1, 43))
    assert [bucket_quantile(doublings, rank / 42) for rank in range(1, 43)] == [
        2.0**exponent for exponent in range(1, 43)
    ]
    assert bucket_quantile(histogram_of(2 ** (1 + rank // 7) for rank in range(100)), 0.07) == 2


def test_an_empty_histogram_has_no_quantile() -> None:
    with pytest.raises(ValueError, match="empty"):
        bucket_quantile(histogram_of([]), 0.5)


@given(st.integers(1, 2**45), st.integers(-7, 12))
def test_a_time_is_in_the_smallest_power_of_two_seconds_that_holds_it(nanoseconds: int, exponent: int) -> None:
    found = exponent_of(nanoseconds)
    assert 2.0**found * 1e9 * (1 + 1e-8) >= nanoseconds > 2.0 ** (found - 1) * 1e9
    assert exponent_of(2.0**exponent * 1e9) == exponent
