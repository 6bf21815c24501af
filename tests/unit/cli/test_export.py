"""`export`: the same numbers for other programs."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.test_offline import stderr_line, write
from tests.unit.kinds.broker.trials import line, recorded
from tests.unit.report.published import published
from tests.unit.report.test_timeline import case
from tests.unit.results.preflights import node_network, with_networks
from tierbench.api.contract import ClientSample, Computer
from tierbench.api.result import BenchmarkResult
from tierbench.cli import files
from tierbench.cli.main import main
from tierbench.results.export import to_csv
from tierbench.results.published import read_csv

WRITE = "import sys; from tierbench.cli.main import main; sys.exit(main(sys.argv[1:]))"
READ = "import json, sys; from pyarrow import parquet; print(json.dumps(parquet.read_table(sys.argv[1]).to_pylist()))"

Capture = pytest.CaptureFixture[str]


def broker_result() -> BenchmarkResult:
    return recorded(line(1), line(2))


@pytest.fixture
def both(tmp_path: Path) -> str:
    return write(tmp_path / "results.json", [*published(), broker_result()])


def test_csv_has_a_row_per_trial_with_all_quantities(both: str, capsys: Capture) -> None:
    assert main(["export", "--from", both]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == sum(len(result.recorded.trials) for result in published()) + 2
    files = next(row for row in rows if row["kind"] == "FileTransferBenchmark")
    brokers = next(row for row in rows if row["kind"] == "BrokerBenchmark")
    assert float(files["durationNanoseconds"]) > 0
    assert files["roundTripNanoseconds"] == files["payloadSize"] == ""
    assert (brokers["broker"], brokers["payloadSize"], brokers["trial"]) == ("mosquitto", "1Ki", "1")
    assert float(brokers["throughputMessagesPerSecond"]) == 1000


@pytest.mark.parametrize("word", ['=HYPERLINK("http://x","y")', "+1", "-1+1", "@SUM(A1)", "plain", "'plain"])
def test_no_cell_is_a_formula_in_a_spreadsheet(word: str) -> None:
    result = broker_result()
    (trial, *_) = result.recorded.trials
    sample = ClientSample(computer=Computer(cpu_governor=word))
    record = result.recorded.model_copy(update={"trials": (trial.model_copy(update={"client": sample}),)})
    server = result.spec.server.model_copy(update={"node": word})
    spec = result.spec.model_copy(update={"server": server})
    text = to_csv([result.model_copy(update={"spec": spec}).with_record(record)])
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["clientCpuGovernor"] == (word if word.endswith("plain") else f"'{word}")
    assert read_csv(text, "x", "x")[0].spec.server.node == word


def test_exported_objects_can_be_read_back(both: str, tmp_path: Path, capsys: Capture) -> None:
    again = tmp_path / "again.json"
    assert main(["export", "--from", both, "-o", "json", "--output-file", str(again)]) == 0
    names = {item["metadata"]["name"] for item in json.loads(again.read_text())["items"]}
    assert names == {result.metadata.name for result in (*published(), broker_result())}
    assert main(["results", "--from", str(again)]) == 0
    assert "22.11 ± 0.05 s" in capsys.readouterr().out


def test_records_follow_their_results(tmp_path: Path, capsys: Capture) -> None:
    result = broker_result()
    head = {"apiVersion": "tierbench.io/v1alpha1", "kind": "BenchmarkRecord"}
    spec = {"benchmark": {"kind": "BrokerBenchmark", "name": "demo"}, "run": 1, "case": 1}
    other = {**head, "metadata": {"name": "bb-other-r1-c001", "namespace": "default"}, "spec": spec}
    path = write(tmp_path / "run.json", [result], other)
    assert main(["export", "--from", path, "-o", "json"]) == 0
    written = [(item["kind"], item["metadata"]["name"]) for item in json.loads(capsys.readouterr().out)["items"]]
    assert written == [("BenchmarkResult", result.metadata.name), ("BenchmarkRecord", result.metadata.name)]


def test_perftool_format_is_for_brokers_only(both: str, capsys: Capture) -> None:
    assert main(["export", "--from", both, "-o", "perftool"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert main(["export", "file-transfer", "--from", both, "-o", "perftool"]) == 2
    assert "use -o csv" in stderr_line(capsys)


def as_csv(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def test_parquet_equals_csv(both: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "trials.parquet"
    _python(WRITE, "export", "--from", both, "-o", "parquet", "--output-file", str(path))
    rows = json.loads(_python(READ, str(path)))
    assert main(["export", "--from", both]) == 0
    csv_rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [list(row) for row in rows] == [list(row) for row in csv_rows]
    for row, expected in zip(rows, csv_rows, strict=True):
        assert {name: as_csv(value) for name, value in row.items()} == expected


def _python(program: str, *arguments: str) -> str:
    """Runs a program in its own process, because Arrow's threads outlive a test and can crash its process."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    ).stdout


def test_missing_parquet_library_is_reported_with_install_command(
    both: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    assert main(["export", "--from", both, "-o", "parquet"]) == 2
    assert "pip install 'tierbench[parquet]'" in stderr_line(capsys)


def test_each_row_contains_its_network(tmp_path: Path, capsys: Capture) -> None:
    first, *others = published()
    results = [with_networks(first, node_network()), *others]
    assert main(["export", "--from", write(tmp_path / "results.json", results)]) == 0
    with_network, *_, without = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert float(with_network["preflightDownloadBitsPerSecond"]) == 80_000_000
    assert float(with_network["preflightPingLostPartsPerMillion"]) == 100_000
    assert without["preflightDownloadBitsPerSecond"] == ""


def tcp_rows(path: str, capsys: Capture) -> tuple[list[dict[str, str]], str]:
    assert main(["export", "--from", path, "-o", "tcp"]) == 0
    captured = capsys.readouterr()
    return list(csv.DictReader(io.StringIO(captured.out))), captured.err


def test_tcp_has_a_row_per_sample(tmp_path: Path, capsys: Capture) -> None:
    traced = case(3)
    with_network = with_networks(published()[0], node_network())  # without traces: it adds no columns of trials
    rows, _ = tcp_rows(write(tmp_path / "results.json", [with_network, traced]), capsys)
    assert len(rows) == 2 * 3 * 4
    third = rows[2]
    assert (third["benchmark"], third["run"], third["case"], third["trial"]) == ("demo", "1", "1", "1")
    assert (third["direction"], third["streams"], third["fileSize"]) == ("Upload", "1", "")
    assert (third["side"], third["client"], third["sender"], third["stream"]) == ("Client", "1", "pi-1", "1")
    assert [row["sender"] for row in rows[::4]] == ["pi-1", "jetson-1", "phone-1"] * 2
    expected = {
        "port": 5201,
        "seconds": 0.3,
        "congestionWindowBytes": 43440,
        "roundTripMicroseconds": 750,
        "roundTripVarianceMicroseconds": 50,
        "retransmits": 1,
        "deliveryBitsPerSecond": 9,
    }
    assert {name: float(third[name]) for name in expected} == expected
    assert third["state"] == "Recovery"
    assert [row["slowStartThresholdBytes"] for row in rows[:4]] == ["", "", "", "28960"]


def test_damaged_trace_does_not_affect_the_others(tmp_path: Path, capsys: Capture) -> None:
    traced = case()
    first, second = traced.recorded.traces
    damaged = traced.recorded.model_copy(update={"traces": (first.model_copy(update={"data": "####"}), second)})
    rows, warning = tcp_rows(write(tmp_path / "results.json", [traced.with_record(damaged)]), capsys)
    assert [row["trial"] for row in rows] == ["2"] * 4
    assert warning.startswith("Warning: nb-demo-r1-c001: cannot decode the trace of trial 1")


def test_export_of_tcp_without_samples_names_the_setting_that_is_needed(both: str, capsys: Capture) -> None:
    assert main(["export", "--from", both, "-o", "tcp"]) == 2
    assert "traceIntervalMilliseconds" in stderr_line(capsys)
