"""A percentile is known as well as so many values allow, whatever their distribution."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.unit.kinds.broker import trials as broker
from tests.unit.report.published import measured
from tierbench.api.contract import Distributions
from tierbench.api.model import Metadata
from tierbench.api.result import BenchmarkResult
from tierbench.results import histogram
from tierbench.results.percentiles import needed, of_values, percentile_over, ranks


@pytest.mark.parametrize(("share", "count"), [(0.5, 6), (0.9, 36), (0.95, 72), (0.99, 368)])
def test_an_upper_bound_needs_so_many_values(share: float, count: int) -> None:
    assert needed(share) == count
    assert ranks(count, share)[1] == count
    assert ranks(count - 1, share)[1] is None


@given(st.sampled_from([0.5, 0.9, 0.99]), st.integers(1, 40_000))
def test_ranks_enclose_the_quantile_in_95_of_100_samples(share: float, count: int) -> None:
    low, high = ranks(count, share)
    if low is not None:
        assert stats.binom.cdf(low - 1, count, share) <= 0.026
    if high is not None:
        assert stats.binom.sf(high - 1, count, share) <= 0.026


def test_few_values_bound_a_percentile_from_below_alone() -> None:
    found = of_values([float(value) for value in range(1, 11)], 0.99)
    assert (found.low, found.high, found.known) == (9, None, False)


def test_of_transfers_it_is_over_trials_of_all_results() -> None:
    results = [
        measured("cloud", "1M", [(1.0 + step / 100, 0) for step in range(10)], node=f"c{node}") for node in range(4)
    ]
    one, four = (percentile_over(some, "durationNanoseconds", 0.9) for some in (results[:1], results))
    assert one is not None and four is not None
    assert (one.count, one.known, four.count, four.known) == (10, False, 40, True)
    assert percentile_over([], "durationNanoseconds", 0.9) is None


def exchanged(*trials: int) -> BenchmarkResult:
    """Trials of a thousand messages each, the slowest 5 % of which took so many nanoseconds."""
    lines = [
        broker.line(number).model_copy(
            update={"distributions": Distributions(round_trip=histogram.of([200_000] * 950 + [slow] * 50))}
        )
        for number, slow in enumerate(trials, start=1)
    ]
    status = broker.measured(*lines)
    return BenchmarkResult(metadata=Metadata(name="r"), spec=broker.spec(len(trials)), status=status)


def test_of_messages_it_is_over_all_of_them_and_as_wide_as_trials_differ() -> None:
    alike = percentile_over([exchanged(4_000_000, 4_000_000, 4_000_000)], "roundTripNanoseconds", 0.99)
    apart = percentile_over([exchanged(2_000_000, 4_000_000, 8_000_000)], "roundTripNanoseconds", 0.99)
    assert alike is not None and apart is not None
    assert (alike.count, alike.known) == (3000, True)
    assert alike.value == pytest.approx(4_000_000, rel=0.011)
    assert alike.low is not None and alike.high is not None and apart.low is not None and apart.high is not None
    assert alike.low <= alike.value <= alike.high <= 1.02 * alike.low
    assert apart.low < 2_000_000
    assert apart.high > 8_000_000
