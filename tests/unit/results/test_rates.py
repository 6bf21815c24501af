"""Against SciPy, which the operator does without."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.unit.results.test_record import EXHAUSTED, line, measured
from tierbench.api.contract import TrialLine
from tierbench.results.rates import RETRIES, dispersion, gamma_distribution, gamma_quantile, rate_interval


@given(st.floats(0.01, 0.99), st.floats(0.5, 100_000))
def test_gamma_quantile(probability: float, shape: float) -> None:
    assert gamma_quantile(probability, shape) == pytest.approx(stats.gamma.ppf(probability, shape), rel=1e-5, abs=1e-9)


@given(st.floats(0, 200), st.floats(0.5, 100))
def test_gamma_distribution(x: float, shape: float) -> None:
    assert gamma_distribution(x, shape) == pytest.approx(stats.gamma.cdf(x, shape), abs=1e-10)


def test_no_event_leaves_room_for_some() -> None:
    assert rate_interval(0, 10) == pytest.approx((0, 0.2512), abs=1e-4)
    assert rate_interval(4, 10)[0] > 0


def test_longer_measurement_narrows_a_rate_and_leaves_it_where_it_is() -> None:
    few, many = rate_interval(4, 10), rate_interval(400, 1000)
    assert few[0] < many[0] < 0.4 < many[1] < few[1]


def test_events_in_bursts_tell_less() -> None:
    assert dispersion([0, 0, 0, 12]) == pytest.approx(12)
    assert dispersion([3, 3, 3, 3]) == dispersion([0, 0]) == dispersion([5]) == dispersion([]) == 1
    even, burst = rate_interval(12, 4), rate_interval(12, 4, 12)
    assert burst[0] < even[0] < even[1] < burst[1]


@pytest.mark.parametrize(("exposure", "spread"), [(0, 1), (1, 0)])
def test_without_exposure_there_is_no_rate(exposure: float, spread: float) -> None:
    with pytest.raises(ValueError, match="exposure"):
        rate_interval(1, exposure, spread)


@pytest.mark.parametrize(("probability", "shape"), [(0, 1), (1, 1), (0.5, 0)])
def test_gamma_quantile_refuses(probability: float, shape: float) -> None:
    with pytest.raises(ValueError, match="no quantile"):
        gamma_quantile(probability, shape)


def test_a_mean_of_less_than_one_retry_is_kept() -> None:
    """Two in five trials, one of them in a trial that failed."""
    lines = [_retried(1, 1), _retried(2, 0), _retried(3, 0), _retried(4, 0), _retried(5, 1, **EXHAUSTED)]
    found = measured(lines).statistics
    assert found[RETRIES].mean == 400_000
    assert found[RETRIES].count == 5
    assert found[RETRIES].confidence_low is not None and found[RETRIES].confidence_low > 0
    assert "retries" not in found


def _retried(number: int, retries: int, **more: Any) -> TrialLine:
    transfer = {"bytes": 1, "downloads": 1, "retries": retries}
    return line(number, transfer=transfer, **more)
