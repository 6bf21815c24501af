"""`rerun` requests a new run, and reports what happens next."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.apiserver.client import serve_in_thread
from tests.unit.apiserver.server import ApiServer
from tests.unit.cli.benchmarks import benchmark
from tierbench.cli.main import main
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kube.client import ApiError

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
    assert main(["rerun", "ftb/file-transfer", "--kubeconfig", kubeconfig]) == 0
    assert policy(store)["rerun"] > first


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
    assert "file-transfer is suspended: resume it with `kubectl patch" in capsys.readouterr().err
    assert "rerun" not in policy(store)


def test_missing_right_is_reported(server: tuple[ApiServer, str], capsys: Capture) -> None:
    store, kubeconfig = server
    store.fail(ApiError(403, "Forbidden", "no"))
    assert main(["rerun", "file-transfer", "--kubeconfig", kubeconfig]) == 2
    assert "for patch to rerun" in capsys.readouterr().err
