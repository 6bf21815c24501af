"""The handlers under kopf itself, against an API server on loopback."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

import aiohttp
import pytest
from kubernetes.aio.client import ApiClient, Configuration
from yarl import URL

from tests.unit.controller.api_server import ApiServer, api_server
from tests.unit.controller.test_settings import ENVIRONMENT
from tests.unit.domain.world import benchmark
from tierbench.api.node_class import NODE_CLASSES
from tierbench.api.placement_advice import ADVICES
from tierbench.controller import framework, handlers
from tierbench.controller.advisor import Advisor
from tierbench.controller.context import Context
from tierbench.controller.framework import run_kopf
from tierbench.controller.reconciler import FINALIZER
from tierbench.controller.settings import Settings
from tierbench.controller.watches import handled
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kube import session
from tierbench.kube.client import Kube
from tierbench.kube.errors import LeadershipLostError
from tierbench.kube.informer import ListObserver
from tierbench.kube.resources import PODS, ResourceType
from tierbench.workloads.names import LABEL_BENCHMARK, LABEL_KIND, Owner

RESOURCE = FileTransferBenchmark.KIND.resource
KEY = ("FileTransferBenchmark", "default", "demo")
DONE: dict[str, Any] = {"phase": "Complete", "observedGeneration": 1}
Raw = dict[str, Any]


class Reconciler:
    """In place of the reconciler of a benchmark: notes what happens to it."""

    log: ClassVar[list[str]] = []
    may_clean_up: ClassVar[asyncio.Event] = asyncio.Event()
    ends_after: ClassVar[float] = 0
    fails: ClassVar[int] = 0
    """How many cleanups fail with an error that no reconciler expects."""

    def __init__(self, context: Context, resource: ResourceType, owner: Owner) -> None:
        self._context = context
        self._resource = resource
        self._owner = owner
        self._key = (owner.kind, owner.namespace, owner.name)
        self._stopped = False
        self._event = context.workqueue.event(self._key)

    def stop(self) -> None:
        self._stopped = True
        self._event.set()

    async def run(self) -> None:
        """Until it is stopped, or its benchmark is gone."""
        self.log.append(f"runs {self._owner.name} {self._owner.uid}")
        try:
            while not self._stopped:
                await self._event.wait()
                self._event.clear()
                raw = self._context.objects[self._resource].get((self._owner.namespace, self._owner.name))
                if raw is None or raw["metadata"]["uid"] != self._owner.uid:
                    self.log.append(f"misses {self._owner.name}")
                    await asyncio.sleep(self.ends_after)
                    return
        finally:
            self._context.workqueue.forget(self._key)
            self.log.append(f"ends {self._owner.name} {self._owner.uid}")

    async def clean_up(self) -> None:
        self.log.append(f"cleans up {self._owner.name}")
        if Reconciler.fails:
            Reconciler.fails -= 1
            raise ZeroDivisionError
        await self.may_clean_up.wait()
        self.log.append(f"has cleaned up {self._owner.name}")


@dataclass
class Operator:
    """One process, as far as kopf makes it."""

    context: Context
    lists: ListObserver
    task: asyncio.Task[None]
    released: list[float] = field(default_factory=list)

    async def end(self) -> None:
        """As SIGKILL: nothing is given back."""
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


@pytest.fixture(autouse=True)
def _loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "BenchmarkReconciler", Reconciler)
    monkeypatch.setattr(framework, "_BACKOFF_SECONDS", (0.05,))
    monkeypatch.setattr(framework, "_LAST_BACKOFF_SECONDS", 0.05)
    monkeypatch.setattr(session, "_LOGIN_SECONDS", 0.05)
    Reconciler.log, Reconciler.may_clean_up, Reconciler.ends_after = [], asyncio.Event(), 0
    Reconciler.fails = 0
    Reconciler.may_clean_up.set()


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with api_server() as serving:
        yield serving


def start(kube: Kube, watch_namespaces: str = "") -> Operator:
    environment = {**ENVIRONMENT, "TIERBENCH_WATCH_NAMESPACES": watch_namespaces}
    context = Context(kube, Settings.from_environment(environment))
    informers = tuple(handled(context, Advisor(context)))
    lists = ListObserver(informers, URL(kube.address).path)
    released: list[float] = []

    async def release() -> None:
        released.append(time.monotonic())

    return Operator(context, lists, asyncio.create_task(run_kopf(context, informers, lists, release)), released)


@asynccontextmanager
async def operating(
    server: ApiServer, fence: Callable[[], None] = lambda: None, watch_namespaces: str = ""
) -> AsyncIterator[Operator]:
    configuration = Configuration(host=server.url, api_key={"BearerToken": "token"})
    configuration.api_key_prefix = {"BearerToken": "Bearer"}
    async with ApiClient(configuration) as client, aiohttp.TCPConnector() as connector:
        configuration.client_session_kwargs = {"connector": connector}
        operator = start(Kube(client, check_leader=fence), watch_namespaces)
        try:
            yield operator
        finally:
            await operator.end()


def put(server: ApiServer, name: str = "demo", **status: Any) -> Raw:
    raw = benchmark().to_json()
    return server.put(RESOURCE, {**raw, "metadata": {"name": name}, "status": status})


def pod(server: ApiServer, name: str) -> Raw:
    labels = {LABEL_KIND: KEY[0], LABEL_BENCHMARK: KEY[2]}
    return server.put(PODS, {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": {}})


def finalizers(server: ApiServer, name: str = "demo") -> list[str] | None:
    raw = server.get(RESOURCE, name)
    return None if raw is None else raw["metadata"].get("finalizers", [])


async def test_a_benchmark_has_a_finalizer_and_a_daemon_for_one_write(server: ApiServer) -> None:
    put(server)
    async with operating(server):
        await server.until(lambda: finalizers(server) == [FINALIZER] and Reconciler.log)
        put(server, "done", **DONE)
        await asyncio.sleep(0.7)  # what is idle for longer than kopf's workers is written nothing into, either
    assert Reconciler.log == ["runs demo uid-1", "ends demo uid-1"]
    assert len(server.writes) == 1
    assert server.get(RESOURCE, "demo")["metadata"].get("annotations") is None  # type: ignore[index]
    assert {headers["User-Agent"] for headers in server.headers} == {"tierbench"}
    assert {headers["Authorization"] for headers in server.headers} == {"Bearer token"}


async def test_a_benchmark_that_is_done_loses_both_and_has_them_again_when_it_is_due(server: ApiServer) -> None:
    put(server)
    async with operating(server):
        await server.until(lambda: finalizers(server) == [FINALIZER])
        server.change(RESOURCE, "demo", status=DONE)
        await server.until(lambda: finalizers(server) == [])
        assert Reconciler.log == ["runs demo uid-1", "ends demo uid-1"]
        raw = server.get(RESOURCE, "demo") or {}
        server.change(RESOURCE, "demo", metadata={**raw["metadata"], "generation": 2})
        await server.until(lambda: finalizers(server) == [FINALIZER])
        await server.until(lambda: Reconciler.log[2:] == ["runs demo uid-1"])
    assert len(server.writes) == 3


async def test_a_deleted_benchmark_is_cleaned_up_after_its_daemon_has_ended(server: ApiServer) -> None:
    put(server)
    async with operating(server) as operator:
        await server.until(lambda: finalizers(server) == [FINALIZER])
        server.delete(RESOURCE, "demo")
        await server.until(lambda: server.get(RESOURCE, "demo") is None)
        await server.until(lambda: not operator.context.objects[RESOURCE].names())
    log = ["runs demo uid-1", "ends demo uid-1", "cleans up demo", "has cleaned up demo"]
    assert Reconciler.log == log
    assert len(server.writes) == 2, "the finalizer comes and goes"
    assert not [write for write in server.writes if "annotations" in str(write)]


async def test_a_cleanup_that_fails_is_repeated_and_writes_nothing_into_the_benchmark(server: ApiServer) -> None:
    Reconciler.fails = 1
    put(server)
    async with operating(server):
        await server.until(lambda: finalizers(server) == [FINALIZER])
        server.delete(RESOURCE, "demo")
        await server.until(lambda: Reconciler.fails == 0)
        server.change(RESOURCE, "demo", status={})
        await server.until(lambda: server.get(RESOURCE, "demo") is None)
    assert Reconciler.log.count("cleans up demo") == 2
    assert len(server.writes) == 2, "the finalizer comes and goes"


async def test_one_that_was_never_due_goes_without_the_operator(server: ApiServer) -> None:
    put(server, **DONE)
    async with operating(server) as operator:
        await server.until(operator.context.objects[RESOURCE].names)
        server.delete(RESOURCE, "demo")
        await server.until(lambda: not operator.context.objects[RESOURCE].names())
    assert (Reconciler.log, server.writes) == ([], [])


async def test_an_operator_that_starts_in_the_middle_of_a_deletion_ends_it(server: ApiServer) -> None:
    put(server)
    Reconciler.may_clean_up.clear()
    async with operating(server):
        await server.until(lambda: finalizers(server) == [FINALIZER])
        server.delete(RESOURCE, "demo")
        await server.until(lambda: "cleans up demo" in Reconciler.log)
    assert server.get(RESOURCE, "demo") is not None
    Reconciler.log.clear()
    Reconciler.may_clean_up.set()
    async with operating(server):
        await server.until(lambda: server.get(RESOURCE, "demo") is None)
    assert Reconciler.log == ["cleans up demo", "has cleaned up demo"], "no daemon runs"


async def test_what_was_deleted_before_a_relist_is_found_missing(server: ApiServer) -> None:
    """kopf passes on what there is, and nothing of what is gone."""
    for name in ("demo", "other", "third"):
        put(server, name)
    for name in ("one", "two", "three"):
        pod(server, name)
    async with operating(server) as operator:
        benchmarks, pods = operator.context.objects[RESOURCE], operator.context.objects[PODS]
        await server.until(lambda: len(benchmarks.names()) == 3 and len(pods.names()) == 3 and len(server.writes) == 3)
        server.interrupt_watches()
        server.force_delete(RESOURCE, "demo")
        server.force_delete(PODS, "two")
        put(server, "fourth")
        server.resume_watches(expired=True)
        await server.until(lambda: "runs fourth" in " ".join(Reconciler.log))
        await server.until(lambda: {name for _, name in benchmarks.names()} == {"other", "third", "fourth"})
        await server.until(lambda: {name for _, name in pods.names()} == {"one", "three"})
        await server.until(lambda: Reconciler.log[-2:] == ["misses demo", "ends demo uid-1"])
    assert operator.context.results.known_benchmarks(KEY[0]) == (
        ("default", "other"),
        ("default", "third"),
        ("default", "fourth"),
    )


async def test_a_relist_that_finds_nothing_forgets_everything(server: ApiServer) -> None:
    put(server)
    pod(server, "one")
    async with operating(server) as operator:
        await server.until(lambda: len(server.writes) == 1 and operator.context.objects[PODS].names())
        server.interrupt_watches()
        server.force_delete(RESOURCE, "demo")
        server.force_delete(PODS, "one")
        server.resume_watches(expired=True)
        await server.until(lambda: "misses demo" in Reconciler.log)
        await server.until(lambda: not operator.context.objects[PODS].names())
        assert not operator.context.objects[RESOURCE].names()
        assert not list(operator.context.results.newest_runs())


async def test_watches_that_end_go_on_where_they_were(server: ApiServer) -> None:
    put(server)
    async with operating(server) as operator:
        await server.until(lambda: len(server.writes) == 1)
        listed = [path for _, path in server.requests if "limit" in path]
        server.interrupt_watches()
        server.force_delete(RESOURCE, "demo")
        server.resume_watches(expired=False)
        await server.until(lambda: not operator.context.objects[RESOURCE].names())
        assert [path for _, path in server.requests if "limit" in path] == listed


async def test_a_benchmark_made_again_under_its_name_waits_for_the_end_of_the_first(server: ApiServer) -> None:
    """They share a place in the queue and a bell."""
    Reconciler.ends_after = 0.3
    put(server)
    async with operating(server):
        await server.until(lambda: len(server.writes) == 1)
        server.force_delete(RESOURCE, "demo")
        put(server)
        await server.until(lambda: finalizers(server) == [FINALIZER] and len(Reconciler.log) == 4)
        assert Reconciler.log == ["runs demo uid-1", "misses demo", "ends demo uid-1", "runs demo uid-2"]


async def test_no_daemon_begins_before_all_has_been_listed(server: ApiServer) -> None:
    """Pods that are not known yet would pass for pods that are gone."""
    put(server)
    server.refuse = lambda _, path: 500 if path.endswith("/pods") else None
    async with operating(server):
        await server.until(lambda: finalizers(server) == [FINALIZER])
        await asyncio.sleep(0.1)
        assert not Reconciler.log
        server.refuse = lambda _, path: None
        await server.until(lambda: Reconciler.log == ["runs demo uid-1"])


async def test_nothing_is_written_while_the_operator_does_not_lead(server: ApiServer) -> None:
    def shut() -> None:
        raise LeadershipLostError("it does not lead")

    put(server)
    async with operating(server, fence=shut):
        await server.until(lambda: Reconciler.log)
        await asyncio.sleep(0.2)
    assert server.writes == []
    assert {method for method, _ in server.requests} == {"GET"}


async def test_a_finalizer_that_is_refused_is_tried_for_as_long_as_it_takes(server: ApiServer) -> None:
    put(server)
    refused: list[str] = []

    def refuse(method: str, path: str) -> int | None:
        if method == "PATCH" and len(refused) < 12:
            refused.append(path)
            return 500
        return None

    server.refuse = refuse
    async with operating(server) as operator:
        await server.until(lambda: finalizers(server) == [FINALIZER])
        assert not operator.task.done()
    assert len(refused) == 12


async def test_a_token_that_is_no_longer_accepted_costs_a_session(server: ApiServer) -> None:
    put(server)
    refused: list[str] = []

    def refuse(method: str, path: str) -> int | None:
        if method == "PATCH" and len(refused) < 3:
            refused.append(path)
            return 401
        return None

    server.refuse = refuse
    async with operating(server) as operator:
        await server.until(lambda: finalizers(server) == [FINALIZER])
        assert not operator.task.done()


async def test_every_type_is_watched_once_and_asked_for_in_pages(server: ApiServer) -> None:
    for name in "abcde":
        put(server, name, **DONE)
    async with operating(server) as operator:
        await server.until(lambda: sum("watch" in path for _, path in server.requests) == 8)
        assert len(operator.context.objects[RESOURCE].names()) == 5
    pages = [path for _, path in server.requests if RESOURCE.plural in path and "limit=100" in path]
    assert len(pages) == 3
    selected = {
        path.partition("?")[0]
        for _, path in server.requests
        if f"labelSelector={LABEL_KIND}" in path.replace("%2F", "/")
    }
    assert selected == {"/api/v1/pods", "/api/v1/services", "/apis/batch/v1/jobs"}
    asked = {path.partition("?")[0] for _, path in server.requests}
    assert not [path for path in asked if path.endswith(("namespaces", "definitions"))], (
        "no further permission is needed"
    )


async def test_some_namespaces(server: ApiServer) -> None:
    put(server)
    async with operating(server, watch_namespaces="default, lab") as operator:
        await server.until(lambda: finalizers(server) == [FINALIZER] and Reconciler.log)
        assert operator.lists.synced.is_set()
    watched = {path.partition("?")[0] for _, path in server.requests if "watch" in path}
    assert {PODS.path("default"), PODS.path("lab"), NODE_CLASSES.path(None), ADVICES.path("lab")} < watched
    assert len(watched) == 15


async def test_an_event_that_has_waited_for_longer_than_its_object_lived_is_dropped(server: ApiServer) -> None:
    """kopf passes it on once the cleanup that it waited for has ended: its object would be known for ever."""
    put(server)
    Reconciler.may_clean_up.clear()
    async with operating(server) as operator:
        await server.until(lambda: finalizers(server) == [FINALIZER])
        server.delete(RESOURCE, "demo")
        await server.until(lambda: "cleans up demo" in Reconciler.log)
        raw = server.get(RESOURCE, "demo") or {}
        server.change(RESOURCE, "demo", metadata={**raw["metadata"], "labels": {"a": "b"}})
        await asyncio.sleep(0.1)  # until kopf has it in the queue of the benchmark
        server.interrupt_watches()
        server.force_delete(RESOURCE, "demo")
        server.resume_watches(expired=True)
        await server.until(lambda: not operator.context.objects[RESOURCE].names())
        Reconciler.may_clean_up.set()
        await server.until(lambda: "has cleaned up demo" in Reconciler.log)
        await asyncio.sleep(0.2)
        assert not operator.context.objects[RESOURCE].names()
        assert not operator.context.results.known_benchmarks(KEY[0])


async def test_an_operator_that_ends_lets_its_daemons_end_and_a_standby_lead(server: ApiServer) -> None:
    put(server)
    async with operating(server) as operator:
        await server.until(lambda: finalizers(server) == [FINALIZER])
        began = time.monotonic()
        os.kill(os.getpid(), signal.SIGTERM)
        await server.until(lambda: operator.released)
        assert Reconciler.log == ["runs demo uid-1", "ends demo uid-1"]
        assert operator.released[0] - began < 2
    assert finalizers(server) == [FINALIZER]
