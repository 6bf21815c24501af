"""The interval of a quantile is as narrow as the number of values allows, whatever their distribution."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tierbench.stats.quantiles import interval_ranks, required_count, sample_quantile


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
