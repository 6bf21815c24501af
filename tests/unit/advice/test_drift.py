"""A run is judged by how far runs differ, not by how far its trials do."""

from collections.abc import Sequence

import pytest

from tests.unit.advice.test_advise import edited
from tests.unit.report.published import measured
from tierbench.advice.comparison import SHOWN, Change, Run, compare_classes, compare_runs, drift
from tierbench.api.result import BenchmarkResult

TIME = "durationNanoseconds"
RATE = "throughputBytesPerSecond"
RETRIES = "retriesPerTrialPartsPerMillion"
CUT_OFF = {"trials": 3, "reason": "TimedOut", "message": "The client ran out of time."}


def run(number: int, seconds: float, retries: Sequence[int] = (0,) * 10) -> BenchmarkResult:
    """Ten trials that hardly differ."""
    trials = [(seconds * (1 + step / 1000), retried) for step, retried in enumerate(retries)]
    return measured("cloud", "1M", trials, run=number)


def change(*seconds: float, quantity: str = TIME) -> Change:
    """The last run against those before it."""
    *before, now = (run(number, each) for number, each in enumerate(seconds, start=1))
    (found,) = compare_runs(before, [now], quantity)
    return found


@pytest.mark.parametrize("before", [(1.0,), (1.0, 1.03), (1.0, 0.97, 1.02), (1.0, 1.03, 0.98, 1.01, 0.97)])
@pytest.mark.parametrize("today", [0.96, 1.0, 1.04])
def test_a_drift_of_a_few_percent_from_day_to_day_is_no_change(before: tuple[float, ...], today: float) -> None:
    """Of trials that differ by 1 ‰, within runs it would be shown beyond doubt."""
    assert not change(*before, today).shown
    assert not change(*before, today, quantity=RATE).shown


@pytest.mark.parametrize("before", [(1.0,), (1.0, 1.03), (1.0, 1.05, 0.95, 1.03, 0.98)])
def test_twice_the_time_is_a_change_with_one_earlier_run_and_with_many(before: tuple[float, ...]) -> None:
    slower, faster = change(*before, 2.0), change(*before, 0.5)
    assert slower.worse(0.05) and not slower.better
    assert faster.better and not faster.worse()
    assert change(*before, 2.0, quantity=RATE).worse(0.05)
    assert slower.runs == len(before)
    assert slower.interval is not None and 0 < slower.interval[0] < slower.value < slower.interval[1]


def test_steady_runs_show_what_restless_ones_hide() -> None:
    assert change(1.0, 1.004, 0.998, 1.002, 1.0, 1.1).shown
    assert not change(1.0, 1.1, 0.92, 1.05, 0.97, 1.1).shown


def test_of_a_run_whose_slow_trials_were_cut_off_nothing_good_is_said() -> None:
    before, quick, slow = [run(1, 1.0), run(2, 1.01)], run(3, 0.4), run(3, 2.5)
    (better,) = compare_runs(before, [edited(quick, missing=CUT_OFF)], TIME)
    assert better.shown and not better.better
    (worse,) = compare_runs(before, [edited(slow, missing=CUT_OFF)], TIME)
    assert worse.worse()
    (by_bound,) = compare_runs([edited(run(1, 1.0), missing=CUT_OFF)], [slow], TIME)
    assert not by_bound.worse(), "the earlier run was slower than it looks"
    (whole,) = compare_runs([edited(run(1, 9.0), missing=CUT_OFF), run(2, 1.0)], [slow], TIME)
    assert whole.first.mean == pytest.approx(1e9, rel=0.01), "a whole run is what it is compared with"


def test_retries_are_compared_as_counts_and_zero_is_one_of_them() -> None:
    none, some, many = (run(number, 1.0, [each] * 10) for number, each in enumerate((0, 1, 9), start=1))
    assert [found.p for found in compare_runs([none], [run(2, 1.0)], RETRIES)] == [1.0]
    (found,) = compare_runs([none], [many], RETRIES)
    assert found.worse() and found.share is None
    (one,) = compare_runs([run(1, 1.0)], [run(2, 1.0, [1, *[0] * 9])], RETRIES)
    assert not one.shown
    (less,) = compare_runs([many], [some], RETRIES)
    assert less.better
    burst = run(2, 1.0, [12, *[0] * 9])
    (unsure,) = compare_runs([none], [burst], RETRIES)
    assert not unsure.shown, "retries of one trial are one event"


def test_a_single_trial_tells_nothing() -> None:
    lone = measured("cloud", "1M", [(9.0, 0)], run=2)
    (found,) = compare_runs([run(1, 1.0)], [lone], TIME)
    assert (found.p, found.interval) == (1.0, None)


def test_the_prior_alone_is_wide_and_runs_narrow_it() -> None:
    one, steady = Run(0.0, 1e-6, 9), [Run(each / 1000, 1e-6, 9) for each in (0, 2, -3, 1, -1)]
    assert drift(Run(0.3, 1e-6, 9), [one]).p > SHOWN > drift(Run(0.3, 1e-6, 9), [one], steady).p
    found = drift(Run(0.3, 1e-6, 9), steady)
    assert found.low < found.ratio < found.high


def test_classes_are_compared_within_their_run() -> None:
    cloud, jetson = run(1, 1.0), measured("jetson", "1M", [(1.1 * (1 + step / 1000), 0) for step in range(10)], 2)
    (found,) = compare_classes([cloud], [jetson], TIME)
    assert found.worse() and found.runs == 0
    assert found.value == pytest.approx(found.second.mean - found.first.mean)
    assert found.interval is not None and found.interval[0] < found.value < found.interval[1]
