"""Reports on brokers, and the formats of SINETStream's performance tool."""

import csv
import io
import json

import pytest

from tests.unit.kinds.broker.trials import line, recorded
from tests.unit.report import papers
from tests.unit.report.test_page import page
from tests.unit.report.test_run_figures import figures_of
from tests.unit.results.trials import line as download
from tests.unit.results.trials import measured as downloaded
from tests.unit.results.trials import spec as file_spec
from tierbench.api.contract import PairShares
from tierbench.api.result import BenchmarkResult
from tierbench.kinds.broker.report import perftool_json, perftool_tsv
from tierbench.report.figures import Figure


def shared(case: int, broker: str, pairs: int) -> BenchmarkResult:
    """Pair 1 receives 100 messages per second, pair 2 receives 110, and so on."""
    result = papers.broker_result(case, 1e6, broker=broker, payloadSize="1Ki", pairs=str(pairs))
    shares = PairShares(received=tuple(1000 + 100 * pair for pair in range(pairs)), nanoseconds=(10**10,) * pairs)
    return result.with_record(result.recorded.model_copy(update={"pair_shares": shares}))


def figures(*pairs: int, brokers: tuple[str, ...] = ("kafka", "mosquitto")) -> tuple[Figure, ...]:
    places = [(broker, number) for broker in brokers for number in pairs]
    found = figures_of([shared(case, *place) for case, place in enumerate(places, start=1)])
    return dict(found.sections)["Throughput of each pair"]


def test_report_has_one_chart_per_broker_and_one_stack_per_number_of_pairs() -> None:
    found = figures(1, 2, 4, 8)
    assert [figure.chart.title for figure in found] == [
        "Messages per second of each pair by pairs: kafka",
        "Messages per second of each pair by pairs: mosquitto",
    ]
    chart = found[0].chart
    assert chart.levels == ("1", "2", "4", "8")
    assert [len(series.points) for series in chart.series] == [4, 3, 2, 2, 1, 1, 1, 1]
    assert sum(series.points[-1].value for series in chart.series) == pytest.approx(sum(range(100, 180, 10)))
    assert found[0].rows[1][:3] == ("2", "100 msg/s (48%)", "110 msg/s (52%)")
    assert found[0].svg.count('class="bar"') == 1 + 2 + 4 + 8
    assert len({chart.style(index) for index in range(8)}) == 8


def test_many_pairs_are_shown_in_quarters() -> None:
    (figure,) = figures(4, 16, 256, brokers=("mosquitto",))
    names = [series.name for series in figure.chart.series]
    assert names == ["slowest quarter", "second quarter", "third quarter", "fastest quarter"]
    assert [series.points[0].value for series in figure.chart.series] == [100, 110, 120, 130]
    assert [series.points[1].value for series in figure.chart.series] == [460, 620, 780, 940]
    assert "quarters" in figure.note


def test_one_pair_has_no_shares() -> None:
    assert figures(1) == ()


def test_page_shows_the_throughput_of_each_pair() -> None:
    html = page([shared(case, "mosquitto", pairs) for case, pairs in enumerate((1, 2, 4), start=1)])
    assert "Throughput of each pair (1)" in html
    assert "Messages per second of each pair by pairs: " in html


FIELDS = [
    "start_time",
    "start_time_ms",
    "end_time",
    "end_time_ms",
    "time",
    "time_ms",
    "msg_count_total",
    "msg_count_rate",
    "msg_bytes_total",
    "msg_bytes_rate",
    "msg_size_min",
    "msg_size_max",
    "msg_size_avg",
    "error_count_total",
    "error_count_rate",
]


@pytest.fixture
def result() -> BenchmarkResult:
    return recorded(line(1), line(2, nanoseconds=2 * 10**9, received=990, lost=10, receivedBytes=1_013_760))


def test_perftool_json_has_one_object_per_trial(result: BenchmarkResult) -> None:
    first, second = map(json.loads, perftool_json([result]).splitlines())
    assert list(first["writer"]) == list(first["reader"]) == FIELDS
    assert second["writer"]["msg_count_total"] == 1000
    assert second["reader"]["msg_count_total"] == 990
    assert second["reader"]["error_count_total"] == 10
    assert second["reader"]["msg_bytes_rate"] == 1_013_760 / 2
    assert second["reader"]["end_time"] - second["reader"]["start_time"] == pytest.approx(2)


def test_perftool_tsv_has_the_same_numbers(result: BenchmarkResult) -> None:
    header, *rows = csv.reader(io.StringIO(perftool_tsv([result])), delimiter="\t")
    assert header == [f"{side}_{name}" for side in ("writer", "reader") for name in FIELDS]
    assert [row[header.index("reader_msg_count_total")] for row in rows] == ["1000", "990"]


def test_perftool_json_leaves_out_other_kinds() -> None:
    status = downloaded([download(1)])
    body = {"metadata": {"name": "ft"}, "spec": file_spec().to_json(), "status": status.to_json()}
    assert perftool_json([BenchmarkResult.model_validate(body)]) == ""
