"""Against SciPy, which the operator does without, and against answers that can be worked out by hand."""

from math import sqrt
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.unit.advice.estimates import sample
from tests.unit.kinds.network.trials import flow, line, measured, spec
from tierbench.advice.comparison import Difference, adjusted
from tierbench.advice.estimate import of_class, of_node, reading
from tierbench.api.model import Metadata
from tierbench.api.result import BenchmarkResult

SAMPLES = st.lists(st.floats(1, 1e6), min_size=2, max_size=12).filter(lambda values: stdev(values) > 1e-3)


@given(SAMPLES, SAMPLES)
def test_welch_agrees_with_scipy(first: list[float], second: list[float]) -> None:
    ours, theirs = Difference(sample(first), sample(second)), stats.ttest_ind(first, second, equal_var=False)
    assert ours.p == pytest.approx(theirs.pvalue, abs=1e-8)
    assert ours.degrees == pytest.approx(theirs.df, rel=1e-9)
    assert ours.interval == pytest.approx(tuple(theirs.confidence_interval(0.95)), rel=1e-6, abs=1e-6)


def test_unequal_variances_are_not_pooled() -> None:
    """Pooled, two steady values among ten wild ones would make p 0.02; Welch says 0.16."""
    wild, steady = [1.0, 9.0, 2.0, 8.0], [9.0, 9.01, 9.0, 9.02, 9.01, 9.0, 9.0, 9.01, 9.02, 9.0]
    assert stats.ttest_ind(wild, steady).pvalue < 0.05
    assert Difference(sample(wild), sample(steady)).p > 0.1


def test_a_single_value_shows_nothing() -> None:
    difference = Difference(sample([1.0]), sample([9.0, 9.1, 9.2]))
    assert (difference.p, difference.interval) == (1.0, None)


@pytest.mark.parametrize(("count", "shown"), [(2, False), (3, False), (4, True), (10, True)])
def test_values_that_never_vary_are_told_apart_by_permutation(count: int, shown: bool) -> None:
    first, second = [1.0] * count, [2.0] * count
    ours = Difference(sample(first), sample(second)).p
    theirs = stats.permutation_test((first, second), lambda a, b: fmean(a) - fmean(b), n_resamples=10**6)
    assert ours == pytest.approx(theirs.pvalue)
    assert (ours <= 0.05) is shown
    assert Difference(sample(first), sample(first)).p == 1


def test_holm_by_hand() -> None:
    found = adjusted({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert found == pytest.approx({"d": 0.02, "a": 0.03, "c": 0.06, "b": 0.06})
    assert adjusted({"a": 0.7, "b": 0.9}) == {"a": 1.0, "b": 1.0}
    assert adjusted({}) == {}


def test_nodes_not_trials_are_the_sample_of_a_class() -> None:
    """Ten steady trials on each of two nodes: their spread says nothing of that of the class."""
    nodes = [sample([base + step / 100 for step in range(10)]) for base in (1.0, 2.0)]
    found = of_class(nodes)
    assert found is not None
    assert (found.size, found.degrees, found.count) == (2, 1, 20)
    assert found.mean == pytest.approx(1.545)
    assert found.error == pytest.approx(stdev([1.045, 2.045]) / sqrt(2))
    other = of_class([sample([3.0 + step / 100 for step in range(10)]) for _ in range(2)])
    assert other is not None
    assert Difference(found, other).p > 0.05


def test_readings_of_one_node_are_one_sample() -> None:
    first, second = [1.0, 2.0, 4.0], [3.0, 5.0]
    found = of_node([sample(first), sample(second)])
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
    result = BenchmarkResult(metadata=Metadata(name="r"), spec=spec(7, trim), status=measured(*lines, trim=trim))
    found = reading(result, "throughputBitsPerSecond")
    statistic = result.status.statistics["throughputBitsPerSecond"]
    assert found is not None
    assert statistic.confidence_high is not None
    assert found.error is not None
    assert found.high == pytest.approx(statistic.confidence_high, abs=2)
    assert found.deviation is not None
    assert found.error > 1.3 * found.deviation / 5**0.5
