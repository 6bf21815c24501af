from typing import Any

import pytest

from tests.histograms import histogram_of
from tests.unit.kinds.broker import trials as broker
from tests.unit.report.published import measured
from tests.unit.results.trials import EXHAUSTED, line, sample
from tests.unit.results.trials import measured as downloaded
from tierbench.api.contract import Distributions, TrialFields, TrialLine
from tierbench.api.model import Metadata
from tierbench.api.record import ResultTrial
from tierbench.api.result import BenchmarkResult
from tierbench.results.quantities import RETRIES, percentile_over, quantities

FILES = "FileTransferBenchmark"
TRANSFER: dict[str, Any] = {"bytes": 2**20, "downloads": 1, "retries": 0, "firstByteNanoseconds": 7}


def trial(**fields: Any) -> ResultTrial:
    known = line(1, **fields)
    return ResultTrial(**{name: getattr(known, name) for name in TrialFields.model_fields})


def test_quantities_have_the_units_of_their_names() -> None:
    values = quantities(
        FILES,
        [
            trial(
                nanoseconds=2 * 10**9,
                client={"cpuNanoseconds": 5 * 10**8},
                transfer=TRANSFER,
                server=sample(deviceReadBytes=12, tcpRetransmits=3, ioWaitPartsPerMillion=4),
            )
        ],
    )
    assert values["durationNanoseconds"] == [2 * 10**9]
    assert values["throughputBytesPerSecond"] == [2**19]
    assert values["clientCpuPartsPerMillion"] == [250_000]
    assert values["firstByteNanoseconds"] == [7]
    assert values["serverDeviceReadBytes"] == [12]
    assert values["serverIoWaitPartsPerMillion"] == [4]
    assert values["tcpRetransmits"] == [3]


def test_a_lookup_is_a_quantity_if_there_was_one() -> None:
    assert quantities(FILES, [trial(transfer={**TRANSFER, "lookupNanoseconds": 9})])["lookupNanoseconds"] == [9]
    assert "lookupNanoseconds" not in quantities(FILES, [trial(transfer={**TRANSFER, "lookupNanoseconds": 0})])


def test_zero_is_a_value_and_unknown_is_none() -> None:
    values = quantities(FILES, [trial(transfer=TRANSFER, server=sample(tcpRetransmits=0)), trial(transfer=TRANSFER)])
    assert values["retries"] == [0, 0]
    assert values["tcpRetransmits"] == [0]
    assert "serverDeviceReadBytes" not in values


def test_a_trial_without_a_transfer_has_no_quantities() -> None:
    assert quantities(FILES, [trial(transfer=None)]) == {}
    assert quantities(FILES, []) == {}


def test_a_percentile_of_transfers_is_over_the_trials_of_all_results() -> None:
    results = [
        measured("cloud", "1M", [(1.0 + step / 100, 0) for step in range(10)], node=f"c{node}") for node in range(4)
    ]
    one, four = (percentile_over(some, "P50") for some in (results[:1], results))
    assert one is not None and four is not None
    assert (one.count, four.count) == (10, 40)
    assert (four.value, four.confidence_low, four.confidence_high) == (
        one.value,
        one.confidence_low,
        one.confidence_high,
    )
    assert percentile_over([], "P50") is None


def test_the_interval_of_a_percentile_contains_those_of_all_nodes() -> None:
    slow = measured("cloud", "1M", [(2.0 + step / 100, 0) for step in range(10)], node="c2")
    fast = measured("cloud", "1M", [(1.0 + step / 100, 0) for step in range(10)], node="c1")
    ends = [percentile_over([one], "P50") for one in (fast, slow)]
    both = percentile_over([fast, slow], "P50")
    assert both is not None and ends[0] is not None and ends[1] is not None
    assert both.confidence_low == ends[0].confidence_low
    assert both.confidence_high == ends[1].confidence_high
    ninety = percentile_over([fast, slow], "P90")
    assert ninety is not None and ninety.confidence_high is None, "ten trials have no upper end"


def exchanged(*trials: int) -> BenchmarkResult:
    """Trials of 1000 messages each, of which the slowest 5% took these nanoseconds."""
    lines = [
        broker.line(number).model_copy(
            update={"distributions": Distributions(round_trip=histogram_of([200_000] * 950 + [slow] * 50))}
        )
        for number, slow in enumerate(trials, start=1)
    ]
    status = broker.measured(*lines)
    return BenchmarkResult(metadata=Metadata(name="r"), spec=broker.spec(len(trials)), status=status)


def test_interval_of_a_message_percentile_grows_with_the_spread_of_trials() -> None:
    alike = percentile_over([exchanged(4_000_000, 4_000_000, 4_000_000)], "P99")
    apart = percentile_over([exchanged(2_000_000, 4_000_000, 8_000_000)], "P99")
    assert alike is not None and apart is not None
    assert alike.count == 3000
    assert alike.value == pytest.approx(4_000_000, rel=0.011)
    low, high = (end or 0 for end in (alike.confidence_low, alike.confidence_high))
    assert 0 < low <= alike.value <= high <= 1.02 * low
    assert (apart.confidence_low or 0) < 2_000_000
    assert (apart.confidence_high or 0) > 8_000_000


def test_a_mean_of_less_than_one_retry_is_not_rounded_to_zero() -> None:
    """Five trials have two retries, one of them in a failed trial."""
    lines = [_retried(1, 1), _retried(2, 0), _retried(3, 0), _retried(4, 0), _retried(5, 1, **EXHAUSTED)]
    found = downloaded(lines).statistics
    assert found[RETRIES].mean == 400_000
    assert found[RETRIES].count == 5
    assert found[RETRIES].confidence_low is not None and found[RETRIES].confidence_low > 0
    assert "retries" not in found


def _retried(number: int, retries: int, **more: Any) -> TrialLine:
    transfer = {"bytes": 1, "downloads": 1, "retries": retries}
    return line(number, transfer=transfer, **more)
