"""Runs and classes are compared as SciPy would, as can be worked out by hand, and by how far runs differ."""

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.unit.advice.estimates import sample
from tests.unit.advice.test_advise import edited
from tests.unit.kinds.network.trials import flow, line, spec
from tests.unit.kinds.network.trials import measured as network_measured
from tests.unit.report.published import measured
from tierbench.advice.comparison import (
    RUN_SIGNIFICANCE,
    Change,
    MeanDifference,
    RunMean,
    compare_classes,
    compare_runs,
    compare_with_runs,
    holm_adjusted,
)
from tierbench.advice.estimate import pool_nodes, pool_trials, result_estimate
from tierbench.api.model import Metadata
from tierbench.api.result import BenchmarkResult

SAMPLES = st.lists(st.floats(1, 1e6), min_size=2, max_size=12).filter(lambda values: stdev(values) > 1e-3)
TIME = "durationNanoseconds"
RATE = "throughputBytesPerSecond"
RETRIES = "retriesPerTrialPartsPerMillion"
CUT_OFF = {"trials": 3, "reason": "TimedOut", "message": "The client ran out of time."}


@given(SAMPLES, SAMPLES)
def test_welch_agrees_with_scipy(first: list[float], second: list[float]) -> None:
    ours, theirs = MeanDifference(sample(first), sample(second)), stats.ttest_ind(first, second, equal_var=False)
    assert ours.p == pytest.approx(theirs.pvalue, abs=1e-8)
    assert ours.degrees == pytest.approx(theirs.df, rel=1e-9)
    assert ours.interval == pytest.approx(tuple(theirs.confidence_interval(0.95)), rel=1e-6, abs=1e-6)


def test_unequal_variances_are_not_pooled() -> None:
    """Pooled, two steady values among ten wild ones would make p 0.02; Welch says 0.16."""
    wild, steady = [1.0, 9.0, 2.0, 8.0], [9.0, 9.01, 9.0, 9.02, 9.01, 9.0, 9.0, 9.01, 9.02, 9.0]
    assert stats.ttest_ind(wild, steady).pvalue < 0.05
    assert MeanDifference(sample(wild), sample(steady)).p > 0.1


def test_a_single_value_shows_nothing() -> None:
    difference = MeanDifference(sample([1.0]), sample([9.0, 9.1, 9.2]))
    assert (difference.p, difference.interval) == (1.0, None)


@pytest.mark.parametrize(("count", "shown"), [(2, False), (3, False), (4, True), (10, True)])
def test_values_that_never_vary_are_told_apart_by_permutation(count: int, shown: bool) -> None:
    first, second = [1.0] * count, [2.0] * count
    ours = MeanDifference(sample(first), sample(second)).p
    theirs = stats.permutation_test((first, second), lambda a, b: fmean(a) - fmean(b), n_resamples=10**6)
    assert ours == pytest.approx(theirs.pvalue)
    assert (ours <= 0.05) is shown
    assert MeanDifference(sample(first), sample(first)).p == 1


def test_holm_by_hand() -> None:
    found = holm_adjusted({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert found == pytest.approx({"d": 0.02, "a": 0.03, "c": 0.06, "b": 0.06})
    assert holm_adjusted({"a": 0.7, "b": 0.9}) == {"a": 1.0, "b": 1.0}
    assert holm_adjusted({}) == {}


def test_nodes_not_trials_are_the_sample_of_a_class() -> None:
    """Ten steady trials on each of two nodes: their spread says nothing of that of the class."""
    nodes = [sample([base + step / 100 for step in range(10)]) for base in (1.0, 2.0)]
    found = pool_nodes(nodes)
    assert found is not None
    assert (found.size, found.degrees, found.count) == (2, 1, 20)
    assert found.mean == pytest.approx(1.545)
    assert found.error == pytest.approx(stdev([1.045, 2.045]) / sqrt(2))
    other = pool_nodes([sample([3.0 + step / 100 for step in range(10)]) for _ in range(2)])
    assert other is not None
    assert MeanDifference(found, other).p > 0.05


def test_readings_of_one_node_are_one_sample() -> None:
    first, second = [1.0, 2.0, 4.0], [3.0, 5.0]
    found = pool_trials([sample(first), sample(second)])
    whole = sample(first + second)
    assert (found.count, found.size) == (5, 5)
    assert (found.mean, found.deviation, found.error) == pytest.approx((whole.mean, whole.deviation, whole.error))


def test_the_interval_of_a_positive_mean_holds_nothing_below_zero() -> None:
    """Three round trips, one of which met a stall: 492 µs, and on the linear scale -350 to 1,334."""
    found = sample([290e3, 300e3, 886e3])
    assert found.low is not None and found.high is not None
    assert 0 < found.low < found.mean < found.high
    assert found.low * found.high == pytest.approx(found.mean**2)
    assert sample([0.0, 0.0]).interval == (0.0, 0.0)


def test_a_trimmed_mean_is_known_as_well_as_its_interval_says() -> None:
    """What was left out is missing in the deviation: by that alone it would look better known."""
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
    assert not change(*before, today).is_significant
    assert not change(*before, today, quantity=RATE).is_significant


@pytest.mark.parametrize("before", [(1.0,), (1.0, 1.03), (1.0, 1.05, 0.95, 1.03, 0.98)])
def test_twice_the_time_is_a_change_with_one_earlier_run_and_with_many(before: tuple[float, ...]) -> None:
    slower, faster = change(*before, 2.0), change(*before, 0.5)
    assert slower.worse(0.05) and not slower.better
    assert faster.better and not faster.worse()
    assert change(*before, 2.0, quantity=RATE).worse(0.05)
    assert slower.runs == len(before)
    assert slower.interval is not None and 0 < slower.interval[0] < slower.value < slower.interval[1]


def test_steady_runs_show_what_restless_ones_hide() -> None:
    assert change(1.0, 1.004, 0.998, 1.002, 1.0, 1.1).is_significant
    assert not change(1.0, 1.1, 0.92, 1.05, 0.97, 1.1).is_significant


def test_of_a_run_whose_slow_trials_were_cut_off_nothing_good_is_said() -> None:
    before, quick, slow = [run(1, 1.0), run(2, 1.01)], run(3, 0.4), run(3, 2.5)
    (better,) = compare_runs(before, [edited(quick, missing=CUT_OFF)], TIME)
    assert better.is_significant and not better.better
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
    assert not one.is_significant
    (less,) = compare_runs([many], [some], RETRIES)
    assert less.better
    burst = run(2, 1.0, [12, *[0] * 9])
    (unsure,) = compare_runs([none], [burst], RETRIES)
    assert not unsure.is_significant, "retries of one trial are one event"


def test_a_single_trial_tells_nothing() -> None:
    lone = measured("cloud", "1M", [(9.0, 0)], run=2)
    (found,) = compare_runs([run(1, 1.0)], [lone], TIME)
    assert (found.p, found.interval) == (1.0, None)


def test_the_prior_alone_is_wide_and_runs_narrow_it() -> None:
    one, steady = RunMean(0.0, 1e-6, 9), [RunMean(each / 1000, 1e-6, 9) for each in (0, 2, -3, 1, -1)]
    assert (
        compare_with_runs(RunMean(0.3, 1e-6, 9), [one]).p
        > RUN_SIGNIFICANCE
        > compare_with_runs(RunMean(0.3, 1e-6, 9), [one], steady).p
    )
    found = compare_with_runs(RunMean(0.3, 1e-6, 9), steady)
    assert found.low < found.ratio < found.high


def test_classes_are_compared_within_their_run() -> None:
    cloud, jetson = run(1, 1.0), measured("jetson", "1M", [(1.1 * (1 + step / 1000), 0) for step in range(10)], 2)
    (found,) = compare_classes([cloud], [jetson], TIME)
    assert found.worse() and found.runs == 0
    assert found.value == pytest.approx(found.second.mean - found.first.mean)
    assert found.interval is not None and found.interval[0] < found.value < found.interval[1]
