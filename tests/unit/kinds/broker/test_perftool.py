"""The form of SINETStream's performance tool."""

import csv
import io
import json

import pytest

from tests.unit.kinds.broker.trials import line, measured, spec
from tests.unit.results.test_record import line as download
from tests.unit.results.test_record import measured as downloaded
from tests.unit.results.test_record import spec as file_spec
from tierbench.api.result import BenchmarkResult
from tierbench.kinds.broker.perftool import to_json, to_tsv

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
    status = measured(line(1), line(2, nanoseconds=2 * 10**9, received=990, lost=10, receivedBytes=1_013_760))
    body = {"metadata": {"name": "bb-demo-r1-c001"}, "spec": spec(2).to_json(), "status": status.to_json()}
    return BenchmarkResult.model_validate(body)


def test_a_json_object_a_trial(result: BenchmarkResult) -> None:
    first, second = map(json.loads, to_json([result]).splitlines())
    assert list(first["writer"]) == list(first["reader"]) == FIELDS
    assert second["writer"]["msg_count_total"] == 1000
    assert second["reader"]["msg_count_total"] == 990
    assert second["reader"]["error_count_total"] == 10
    assert second["reader"]["msg_bytes_rate"] == 1_013_760 / 2
    assert second["reader"]["end_time"] - second["reader"]["start_time"] == pytest.approx(2)


def test_tabs_between_the_same_numbers(result: BenchmarkResult) -> None:
    header, *rows = csv.reader(io.StringIO(to_tsv([result])), delimiter="\t")
    assert header == [f"{side}_{name}" for side in ("writer", "reader") for name in FIELDS]
    assert [row[header.index("reader_msg_count_total")] for row in rows] == ["1000", "990"]


def test_other_kinds_have_no_place_in_it() -> None:
    status = downloaded([download(1)])
    body = {"metadata": {"name": "ft"}, "spec": file_spec().to_json(), "status": status.to_json()}
    assert to_json([BenchmarkResult.model_validate(body)]) == ""
