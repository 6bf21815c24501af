"""`watch`, and reading, against an API server that lists, watches and fails."""

import gc
import io
import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest
from rich.console import Console

from tests.unit.cli.api_server import HANG_UP, Store, api_server
from tests.unit.cli.benchmarks import benchmark, condition, current
from tests.unit.report.published import measured, published
from tierbench.api.result import BenchmarkResult
from tierbench.cli import watch
from tierbench.cli.cluster import ANNOTATION, connect
from tierbench.cli.command import UserError
from tierbench.cli.main import main
from tierbench.cli.progress import Progress, render_live
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kube.informer import InitialListSynced, WatchEvent

Capture = pytest.CaptureFixture[str]
FTB, RESULTS = "filetransferbenchmarks", "benchmarkresults"


@pytest.fixture
def server(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[tuple[Store, str]]:
    with api_server(tmp_path) as found:
        yield found
    gc.collect()
    said = [*caplog.get_records("call"), *caplog.records]
    left = [record.getMessage() for record in said if record.name == "asyncio"]
    assert not left, "tasks or connections go on after their command"


def meanwhile(act: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread


def put_results(store: Store) -> None:
    for case, name in enumerate(("cloud", "jetson"), start=1):
        store.put(RESULTS, measured(name, "1M", [(0.5, 0), (0.7, 0)], case).to_json())


def test_it_tells_every_step_and_ends_with_the_benchmark(server: tuple[Store, str], capsys: Capture) -> None:
    store, kubeconfig = server
    store.put(FTB, benchmark("Pending"))

    def act() -> None:
        store.wait_for_requests("watch=true", 2)
        store.put(FTB, benchmark("Running", current=current(1)))
        put_results(store)
        store.put(FTB, benchmark("Complete", 2))

    thread = meanwhile(act)
    assert main(["watch", "ftb/file-transfer", "--kubeconfig", kubeconfig, "--timeout", "60"]) == 0
    thread.join()
    text = capsys.readouterr().out
    assert "Running · 0/2 cases · 1M, cloud to user, trial 2 of 2" in text
    assert "measured: 1M on cloud" in text
    assert "measured: 1M on jetson" in text
    assert "Complete: 2 of 2 cases measured." in text


def test_a_namespace_that_is_not_watched_is_named(
    server: tuple[Store, str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_STATUS_SECONDS", 0)
    store, kubeconfig = server
    metadata = {"name": "tierbench:tierbench", "annotations": {ANNOTATION: "team-a"}}
    store.put("clusterroles", {"metadata": metadata})
    store.put(FTB, benchmark("Pending"))
    assert main(["watch", "file-transfer", "--kubeconfig", kubeconfig, "--timeout", "2"]) == 2
    said = capsys.readouterr()
    assert "The operator does not watch namespace default, only team-a" in said.out
    assert "The operator does not watch namespace default, only team-a" in said.err


def test_a_status_ends_what_was_said_of_its_absence(
    server: tuple[Store, str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_STATUS_SECONDS", 0)
    store, kubeconfig = server
    store.put(FTB, benchmark("Pending"))

    def act() -> None:
        store.wait_for_requests("clusterroles", 1)
        put_results(store)
        store.put(FTB, benchmark("Complete", 2, observedGeneration=1))

    thread = meanwhile(act)
    assert main(["watch", "file-transfer", "--kubeconfig", kubeconfig, "--timeout", "60"]) == 0
    thread.join()
    text = capsys.readouterr().out
    assert "the operator does not watch namespace default, or it does not run" in text
    assert text.splitlines()[-1].startswith("Complete: 2 of 2 cases measured.")


def test_it_survives_an_api_server_that_fails_for_a_while(server: tuple[Store, str], capsys: Capture) -> None:
    store, kubeconfig = server
    store.put(FTB, benchmark("Running"))

    def act() -> None:
        store.wait_for_requests("watch=true", 2)
        store.fail(503)
        store.wait_for_requests("limit=", 4)
        put_results(store)
        store.put(FTB, benchmark("Complete", 2))
        store.fail(None)

    thread = meanwhile(act)
    assert main(["watch", "file-transfer", "--kubeconfig", kubeconfig, "--timeout", "60"]) == 0
    thread.join()
    text = capsys.readouterr().out
    assert "watch failed: 503" in text
    assert "the API server answers again" in text
    assert "measured: 1M on jetson" in text


def test_a_failed_benchmark_is_exit_code_1(server: tuple[Store, str], capsys: Capture) -> None:
    store, kubeconfig = server
    store.put(FTB, benchmark("Failed", conditions=[condition("Failed", "True", "NoCaseMeasured", "0 of 2 cases.")]))
    assert main(["watch", "file-transfer", "--kubeconfig", kubeconfig]) == 1
    assert "NoCaseMeasured" in capsys.readouterr().out


def test_a_deleted_benchmark_is_exit_code_2(server: tuple[Store, str], capsys: Capture) -> None:
    store, kubeconfig = server
    store.put(FTB, benchmark("Running"))

    def act() -> None:
        store.wait_for_requests("watch=true", 2)
        store.delete(FTB, "file-transfer")

    thread = meanwhile(act)
    assert main(["watch", "file-transfer", "--kubeconfig", kubeconfig, "--timeout", "60"]) == 2
    thread.join()
    assert "was deleted" in capsys.readouterr().out


def test_the_time_is_over(server: tuple[Store, str], capsys: Capture) -> None:
    store, kubeconfig = server
    store.put(FTB, benchmark("Running"))
    assert main(["watch", "file-transfer", "--kubeconfig", kubeconfig, "--timeout", "1s"]) == 2
    assert "did not end within the timeout (Running)" in capsys.readouterr().err


def test_what_is_not_there_is_said(server: tuple[Store, str], capsys: Capture) -> None:
    store, kubeconfig = server
    assert main(["watch", "nothing", "--kubeconfig", kubeconfig]) == 2
    assert "there is no benchmark nothing in namespace default" in capsys.readouterr().err
    assert main(["results", "--kubeconfig", kubeconfig]) == 2
    assert "there are no results in namespace default yet" in capsys.readouterr().err
    store.fail(403)
    assert main(["results", "--kubeconfig", kubeconfig]) == 2
    assert "ask an administrator for get, list and watch" in capsys.readouterr().err


async def test_a_watch_that_ends_goes_on_where_it_was(server: tuple[Store, str]) -> None:
    store, kubeconfig = server
    store.put(FTB, benchmark("Pending"))
    async with connect(kubeconfig, None, None) as cluster:
        _, feed = cluster.watch(FileTransferBenchmark.model_validate(benchmark("Pending")))
        async with aclosing(feed) as news:
            assert [type(await anext(news)) for _ in range(2)] == [WatchEvent, InitialListSynced]
            for phase in ("Queued", "Running", "Complete"):
                store.put(FTB, benchmark(phase))
                change = await anext(news)
                assert isinstance(change, WatchEvent)
                assert change.item["status"]["phase"] == phase
                store.end_watches()
    assert sum("limit=" in request for request in store.requests) == 1


def test_a_question_is_repeated_at_most_once_behind_the_users_back(server: tuple[Store, str], capsys: Capture) -> None:
    """As RFC 9112, 9.3.1, lets a client do whose connection was closed."""
    store, kubeconfig = server
    store.fail(HANG_UP)
    assert main(["watch", "file-transfer", "--kubeconfig", kubeconfig]) == 2
    assert "cannot reach the API server" in capsys.readouterr().err
    assert len(store.requests) <= 2


async def test_a_change_is_never_repeated(server: tuple[Store, str]) -> None:
    store, kubeconfig = server
    store.fail(HANG_UP)
    async with connect(kubeconfig, None, None) as cluster:
        with pytest.raises(UserError, match="cannot reach the API server"):
            await cluster.patch(FileTransferBenchmark.model_validate(benchmark("Complete")), {"spec": {}})
    assert len(store.requests) == 1


def test_an_api_server_that_is_not_there_is_said(tmp_path: Path, capsys: Capture) -> None:
    with api_server(tmp_path) as (_, kubeconfig):
        pass
    assert main(["watch", "file-transfer", "--kubeconfig", kubeconfig]) == 2
    text = capsys.readouterr().err
    assert "cannot reach the API server at http://127.0.0.1" in text
    assert text.count("\n") == 1


def test_results_and_report_come_from_the_cluster_too(
    server: tuple[Store, str], tmp_path: Path, capsys: Capture
) -> None:
    store, kubeconfig = server
    store.put(FTB, benchmark("Complete", 14))
    for result in published():
        store.put(RESULTS, result.to_json())
    assert main(["results", "file-transfer", "--kubeconfig", kubeconfig]) == 0
    assert "jetson is ahead from 512 MiB to 2 GiB" in capsys.readouterr().out
    output = tmp_path / "report.html"
    assert main(["report", "--kubeconfig", kubeconfig, "-o", str(output)]) == 0
    assert "fileSizes:" in output.read_text()


def test_the_picture_shows_progress_and_the_last_results() -> None:
    status = {"current": current(1), "remainingSeconds": 130}
    shown = Progress(
        FileTransferBenchmark.model_validate(benchmark("Running", 7, 14, **status)),
        {result.metadata.name: BenchmarkResult.model_validate(result.to_json()) for result in published()[:7]},
        watch_error="Connection refused",
    )
    console = Console(width=100, file=io.StringIO(), record=True)
    console.print(render_live(shown, age_seconds=10, rows=3))
    text = console.export_text()
    assert "7/14 cases, 2 min 0 s left" in text
    assert "1M, cloud to user, trial 2 of 2" in text
    assert "Watch failed: Connection refused" in text
    assert [word for word in ("2Gi", "3Gi", "4Gi", "5Gi") if f"{word} " in text] == ["3Gi", "4Gi", "5Gi"]
