"""`rerun`, `suspend`, `resume` and `delete-run` change benchmarks and results, and report what happens next."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.apiserver.client import serve_in_thread
from tests.unit.apiserver.server import ApiServer
from tests.unit.cli.benchmarks import benchmark, condition, put_result, run_in_background
from tests.unit.report.published import measured
from tierbench.api.result import RESULTS
from tierbench.cli.main import main
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kube.client import ApiError
from tierbench.workloads.workload import LABEL_BENCHMARK, LABEL_KIND, LABEL_RUN

Capture = pytest.CaptureFixture[str]
FTB = FileTransferBenchmark.KIND.resource


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[ApiServer, str]]:
    api = ApiServer()
    with serve_in_thread(api, tmp_path) as kubeconfig:
        yield api, kubeconfig


def ended() -> dict[str, Any]:
    raw = benchmark("Complete", 2)
    raw["status"]["run"]["completionTime"] = "2026-05-04T10:00:00Z"
    return raw


def policy(store: ApiServer) -> dict[str, Any]:
    found: dict[str, Any] = store.objects[FTB.path("default", "file-transfer")]["spec"]["runPolicy"]
    return found


def test_each_rerun_requests_another_run(server: tuple[ApiServer, str], capsys: Capture) -> None:
    store, kubeconfig = server
    store.put(FTB, ended())
    assert main(["rerun", "file-transfer", "--kubeconfig", kubeconfig]) == 0
    first = policy(store)["rerun"]
    assert "Run 2 of file-transfer starts: see `kubectl tierbench watch" in capsys.readouterr().out
    assert main(["rerun", "tbf/file-transfer", "--kubeconfig", kubeconfig]) == 0
    assert policy(store)["rerun"] > first


def test_rerun_watches_the_run_that_it_requests(server: tuple[ApiServer, str], capsys: Capture) -> None:
    store, kubeconfig = server
    store.put(FTB, ended())

    def operator() -> None:
        store.wait(lambda api: sum(request.is_watch for request in api.requests) == 2)
        raw = ended()
        raw["spec"]["runPolicy"] = policy(store)
        raw["status"]["run"] |= {"number": 2, "rerun": policy(store)["rerun"]}
        for case, node_class in enumerate(("cloud", "jetson"), start=1):
            put_result(store, measured(node_class, "1Mi", [(1.0, 0)], case, run=2))
        store.put(FTB, raw)

    thread = run_in_background(operator)
    assert main(["rerun", "file-transfer", "--watch", "--timeout", "1m30s", "--kubeconfig", kubeconfig]) == 0
    thread.join()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Run 2 of file-transfer starts"
    assert lines[-1].startswith("Complete: 2 of 2 cases measured.")


def test_resume_watches_the_run_that_continues(server: tuple[ApiServer, str], capsys: Capture) -> None:
    store, kubeconfig = server
    store.put(FTB, suspended(True))

    def operator() -> None:
        store.wait(lambda api: sum(request.is_watch for request in api.requests) == 2)
        store.put(FTB, benchmark("Failed", conditions=[condition("Failed", "True", "NoCaseMeasured", "0 of 2 cases.")]))

    thread = run_in_background(operator)
    assert main(["resume", "file-transfer", "-w", "--timeout", "60", "--kubeconfig", kubeconfig]) == 1
    thread.join()
    assert "NoCaseMeasured" in capsys.readouterr().out


def test_current_run_ends_before_the_requested_one(server: tuple[ApiServer, str], capsys: Capture) -> None:
    store, kubeconfig = server
    store.put(FTB, benchmark("Running"))
    assert main(["rerun", "file-transfer", "--kubeconfig", kubeconfig]) == 0
    assert "Run 2 of file-transfer starts when run 1 has ended" in capsys.readouterr().out


def test_suspended_benchmark_is_not_rerun(server: tuple[ApiServer, str], capsys: Capture) -> None:
    store, kubeconfig = server
    raw = ended()
    raw["spec"]["runPolicy"] = {"suspend": True}
    store.put(FTB, raw)
    assert main(["rerun", "file-transfer", "--kubeconfig", kubeconfig]) == 2
    assert "file-transfer is suspended: resume it with `kubectl tierbench resume" in capsys.readouterr().err
    assert "rerun" not in policy(store)


def test_missing_permission_is_reported(server: tuple[ApiServer, str], capsys: Capture) -> None:
    store, kubeconfig = server
    store.fail(ApiError(403, "Forbidden", "no"))
    assert main(["rerun", "file-transfer", "--kubeconfig", kubeconfig]) == 2
    assert "for patch to rerun" in capsys.readouterr().err


def suspended(value: bool) -> dict[str, Any]:
    raw = benchmark("Running")
    raw["spec"]["runPolicy"] = {"suspend": value}
    return raw


@pytest.mark.parametrize(("command", "before", "after"), [("suspend", False, True), ("resume", True, False)])
def test_a_benchmark_is_suspended_and_resumed(
    command: str, before: bool, after: bool, server: tuple[ApiServer, str], capsys: Capture
) -> None:
    store, kubeconfig = server
    store.put(FTB, suspended(before))
    assert main([command, "tbf/file-transfer", "--kubeconfig", kubeconfig]) == 0
    assert policy(store) == {"suspend": after}
    done = f"filetransferbenchmark.tierbench.io/file-transfer {'suspended' if after else 'resumed'}"
    assert capsys.readouterr().out == f"{done}\n"
    assert main([command, "file-transfer", "--kubeconfig", kubeconfig]) == 0
    assert capsys.readouterr().out == f"{done} (no change)\n"


@pytest.fixture
def three_runs(server: tuple[ApiServer, str]) -> tuple[ApiServer, str]:
    """Runs 1 to 3 of a benchmark, the last of which is active, and a result of another benchmark."""
    store, kubeconfig = server
    raw = benchmark("Running")
    raw["status"]["run"]["number"] = 3
    raw["spec"]["runPolicy"] = {"baselineRun": 1}
    store.put(FTB, raw)
    for number, name in ((1, "file-transfer"), (2, "file-transfer"), (3, "file-transfer"), (2, "other")):
        for case, node_class in enumerate(("cloud", "jetson"), start=1):
            body = measured(node_class, "1Mi", [(1.0, 0), (2.0, 0)], case, run=number).to_json()
            body["spec"]["benchmark"]["name"] = name
            labels = {LABEL_KIND: "FileTransferBenchmark", LABEL_BENCHMARK: name, LABEL_RUN: str(number)}
            metadata = {**body["metadata"], "name": f"{name}-r{number}-c{case}", "labels": labels}
            store.put(RESULTS, {**body, "metadata": metadata})
    return store, kubeconfig


def remaining_results(store: ApiServer) -> set[str]:
    return {item["metadata"]["name"] for item in store.matching(RESULTS.path("default"))}


def test_dry_run_prints_the_results_that_would_be_deleted(three_runs: tuple[ApiServer, str], capsys: Capture) -> None:
    store, kubeconfig = three_runs
    before = remaining_results(store)
    assert main(["delete-run", "file-transfer", "2", "--dry-run=client", "--kubeconfig", kubeconfig]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "benchmarkresult.tierbench.io/file-transfer-r2-c1 deleted (dry run)",
        "benchmarkresult.tierbench.io/file-transfer-r2-c2 deleted (dry run)",
    ]
    assert remaining_results(store) == before


@pytest.mark.parametrize(("answer", "deletes"), [("y\n", True), ("n\n", False), ("\n", False), ("", False)])
def test_a_run_is_deleted_if_the_user_agrees(
    answer: str,
    deletes: bool,
    three_runs: tuple[ApiServer, str],
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, kubeconfig = three_runs
    before = remaining_results(store)
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    assert main(["delete-run", "file-transfer", "1", "--kubeconfig", kubeconfig]) == (0 if deletes else 1)
    text = capsys.readouterr().out
    assert text.startswith("You are about to delete 2 results with 4 trials of run 1 of filetransferbenchmark.")
    assert "Run 1 is the baselineRun" in text
    assert ('benchmarkresult.tierbench.io "file-transfer-r1-c1" deleted' in text) is deletes
    assert ("deletion is cancelled" in text) is not deletes
    assert remaining_results(store) == (before - {"file-transfer-r1-c1", "file-transfer-r1-c2"} if deletes else before)


def test_several_runs_are_deleted_without_confirmation(three_runs: tuple[ApiServer, str]) -> None:
    store, kubeconfig = three_runs
    assert main(["delete-run", "file-transfer", "1", "2", "--yes", "--kubeconfig", kubeconfig]) == 0
    assert remaining_results(store) == {"file-transfer-r3-c1", "file-transfer-r3-c2", "other-r2-c1", "other-r2-c2"}


@pytest.mark.parametrize(
    ("run", "reason"), [("3", "run 3 of file-transfer has not ended"), ("7", "it has these runs: 1, 2, 3")]
)
def test_an_active_or_unknown_run_is_not_deleted(
    run: str, reason: str, three_runs: tuple[ApiServer, str], capsys: Capture
) -> None:
    store, kubeconfig = three_runs
    before = remaining_results(store)
    assert main(["delete-run", "file-transfer", run, "--yes", "--kubeconfig", kubeconfig]) == 2
    assert reason in capsys.readouterr().err
    assert remaining_results(store) == before


def test_result_that_was_replaced_before_the_confirmation_is_not_deleted(
    three_runs: tuple[ApiServer, str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, kubeconfig = three_runs
    path = RESULTS.path("default", "file-transfer-r1-c1")

    def replace(prompt: str) -> str:
        store.objects[path]["metadata"]["uid"] = "another"
        return "y"

    monkeypatch.setattr("builtins.input", replace)
    main(["delete-run", "file-transfer", "1", "--kubeconfig", kubeconfig])
    assert "file-transfer-r1-c1" in remaining_results(store)
