"""All by all time is no mean of rates."""

from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.kinds.broker.trials import line, measured
from tests.unit.results.test_record import line as download
from tests.unit.results.test_record import measured as downloaded
from tierbench.results.overall import describe_overall, is_overall

TIMES = {"rate": "time"}
VALUES = st.floats(min_value=1, max_value=1e9)


def test_a_slow_trial_weighs_as_much_as_it_took() -> None:
    statistics = measured(line(1), line(2, nanoseconds=3 * 10**9, sessionNanoseconds=4 * 10**9)).statistics
    assert statistics["throughputMessagesPerSecond"].mean == 667
    assert statistics["overallThroughputMessagesPerSecond"].mean == 500
    assert statistics["overallThroughputBytesPerSecond"].mean == 512_000
    assert "overallWireThroughputBytesPerSecond" in statistics


def test_of_file_transfers_too() -> None:
    statistics = downloaded([download(1), download(2, nanoseconds=3 * 10**9)]).statistics
    mean, overall = statistics["throughputBytesPerSecond"].mean, statistics["overallThroughputBytesPerSecond"].mean
    assert overall == pytest.approx(mean * 3 / 4, rel=0.01)


@given(st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=10))
def test_it_is_the_ratio_of_sums_within_its_interval(trials: list[tuple[float, float]]) -> None:
    rates, times = zip(*trials, strict=True)
    found = describe_overall({"rate": rates, "time": times}, TIMES)["overallRate"]
    ratio = fsum(rate * time for rate, time in trials) / fsum(times)
    assert found.mean == pytest.approx(ratio, abs=1)
    assert found.confidence_low is not None
    assert found.confidence_high is not None
    assert found.confidence_low - 1 <= ratio <= found.confidence_high + 1
    assert (found.minimum, found.maximum) == (round(min(rates)), round(max(rates)))


def test_of_trials_that_took_alike_it_is_their_mean_with_its_interval() -> None:
    columns = {"rate": [10.0, 20.0, 60.0], "time": [7.0, 7.0, 7.0]}
    found = describe_overall(columns, TIMES)["overallRate"]
    assert (found.mean, found.standard_deviation) == (30, 26)


def test_a_time_that_some_trials_lack_gives_none() -> None:
    assert describe_overall({"rate": [1.0, 2.0], "time": [1.0]}, TIMES) == {}
    assert describe_overall({"rate": [1.0]}, TIMES) == {}


def test_they_are_told_from_means() -> None:
    assert is_overall("overallRate")
    assert not is_overall("throughputBytesPerSecond")
