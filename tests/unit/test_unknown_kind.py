"""Results of an unknown kind, which a newer version has left, are ignored and do no harm."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.test_offline import raw, write
from tests.unit.controller.test_advisor import FAST, SLOW, Cluster, advising
from tests.unit.metrics.test_metrics import filled, one, raw_result, samples
from tests.unit.report.published import measured, published
from tierbench.cli.main import main
from tierbench.controller.snapshot import ControllerRefManager
from tierbench.domain.results import ResultStore
from tierbench.workloads.workload import Owner

NEWER = {"kind": "LatencyBenchmark", "name": "newer"}
Capture = pytest.CaptureFixture[str]


def newer(body: dict[str, Any]) -> dict[str, Any]:
    """Returns the result under another name and of the newer kind."""
    metadata = {**body["metadata"], "name": "lb-newer-r1-c001"}
    return {**body, "metadata": metadata, "spec": {**body["spec"], "benchmark": NEWER}}


async def test_metrics_leave_out_results_of_an_unknown_kind(caplog: pytest.LogCaptureFixture) -> None:
    cache = filled(raw_result())
    cache.update_benchmark(
        {"kind": NEWER["kind"], "metadata": {"name": NEWER["name"], "namespace": "ns"}}, deleted=False
    )
    cache.update_result(newer(raw_result()), deleted=False)
    found = await samples(cache)
    assert one(found, "tierbench_result_measured") == 1
    (record,) = caplog.records
    fields = vars(record)
    assert (record.message, fields["object"]) == ("ignoring invalid object", "ns/lb-newer-r1-c001")
    assert "this version of tierbench does not know the kind of benchmark LatencyBenchmark" in fields["error"]


async def test_advice_leaves_out_results_of_an_unknown_kind(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    cluster.add("cloud", FAST, 1)
    slow = cluster.add("jetson", SLOW, 2)
    cluster.results.update_result(newer(slow), deleted=False)
    async with advising(cluster) as advisor:
        cluster.ask(advisor)
        assert (await cluster.answer())["best"] == "cloud"
    ignored = [vars(record)["object"] for record in caplog.records if record.message == "ignoring invalid object"]
    assert "lb-newer-r1-c001" in ignored


@pytest.mark.parametrize("command", [["results"], ["advise"], ["export"], ["report", "--output-file", "-"]])
def test_command_line_leaves_out_and_reports_results_of_an_unknown_kind(
    command: list[str], tmp_path: Path, capsys: Capture, caplog: pytest.LogCaptureFixture
) -> None:
    alone = write(tmp_path / "known.json", published())
    both = write(tmp_path / "both.json", published(), newer(raw(published()[0])))
    codes = [main([*command, "--from", alone])]
    expected = capsys.readouterr().out
    codes.append(main([*command, "--from", both]))
    assert capsys.readouterr().out == expected.replace("known.json", "both.json")
    assert codes[0] == codes[1] != 2
    assert "BenchmarkResult lb-newer-r1-c001" in caplog.text
    assert "this version of tierbench does not know the kind of benchmark LatencyBenchmark" in caplog.text


def test_damaged_result_still_ends_a_command(tmp_path: Path, capsys: Capture) -> None:
    damaged = {**raw(measured("cloud", "1M", [(1.0, 0)])), "spec": {"run": 0}}
    assert main(["results", "--from", write(tmp_path / "r.json", published(), damaged)]) == 2
    assert "use the tierbench version that wrote it" in capsys.readouterr().err


async def test_benchmark_does_not_adopt_results_of_an_unknown_kind() -> None:
    key, store = ("FileTransferBenchmark", "ns", "demo"), ResultStore()
    store.update_result(newer(raw_result()), deleted=False)
    assert store.of(key) == ()
    body = raw_result()
    reference = {"kind": key[0], "name": key[2], "uid": "u", "controller": True}
    body["metadata"] |= {"uid": "r", "ownerReferences": [reference]}
    body["status"]["phase"] = "Dreaming"
    store.update_result(body, deleted=False)
    manager = ControllerRefManager(Owner(*key, "u"))
    await manager.parse(store.of(key))
    children = manager.claim({}, [stored.metadata for stored in store.of(key)])
    assert not children.results
    assert children.unreadable == {body["metadata"]["name"]}


def test_objects_of_another_version_or_api_group_are_left_out(
    tmp_path: Path, capsys: Capture, caplog: pytest.LogCaptureFixture
) -> None:
    """A NodeClass of another API group was taken for one of tierbench, and ended the command."""
    alone = write(tmp_path / "known.json", published())
    later = {**raw(published()[0]), "apiVersion": "tierbench.io/v2", "spec": {}}
    foreign = {"apiVersion": "eks.amazonaws.com/v1", "kind": "NodeClass", "metadata": {"name": "default"}, "spec": {}}
    both = write(tmp_path / "both.json", published(), later, foreign)
    codes = [main(["results", "--from", alone])]
    expected = capsys.readouterr().out
    codes.append(main(["results", "--from", both]))
    assert capsys.readouterr().out == expected.replace("known.json", "both.json")
    assert codes == [0, 0]
    assert "BenchmarkResult is tierbench.io/v2: use the tierbench version that wrote it" in caplog.text
