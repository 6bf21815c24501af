"""Summaries of samples agree with NumPy and SciPy, which the operator does not depend on."""

from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tierbench.stats.samples import (
    mean_interval,
    percentile,
    standard_error,
    summarize,
    summarize_trimmed,
)

VALUES = st.lists(st.integers(0, 10**9), min_size=1, max_size=60)


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
    assert (found.minimum, found.maximum) == (min(values), max(values))
    wanted = np.percentile(values, [50, 90, 99], method="linear")
    assert (found.p50, found.p90, found.p99) == pytest.approx(tuple(wanted), abs=1)
    if found.deviation:
        low, high = np.exp(stats.t.interval(0.95, len(values) - 1, np.log(mean), stats.sem(values) / mean))
        assert found.low == pytest.approx(low, rel=1e-6, abs=1)
        assert found.high == pytest.approx(high, rel=1e-6, abs=1)


def test_no_interval_is_negative() -> None:
    """A round trip of 492 µs on average, seen as −350 to 1,334 µs."""
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
    assert (found.count, found.mean, found.p99) == (1, 7, 7)
    assert found.deviation is None
    assert found.low is None


def test_an_empty_sample_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one"):
        summarize([])


def test_the_interval_is_that_of_a_trimmed_mean() -> None:
    """By hand: Winsorized 4 4 5 6 7 8 8, mean 6, squares 4+4+1+0+1+4+4 = 18. Error sqrt(18/20). t(4) = 2.776."""
    values = [value * 1000 for value in (1, 4, 5, 6, 7, 8, 50)]
    found = summarize_trimmed(values, 1, 1)
    assert found.mean == 6000
    factor = exp(2.776445 * (18 / 20) ** 0.5 / 6)
    assert found.high == pytest.approx(6000 * factor, abs=1)
    assert found.low == pytest.approx(6000 / factor, abs=1)
