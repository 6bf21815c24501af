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

from tests.unit.apiserver.client import serve
from tests.unit.apiserver.server import ApiServer, Raw, Request
from tests.unit.controller.operator import settings_of
from tests.unit.domain.objects import benchmark
from tierbench.api.node_class import NODE_CLASSES
from tierbench.api.placement_advice import ADVICES
from tierbench.controller import handlers
from tierbench.controller.advisor import Advisor
from tierbench.controller.context import FINALIZER, Context
from tierbench.controller.handlers import handled, run_kopf
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kube import connect
from tierbench.kube.client import ApiError, Kube, LeadershipLostError
from tierbench.kube.informer import ListObserver
from tierbench.kube.meta import PODS, ResourceType
from tierbench.workloads.workload import LABEL_BENCHMARK, LABEL_KIND, Owner

RESOURCE = FileTransferBenchmark.KIND.resource
KEY = ("FileTransferBenchmark", "default", "demo")
DONE: dict[str, Any] = {"phase": "Complete", "observedGeneration": 1}


class Reconciler:
    """Replaces the reconciler of a benchmark, and records its calls."""

    log: ClassVar[list[str]] = []
    may_clean_up: ClassVar[asyncio.Event] = asyncio.Event()
    ends_after: ClassVar[float] = 0
    fails: ClassVar[int] = 0
    """The number of cleanups that raise an unexpected error."""

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
        """Runs until it is stopped, or its benchmark is gone."""
        self.log.append(f"runs {self._owner.name} {self._owner.uid}")
        try:
            while not self._stopped:
                await self._event.wait()
                self._event.clear()
                raw = self._context.objects[self._resource].get((self._owner.namespace, self._owner.name))
                if raw is None or raw["metadata"]["uid"] != self._owner.uid:
                    self.log.append(f"lost {self._owner.name}")
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
    """One process, without the tasks that kopf does not run."""

    context: Context
    lists: ListObserver
    task: asyncio.Task[None]
    released: list[float] = field(default_factory=list)

    async def end(self) -> None:
        """Ends it as SIGKILL does: it releases nothing."""
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


@pytest.fixture(autouse=True)
def _fake_reconciler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "BenchmarkReconciler", Reconciler)
    monkeypatch.setattr(handlers, "_BACKOFF_SECONDS", (0.05,))
    monkeypatch.setattr(handlers, "_LAST_BACKOFF_SECONDS", 0.05)
    monkeypatch.setattr(connect, "_LOGIN_SECONDS", 0.05)
    Reconciler.log, Reconciler.may_clean_up, Reconciler.ends_after, Reconciler.fails = [], asyncio.Event(), 0, 0
    Reconciler.may_clean_up.set()


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    api = ApiServer()
    api.page = 2
    async with serve(api):
        yield api


def start(kube: Kube, watch_namespaces: str = "") -> Operator:
    context = Context(kube, settings_of(TIERBENCH_WATCH_NAMESPACES=watch_namespaces))
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
    return server.put(RESOURCE, {**benchmark().to_json(), "metadata": {"name": name}, "status": status})


def refuse_patches(server: ApiServer, count: int, error: ApiError) -> None:
    """Answers this number of patches by an error."""
    errors = iter([error] * count)

    async def refuse(request: Request) -> None:
        if request.method == "PATCH" and (found := next(errors, None)):
            raise found

    server.reactor = refuse


def pod(server: ApiServer, name: str, owner: str = "uid-demo-1", **spec: Any) -> Raw:
    labels = {LABEL_KIND: KEY[0], LABEL_BENCHMARK: KEY[2]}
    references = [{"kind": KEY[0], "name": KEY[2], "uid": owner, "controller": True}]
    metadata = {"name": name, "labels": labels, "ownerReferences": references}
    return server.put(PODS, {"metadata": metadata, "spec": spec, "status": {}})


def finalizers(server: ApiServer, name: str = "demo") -> list[str] | None:
    raw = server.get(RESOURCE, name)
    return None if raw is None else raw["metadata"].get("finalizers", [])


async def test_active_benchmark_has_a_finalizer_and_a_daemon_after_one_write(server: ApiServer) -> None:
    put(server)
    async with operating(server):
        await server.until(lambda: finalizers(server) == [FINALIZER] and Reconciler.log)
        put(server, "done", **DONE)
        await asyncio.sleep(0.7)  # longer than kopf's workers live without events
    assert Reconciler.log == ["runs demo uid-demo-1", "ends demo uid-demo-1"]
    assert len(server.writes) == 1
    assert server.get(RESOURCE, "demo")["metadata"].get("annotations") is None  # type: ignore[index]
    assert {request.headers["User-Agent"] for request in server.requests} == {"tierbench"}
    assert {request.headers["Authorization"] for request in server.requests} == {"Bearer token"}


async def test_complete_benchmark_has_neither_finalizer_nor_daemon_until_it_is_due(server: ApiServer) -> None:
    put(server)
    async with operating(server):
        await server.until(lambda: finalizers(server) == [FINALIZER])
        server.change(RESOURCE, "demo", status=DONE)
        await server.until(lambda: finalizers(server) == [])
        assert Reconciler.log == ["runs demo uid-demo-1", "ends demo uid-demo-1"]
        server.change(RESOURCE, "demo", metadata={"generation": 2})
        await server.until(lambda: finalizers(server) == [FINALIZER])
        await server.until(lambda: Reconciler.log[2:] == ["runs demo uid-demo-1"])
    assert len(server.writes) == 3


async def test_deleted_benchmark_is_cleaned_up_after_its_daemon_has_ended(server: ApiServer) -> None:
    put(server)
    async with operating(server) as operator:
        await server.until(lambda: finalizers(server) == [FINALIZER])
        server.delete(RESOURCE, "demo")
        await server.until(lambda: server.get(RESOURCE, "demo") is None)
        await server.until(lambda: not operator.context.objects[RESOURCE].names())
    log = ["runs demo uid-demo-1", "ends demo uid-demo-1", "cleans up demo", "has cleaned up demo"]
    assert Reconciler.log == log
    assert len(server.writes) == 2, "the finalizer is added and removed"
    assert not [write for write in server.writes if "annotations" in str(write.body)]


async def test_failed_cleanup_is_retried_and_stores_nothing_in_the_benchmark(server: ApiServer) -> None:
    Reconciler.fails = 1
    put(server)
    async with operating(server):
        await server.until(lambda: finalizers(server) == [FINALIZER])
        server.delete(RESOURCE, "demo")
        await server.until(lambda: Reconciler.fails == 0)
        server.change(RESOURCE, "demo", status={})
        await server.until(lambda: server.get(RESOURCE, "demo") is None)
    assert Reconciler.log.count("cleans up demo") == 2
    assert len(server.writes) == 2, "the finalizer is added and removed"


async def test_benchmark_without_a_finalizer_is_deleted_without_a_write_of_the_operator(server: ApiServer) -> None:
    put(server, **DONE)
    async with operating(server) as operator:
        await server.until(operator.context.objects[RESOURCE].names)
        server.delete(RESOURCE, "demo")
        await server.until(lambda: not operator.context.objects[RESOURCE].names())
    assert (Reconciler.log, server.writes) == ([], [])


async def test_operator_that_starts_during_a_deletion_completes_it(server: ApiServer) -> None:
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


async def test_relist_removes_objects_that_are_missing_from_it(server: ApiServer) -> None:
    """kopf passes on the objects of a list, but does not report deleted ones."""
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
        await server.until(lambda: Reconciler.log[-2:] == ["lost demo", "ends demo uid-demo-1"])
    assert operator.context.results.known_benchmarks(KEY[0]) == (
        ("default", "other"),
        ("default", "third"),
        ("default", "fourth"),
    )


async def test_empty_relist_removes_all_objects(server: ApiServer) -> None:
    put(server)
    pod(server, "one")
    async with operating(server) as operator:
        await server.until(lambda: len(server.writes) == 1 and operator.context.objects[PODS].names())
        server.interrupt_watches()
        server.force_delete(RESOURCE, "demo")
        server.force_delete(PODS, "one")
        server.resume_watches(expired=True)
        await server.until(lambda: "lost demo" in Reconciler.log)
        await server.until(lambda: not operator.context.objects[PODS].names())
        assert not operator.context.objects[RESOURCE].names()
        assert not list(operator.context.results.newest_runs())


async def test_ended_watches_continue_without_a_relist(server: ApiServer) -> None:
    put(server)
    async with operating(server) as operator:
        await server.until(lambda: Reconciler.log)
        lists = sum(request.is_list for request in server.requests)
        server.interrupt_watches()
        server.force_delete(RESOURCE, "demo")
        server.resume_watches(expired=False)
        await server.until(lambda: not operator.context.objects[RESOURCE].names())
        assert sum(request.is_list for request in server.requests) == lists


async def test_daemon_of_a_recreated_benchmark_starts_after_the_first_one_has_ended(server: ApiServer) -> None:
    """Both have the same key in the workqueue and in the admission queue."""
    Reconciler.ends_after = 0.3
    put(server)
    async with operating(server):
        await server.until(lambda: len(server.writes) == 1)
        server.force_delete(RESOURCE, "demo")
        put(server)
        await server.until(lambda: finalizers(server) == [FINALIZER] and len(Reconciler.log) == 4)
        assert Reconciler.log == ["runs demo uid-demo-1", "lost demo", "ends demo uid-demo-1", "runs demo uid-demo-2"]


async def test_no_daemon_starts_before_all_types_are_listed(server: ApiServer) -> None:
    """A daemon would consider a pod that is not listed yet as deleted."""
    put(server)
    server.refuse["GET", "/pods"] = ApiError(500, "InternalError", "later")
    async with operating(server):
        await server.until(lambda: finalizers(server) == [FINALIZER])
        await asyncio.sleep(0.1)
        assert not Reconciler.log
        server.refuse.clear()
        await server.until(lambda: Reconciler.log == ["runs demo uid-demo-1"])


async def test_operator_that_does_not_lead_writes_nothing(server: ApiServer) -> None:
    def closed_fence() -> None:
        raise LeadershipLostError("it does not lead")

    put(server)
    async with operating(server, fence=closed_fence):
        await server.until(lambda: Reconciler.log)
        await asyncio.sleep(0.2)
    assert server.writes == []


async def test_rejected_finalizer_is_retried_without_end(server: ApiServer) -> None:
    put(server)
    refuse_patches(server, 12, ApiError(500, "InternalError", "later"))
    async with operating(server) as operator:
        await server.until(lambda: finalizers(server) == [FINALIZER])
        assert not operator.task.done()
    assert len(server.writes) == 13


async def test_operator_survives_a_rejected_token(server: ApiServer) -> None:
    put(server)
    refuse_patches(server, 3, ApiError(401, "Unauthorized", "token has expired"))
    async with operating(server) as operator:
        await server.until(lambda: finalizers(server) == [FINALIZER])
        assert not operator.task.done()


async def test_every_type_is_watched_once_and_listed_in_pages(server: ApiServer) -> None:
    for name in "abcde":
        put(server, name, **DONE)
    async with operating(server) as operator:
        await server.until(lambda: sum(request.is_watch for request in server.requests) == 8)
        assert len(operator.context.objects[RESOURCE].names()) == 5
    pages = [each for each in server.requests if RESOURCE.plural in each.path and each.is_list]
    assert len(pages) == 3
    selected = {each.path for each in server.requests if each.query.get("labelSelector", "").startswith(LABEL_KIND)}
    assert selected == {"/api/v1/pods", "/api/v1/services", "/apis/batch/v1/jobs"}
    paths = {each.path for each in server.requests}
    assert not [path for path in paths if path.endswith(("namespaces", "definitions"))], "they need more permissions"


async def test_objects_that_no_benchmark_owns_reach_neither_caches_nor_kopf(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anyone can create objects with labels of benchmarks. To keep them would take unbounded memory."""
    seen: list[Raw] = []
    put(server)
    pod(server, "listed", "other")
    pod(server, "mine", containers=[{"name": "c", "env": [{"name": "A", "value": "v" * 3_000_000}]}])
    server.change(RESOURCE, "demo", metadata={"annotations": {"a": "v"}})
    monkeypatch.setattr(ListObserver, "is_outdated", lambda self, resource, raw: seen.append(raw))
    async with operating(server) as operator:
        await server.until(lambda: Reconciler.log)
        pod(server, "watched", "other")
        pod(server, "second", containers=[{"name": "c", "env": [{"name": "A", "value": "v"}]}])
        pods = operator.context.objects[PODS]
        await server.until(lambda: len(pods.names()) == 2)
        server.force_delete(PODS, "mine")
        await server.until(lambda: pods.names() == (("default", "second"),))
        kept = pods.get(("default", "second"))
        assert kept is not None
        assert kept["spec"] == {"containers": [{"name": "c"}]}
    assert {raw["metadata"]["name"] for raw in seen} == {"demo", "mine", "second"}
    assert not [raw for raw in seen if "annotations" in raw["metadata"] or "env" in str(raw)]


async def test_operator_of_some_namespaces_watches_only_those(server: ApiServer) -> None:
    put(server)
    async with operating(server, watch_namespaces="default, lab") as operator:
        await server.until(lambda: finalizers(server) == [FINALIZER] and Reconciler.log)
        assert operator.lists.synced.is_set()
        await server.until(lambda: len({request.path for request in server.requests if request.is_watch}) == 15)
    watched = {request.path for request in server.requests if request.is_watch}
    assert {PODS.path("default"), PODS.path("lab"), NODE_CLASSES.path(None), ADVICES.path("lab")} < watched
    assert len(watched) == 15


async def test_late_event_is_dropped_if_its_object_was_missing_from_a_relist(server: ApiServer) -> None:
    """kopf passes the event on after the cleanup. Without the check, the object would remain in the cache."""
    put(server)
    Reconciler.may_clean_up.clear()
    async with operating(server) as operator:
        await server.until(lambda: finalizers(server) == [FINALIZER])
        server.delete(RESOURCE, "demo")
        await server.until(lambda: "cleans up demo" in Reconciler.log)
        server.change(RESOURCE, "demo", metadata={"labels": {"a": "b"}})
        await asyncio.sleep(0.1)  # until kopf has the event in the queue of the benchmark
        server.interrupt_watches()
        server.force_delete(RESOURCE, "demo")
        server.resume_watches(expired=True)
        await server.until(lambda: not operator.context.objects[RESOURCE].names())
        Reconciler.may_clean_up.set()
        await server.until(lambda: "has cleaned up demo" in Reconciler.log)
        await asyncio.sleep(0.2)
        assert not operator.context.objects[RESOURCE].names()
        assert not operator.context.results.known_benchmarks(KEY[0])


async def test_operator_that_ends_waits_for_its_daemons_and_releases_its_lease(server: ApiServer) -> None:
    put(server)
    async with operating(server) as operator:
        await server.until(lambda: finalizers(server) == [FINALIZER] and Reconciler.log)
        start = time.monotonic()
        os.kill(os.getpid(), signal.SIGTERM)
        await server.until(lambda: operator.released)
        assert Reconciler.log == ["runs demo uid-demo-1", "ends demo uid-demo-1"]
        assert operator.released[0] - start < 2
    assert finalizers(server) == [FINALIZER]
