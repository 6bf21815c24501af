"""Changes between runs and between classes, from their results."""

from collections.abc import Sequence

import pytest

from tests.unit.advice.questions import edited
from tests.unit.kinds.network.trials import flow, line, spec
from tests.unit.kinds.network.trials import measured as network_measured
from tests.unit.report.published import measured
from tierbench.advice.comparison import Change, compare_classes, compare_runs
from tierbench.advice.tables import result_estimate
from tierbench.api.model import Metadata
from tierbench.api.result import BenchmarkResult

TIME = "durationNanoseconds"
RATE = "throughputBytesPerSecond"
RETRIES = "retriesPerTrialPartsPerMillion"
CUT_OFF = {"trials": 3, "reason": "TimedOut", "message": "The client ran out of time."}


def test_standard_error_of_a_trimmed_mean_follows_from_its_interval() -> None:
    """The deviation lacks the trimmed trials, so an error that follows from it would be too small."""
    trim = {"lowest": 1, "highest": 1}
    lines = [line(number, upload=flow(rate)) for number, rate in enumerate((10, 88, 89, 90, 91, 92, 300), start=1)]
    result = BenchmarkResult(
        metadata=Metadata(name="r"), spec=spec(7, trim), status=network_measured(*lines, trim=trim)
    )
    found = result_estimate(result, "throughputBitsPerSecond")
    statistic = result.status.statistics["throughputBitsPerSecond"]
    assert found is not None
    assert statistic.confidence_high is not None
    assert found.error is not None
    assert found.high == pytest.approx(statistic.confidence_high, abs=2)
    assert found.deviation is not None
    assert found.error > 1.3 * found.deviation / 5**0.5


def run(number: int, seconds: float, retries: Sequence[int] = (0,) * 10) -> BenchmarkResult:
    """Returns a run of ten trials that hardly differ."""
    trials = [(seconds * (1 + step / 1000), retried) for step, retried in enumerate(retries)]
    return measured("cloud", "1M", trials, run=number)


def change(*seconds: float, quantity: str = TIME) -> Change:
    """Returns the change of the last run, compared with the runs before it."""
    *before, now = (run(number, each) for number, each in enumerate(seconds, start=1))
    (found,) = compare_runs(before, [now], quantity)
    return found


@pytest.mark.parametrize("before", [(1.0,), (1.0, 1.03), (1.0, 0.97, 1.02), (1.0, 1.03, 0.98, 1.01, 0.97)])
@pytest.mark.parametrize("today", [0.96, 1.0, 1.04])
def test_drift_of_4_percent_between_days_is_not_significant(before: tuple[float, ...], today: float) -> None:
    """By the trials alone, which differ by 0.1%, it would be significant."""
    assert not change(*before, today).is_significant
    assert not change(*before, today, quantity=RATE).is_significant


@pytest.mark.parametrize("before", [(1.0,), (1.0, 1.03), (1.0, 1.05, 0.95, 1.03, 0.98)])
def test_twice_the_time_is_significant_with_one_and_several_earlier_runs(before: tuple[float, ...]) -> None:
    slower, faster = change(*before, 2.0), change(*before, 0.5)
    assert slower.worse(0.05) and not slower.better
    assert faster.better and not faster.worse()
    assert change(*before, 2.0, quantity=RATE).worse(0.05)
    assert slower.runs == len(before)
    assert slower.interval is not None and 0 < slower.interval[0] < slower.value < slower.interval[1]


def test_difference_is_significant_only_if_earlier_runs_are_similar() -> None:
    assert change(1.0, 1.004, 0.998, 1.002, 1.0, 1.1).is_significant
    assert not change(1.0, 1.1, 0.92, 1.05, 0.97, 1.1).is_significant


def test_run_whose_slow_trials_were_cut_off_is_never_better() -> None:
    before, quick, slow = [run(1, 1.0), run(2, 1.01)], run(3, 0.4), run(3, 2.5)
    (better,) = compare_runs(before, [edited(quick, missing=CUT_OFF)], TIME)
    assert better.is_significant and not better.better
    (worse,) = compare_runs(before, [edited(slow, missing=CUT_OFF)], TIME)
    assert worse.worse()
    (by_bound,) = compare_runs([edited(run(1, 1.0), missing=CUT_OFF)], [slow], TIME)
    assert not by_bound.worse(), "the mean of the earlier run is a lower bound"
    (whole,) = compare_runs([edited(run(1, 9.0), missing=CUT_OFF), run(2, 1.0)], [slow], TIME)
    assert whole.first.mean == pytest.approx(1e9, rel=0.01), "only the complete run is compared"


def test_retries_are_compared_as_counts() -> None:
    none, some, many = (run(number, 1.0, [each] * 10) for number, each in enumerate((0, 1, 9), start=1))
    assert [found.p for found in compare_runs([none], [run(2, 1.0)], RETRIES)] == [1.0]
    (found,) = compare_runs([none], [many], RETRIES)
    assert found.worse() and found.share is None
    (one,) = compare_runs([run(1, 1.0)], [run(2, 1.0, [1, *[0] * 9])], RETRIES)
    assert not one.is_significant
    (less,) = compare_runs([many], [some], RETRIES)
    assert less.better
    burst = run(2, 1.0, [12, *[0] * 9])
    (unsure,) = compare_runs([none], [burst], RETRIES)
    assert not unsure.is_significant, "retries of one trial are one event"


def test_run_of_one_trial_has_no_interval() -> None:
    lone = measured("cloud", "1M", [(9.0, 0)], run=2)
    (found,) = compare_runs([run(1, 1.0)], [lone], TIME)
    assert (found.p, found.interval) == (1.0, None)


def test_classes_are_compared_by_the_trials_of_a_run() -> None:
    cloud, jetson = run(1, 1.0), measured("jetson", "1M", [(1.1 * (1 + step / 1000), 0) for step in range(10)], 2)
    (found,) = compare_classes([cloud], [jetson], TIME)
    assert found.worse() and found.runs == 0
    assert found.value == pytest.approx(found.second.mean - found.first.mean)
    assert found.interval is not None and found.interval[0] < found.value < found.interval[1]
