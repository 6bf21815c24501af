"""Percentiles over trials, retries per trial, and which values are better."""

from math import ceil, sqrt

import pytest
from scipy import stats

from tests.unit.report.published import measured
from tierbench.advice.estimate import percentile_name, smaller_is_better, with_derived_quantities
from tierbench.results.quantities import RETRIES
from tierbench.stats.distributions import quantile_error

P50, P99 = (percentile_name("durationNanoseconds", which) for which in ("P50", "P99"))


@pytest.mark.parametrize(
    ("quantity", "small"),
    [
        ("durationNanoseconds", True),
        ("throughputBytesPerSecond", False),
        ("fairnessPartsPerMillion", False),
        ("pairFairnessPartsPerMillion", False),
    ],
)
def test_larger_rates_and_fairness_are_better(quantity: str, small: bool) -> None:
    assert smaller_is_better(quantity) == small


@pytest.mark.parametrize(("count", "share"), [(10, 0.5), (25, 0.5), (30, 0.5), (60, 0.9), (500, 0.99)])
def test_error_of_a_quantile_follows_from_its_interval(count: int, share: float) -> None:
    values = [float(number**2) for number in range(1, count + 1)]
    half = stats.norm.ppf(0.975) * sqrt(count * share * (1 - share))
    low, high = ceil(count * share - half), ceil(count * share + half)
    coverage = stats.binom.cdf(high - 1, count, share) - stats.binom.cdf(low - 1, count, share)
    assert coverage == pytest.approx(0.95, abs=0.03)
    wanted = (values[high - 1] - values[low - 1]) / (2 * stats.norm.ppf((1 + coverage) / 2))
    assert quantile_error(values, share) == pytest.approx(wanted)


def test_error_of_the_median_of_normal_values() -> None:
    values = [float(stats.norm.ppf((number - 0.5) / 1001)) for number in range(1, 1002)]
    assert quantile_error(values, 0.5) == pytest.approx(sqrt(3.14159265 / 2 / 1001), rel=0.03)


@pytest.mark.parametrize(("count", "share"), [(10, 0.9), (30, 0.99), (3, 0.5), (1, 0.5)])
def test_too_few_values_have_no_error(count: int, share: float) -> None:
    assert quantile_error([float(number) for number in range(count)], share) is None


def test_percentile_over_trials() -> None:
    result = with_derived_quantities(measured("cloud", "1M", [(number / 10, 0) for number in range(1, 11)]), [P50, P99])
    median, high = result.status.statistics[P50], result.status.statistics[P99]
    assert (median.mean, high.mean) == (550_000_000, 991_000_000)
    assert median.standard_deviation == pytest.approx(1e9 * sqrt(10) * (0.9 - 0.2) / 2 / 2.2999, rel=1e-3)
    assert high.standard_deviation is None


def test_retries_per_trial() -> None:
    result = with_derived_quantities(measured("cloud", "1M", [(1.0, 0), (1.0, 3), (1.0, 0)]), [RETRIES])
    assert result.status.statistics[RETRIES].mean == 1_000_000
    assert result.status.statistics[RETRIES].standard_deviation == pytest.approx(1e6 * sqrt(3), abs=1)
    never = with_derived_quantities(measured("cloud", "1M", [(1.0, 0)]), [RETRIES]).status.statistics[RETRIES]
    assert (never.mean, never.standard_deviation) == (0, None)
