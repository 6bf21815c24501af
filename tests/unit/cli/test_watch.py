"""`watch`, `results` and `report`, against an API server that can fail."""

import gc
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from tests.unit.apiserver.client import serve_in_thread
from tests.unit.apiserver.server import ApiServer
from tests.unit.cli.benchmarks import benchmark, condition, current, put_result, run_in_background
from tests.unit.report.published import measured, published
from tierbench.cli import watch
from tierbench.cli.cluster import ANNOTATION, connect
from tierbench.cli.command import UserError
from tierbench.cli.main import main
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kube.client import ApiError
from tierbench.kube.informer import InitialListSynced, WatchEvent
from tierbench.kube.meta import CLUSTER_ROLES

Capture = pytest.CaptureFixture[str]
FTB = FileTransferBenchmark.KIND.resource


@pytest.fixture
def server(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[tuple[ApiServer, str]]:
    api = ApiServer()
    with serve_in_thread(api, tmp_path) as kubeconfig:
        yield api, kubeconfig
    gc.collect()
    records = [*caplog.get_records("call"), *caplog.records]
    left = [record.getMessage() for record in records if record.name == "asyncio"]
    assert not left, "tasks or connections outlive their command"


def put_results(store: ApiServer) -> None:
    for case, name in enumerate(("cloud", "jetson"), start=1):
        put_result(store, measured(name, "1M", [(0.5, 0), (0.7, 0)], case))


def test_watch_prints_every_change_until_the_benchmark_ends(server: tuple[ApiServer, str], capsys: Capture) -> None:
    store, kubeconfig = server
    store.put(FTB, benchmark("Pending"))

    def act() -> None:
        store.wait(lambda api: sum(request.is_watch for request in api.requests) == 2)
        store.put(FTB, benchmark("Running", current=current(1)))
        put_results(store)
        store.put(FTB, benchmark("Complete", 2))

    thread = run_in_background(act)
    assert main(["watch", "tbf/file-transfer", "--kubeconfig", kubeconfig, "--timeout", "60"]) == 0
    thread.join()
    text = capsys.readouterr().out
    assert "Running · 0/2 cases · 1M, cloud to user, trial 2 of 2" in text
    assert "measured: 1M on cloud" in text
    assert "measured: 1M on jetson" in text
    assert "Complete: 2 of 2 cases measured." in text


def test_unwatched_namespace_is_reported(
    server: tuple[ApiServer, str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_STATUS_SECONDS", 0)
    store, kubeconfig = server
    metadata = {"name": "tierbench:tierbench", "annotations": {ANNOTATION: "team-a"}}
    store.put(CLUSTER_ROLES, {"metadata": metadata})
    store.put(FTB, benchmark("Pending"))
    assert main(["watch", "file-transfer", "--kubeconfig", kubeconfig, "--timeout", "2"]) == 2
    output = capsys.readouterr()
    assert "The operator does not watch namespace default, only team-a" in output.out
    assert "The operator does not watch namespace default, only team-a" in output.err


def test_message_about_a_missing_status_is_replaced_by_the_status(
    server: tuple[ApiServer, str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_STATUS_SECONDS", 0)
    store, kubeconfig = server
    store.put(FTB, benchmark("Pending"))

    def act() -> None:
        store.wait(lambda api: any("clusterroles" in request.path for request in api.requests))
        put_results(store)
        store.put(FTB, benchmark("Complete", 2, observedGeneration=1))

    thread = run_in_background(act)
    assert main(["watch", "file-transfer", "--kubeconfig", kubeconfig, "--timeout", "60"]) == 0
    thread.join()
    text = capsys.readouterr().out
    assert "the operator does not watch namespace default, or it does not run" in text
    assert text.splitlines()[-1].startswith("Complete: 2 of 2 cases measured.")


def test_watch_survives_a_failing_api_server(server: tuple[ApiServer, str], capsys: Capture) -> None:
    store, kubeconfig = server
    store.put(FTB, benchmark("Running"))

    def act() -> None:
        store.wait(lambda api: sum(request.is_watch for request in api.requests) == 2)
        store.fail(ApiError(503, "ServiceUnavailable", "later"))
        store.wait(lambda api: sum(request.is_watch for request in api.requests) >= 4)
        store.put(FTB, benchmark("Complete", 2))
        store.fail(None)

    thread = run_in_background(act)
    assert main(["watch", "file-transfer", "--kubeconfig", kubeconfig, "--timeout", "60"]) == 0
    thread.join()
    text = capsys.readouterr().out
    assert "watch failed: 503" in text
    assert "the API server answers again" in text


def test_failed_benchmark_has_exit_code_1(server: tuple[ApiServer, str], capsys: Capture) -> None:
    store, kubeconfig = server
    store.put(FTB, benchmark("Failed", conditions=[condition("Failed", "True", "NoCaseMeasured", "0 of 2 cases.")]))
    assert main(["watch", "file-transfer", "--kubeconfig", kubeconfig]) == 1
    assert "NoCaseMeasured" in capsys.readouterr().out


def test_deleted_benchmark_has_exit_code_2(server: tuple[ApiServer, str], capsys: Capture) -> None:
    store, kubeconfig = server
    store.put(FTB, benchmark("Running"))

    def act() -> None:
        store.wait(lambda api: sum(request.is_watch for request in api.requests) == 2)
        store.delete(FTB, "file-transfer")

    thread = run_in_background(act)
    assert main(["watch", "file-transfer", "--kubeconfig", kubeconfig, "--timeout", "60"]) == 2
    thread.join()
    assert "was deleted" in capsys.readouterr().out


def test_timeout_is_reported(server: tuple[ApiServer, str], capsys: Capture) -> None:
    store, kubeconfig = server
    store.put(FTB, benchmark("Running"))
    assert main(["watch", "file-transfer", "--kubeconfig", kubeconfig, "--timeout", "1s"]) == 2
    assert "did not end within the timeout (Running)" in capsys.readouterr().err


def test_missing_benchmark_is_reported(server: tuple[ApiServer, str], capsys: Capture) -> None:
    store, kubeconfig = server
    assert main(["watch", "nothing", "--kubeconfig", kubeconfig]) == 2
    assert "there is no benchmark nothing in namespace default" in capsys.readouterr().err
    assert main(["results", "--kubeconfig", kubeconfig]) == 2
    assert "there are no results in namespace default yet" in capsys.readouterr().err
    store.fail(ApiError(403, "Forbidden", "no"))
    assert main(["results", "--kubeconfig", kubeconfig]) == 2
    assert "ask an administrator for get, list and watch" in capsys.readouterr().err


async def test_closed_watch_resumes_at_the_same_version(server: tuple[ApiServer, str]) -> None:
    store, kubeconfig = server
    store.put(FTB, benchmark("Pending"))
    async with connect(kubeconfig, None, None) as cluster:
        _, benchmarks = cluster.watch(FileTransferBenchmark.model_validate(benchmark("Pending")))
        async with aclosing(benchmarks) as events:
            assert [type(await anext(events)) for _ in range(2)] == [WatchEvent, InitialListSynced]
            for phase in ("Queued", "Running", "Complete"):
                store.put(FTB, benchmark(phase))
                change = await anext(events)
                assert isinstance(change, WatchEvent)
                assert change.item["status"]["phase"] == phase
                store.end_watches()
    assert sum(request.is_list for request in store.requests) == 1


def test_failed_read_is_retried_once(server: tuple[ApiServer, str], capsys: Capture) -> None:
    """RFC 9112, 9.3.1, allows this if the connection was closed."""
    store, kubeconfig = server
    store.fail(ConnectionResetError())
    assert main(["watch", "file-transfer", "--kubeconfig", kubeconfig]) == 2
    assert "cannot reach the API server" in capsys.readouterr().err
    assert len(store.requests) <= 2


async def test_failed_write_is_not_retried(server: tuple[ApiServer, str]) -> None:
    store, kubeconfig = server
    store.fail(ConnectionResetError())
    async with connect(kubeconfig, None, None) as cluster:
        with pytest.raises(UserError, match="cannot reach the API server"):
            await cluster.patch(FileTransferBenchmark.model_validate(benchmark("Complete")), {"spec": {}})
    assert len(store.requests) == 1


def test_unreachable_api_server_is_reported(tmp_path: Path, capsys: Capture) -> None:
    with serve_in_thread(ApiServer(), tmp_path) as kubeconfig:
        pass
    assert main(["watch", "file-transfer", "--kubeconfig", kubeconfig]) == 2
    text = capsys.readouterr().err
    assert "cannot reach the API server at http://127.0.0.1" in text
    assert text.count("\n") == 1


def test_results_and_report_read_the_cluster(server: tuple[ApiServer, str], tmp_path: Path, capsys: Capture) -> None:
    store, kubeconfig = server
    store.put(FTB, benchmark("Complete", 14))
    for result in published():
        put_result(store, result)
    assert main(["results", "file-transfer", "--kubeconfig", kubeconfig]) == 0
    assert "jetson is ahead from 512 MiB to 2 GiB" in capsys.readouterr().out
    output = tmp_path / "report.html"
    assert main(["report", "--kubeconfig", kubeconfig, "--output-file", str(output)]) == 0
    assert "fileSizes:" in output.read_text()
