import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.histograms import bucket_index, histogram_of
from tierbench.results.merging import merge_histograms
from tierbench.stats.histogram import count_up_to, quantile, upper_bound

TIMES = st.lists(st.integers(1, 10**13), max_size=80)


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
    assert exact <= quantile(histogram_of(values), share) * (1 + 1e-12)
    assert quantile(histogram_of(values), share) <= exact * 2 ** (1 / 64) * (1 + 1e-12)


def test_a_quantile_is_not_moved_by_rounding() -> None:
    """0.07 * 100 is 7.000000000000001 as a float, and the seventh of a hundred is wanted."""
    doublings = histogram_of(2**exponent for exponent in range(1, 43))
    assert [quantile(doublings, rank / 42) for rank in range(1, 43)] == [2.0**exponent for exponent in range(1, 43)]
    assert quantile(histogram_of(2 ** (1 + rank // 7) for rank in range(100)), 0.07) == 2


def test_an_empty_histogram_has_no_quantile() -> None:
    with pytest.raises(ValueError, match="empty"):
        quantile(histogram_of([]), 0.5)


@given(TIMES, st.integers(1, 45))
def test_counting_up_to_a_power_of_two_is_exact(values: list[int], exponent: int) -> None:
    assert count_up_to(histogram_of(values), 2.0**exponent) == sum(value <= 2**exponent for value in values)
