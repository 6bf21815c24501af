"""Results of publishers without subscribers: unknown quantities are absent, and never 0."""

import csv
import io
import json
from typing import Any

import pytest

from tests.unit.kinds.broker.trials import ACKNOWLEDGEMENTS, line, measured, recorded, spec
from tierbench.advice.selection import quantity_of
from tierbench.api.contract import TrialLine
from tierbench.api.placement_advice import Objective, ObjectiveType
from tierbench.api.result import BenchmarkResult, ResultStatus
from tierbench.kinds.broker.report import cells, perftool_json, perftool_tsv
from tierbench.results.client_output import PartOutput, merge_parts
from tierbench.results.quantities import main_quantity, time_quantity
from tierbench.results.units import DASH

OF_SUBSCRIBERS = ("received", "lost", "acknowledgedLost", "duplicated", "outOfOrder")


def alone(number: int, *, answered: bool = True, **exchange: Any) -> TrialLine:
    """A trial of 1000 messages of 1 KiB that the broker accepted."""
    body = line(number, acknowledgedBytes=1_024_000, **exchange).model_dump(mode="json", by_alias=True)
    for name in (*OF_SUBSCRIBERS, "receivedBytes"):
        del body["exchange"][name]
    times = body["distributions"]["acknowledge"]
    body["distributions"] = {"acknowledge": times} if answered else {}
    return TrialLine.model_validate(body)


def result(status: ResultStatus) -> BenchmarkResult:
    body = {"metadata": {"name": "bb-demo-r1-c001"}, "spec": spec(2).to_json(), "status": status.to_json()}
    return BenchmarkResult.model_validate(body)


def test_rates_count_acknowledged_messages() -> None:
    status = measured(alone(1), alone(2))
    assert status.valid is True
    statistics = status.statistics
    assert statistics["throughputMessagesPerSecond"].mean == 1000
    assert statistics["throughputBytesPerSecond"].mean == 1_024_000
    assert statistics["acknowledgeNanoseconds"].mean == sum(ACKNOWLEDGEMENTS) // 2
    assert not {"roundTripNanoseconds", "lost", "decryptNanoseconds"} & set(statistics)
    assert (status.display.mean, status.display.throughput) == ("200 µs", "1.00 k msg/s")


def test_counts_contain_nothing_of_subscribers() -> None:
    counts = measured(alone(1), alone(2)).to_json()["counts"]["messages"]
    assert counts["acknowledged"] == 2000
    assert not set(OF_SUBSCRIBERS) & set(counts)
    assert set(OF_SUBSCRIBERS) <= set(measured(line(1)).to_json()["counts"]["messages"])


def test_sum_of_parts_has_only_known_counts() -> None:
    (merged,) = merge_parts([PartOutput([alone(1)]), PartOutput([alone(1)])])
    assert merged.exchange is not None
    assert (merged.exchange.received, merged.exchange.acknowledged) == (None, 2000)


@pytest.mark.parametrize("answered", [True, False])
def test_main_quantity_without_subscribers_is_the_message_rate(answered: bool) -> None:
    statistics = measured(alone(1, answered=answered), alone(2, answered=answered)).statistics
    assert main_quantity("BrokerBenchmark", statistics) == "throughputMessagesPerSecond"
    assert ("acknowledgeNanoseconds" in statistics) == answered
    assert main_quantity("BrokerBenchmark", measured(line(1)).statistics) == "roundTripNanoseconds"


def test_advice_on_time_compares_acknowledgements() -> None:
    statistics = measured(alone(1), alone(2)).statistics
    assert time_quantity("BrokerBenchmark", statistics) == "acknowledgeNanoseconds"
    objective = Objective(type=ObjectiveType.PERCENTILE, percentile="P99")
    assert quantity_of(objective, "BrokerBenchmark", statistics) == "acknowledgeP99Nanoseconds"


def test_report_shows_dashes_for_subscribers() -> None:
    shown = cells(recorded(alone(1)).recorded.trials[0])
    assert (shown["Round trip"], shown["Received"], shown["Lost"]) == (DASH, DASH, DASH)
    assert shown["Acknowledged after"] == "200 µs"


def test_perftool_formats_have_no_reader() -> None:
    found = recorded(alone(1), alone(2))
    (first, _) = map(json.loads, perftool_json([found]).splitlines())
    assert list(first) == ["writer"]
    both = csv.DictReader(io.StringIO(perftool_tsv([found, recorded(line(1))])), delimiter="\t")
    assert [row["reader_msg_count_total"] for row in both] == ["", "", "1000"]
