"""Rates of events."""

from math import exp

import pytest
from scipy import stats

from tierbench.stats.posterior import prospects
from tierbench.stats.rates import EventCount, dispersion, pool_rates, rate_interval


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
