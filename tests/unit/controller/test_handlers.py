"""The handlers under kopf itself, against an API server on loopback."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import kopf
import pytest
from yarl import URL

from tests.unit.controller.api import Api
from tests.unit.controller.api_server import ApiServer, api_server
from tests.unit.controller.test_controller import ENVIRONMENT
from tests.unit.domain.world import benchmark
from tierbench.controller import framework, handlers
from tierbench.controller.advisor import Advisor
from tierbench.controller.benchmarks import Benchmarks
from tierbench.controller.context import Context
from tierbench.controller.framework import FINALIZER, kopf_settings, open_session
from tierbench.controller.handlers import HANDLERS, Memo
from tierbench.controller.settings import Settings
from tierbench.controller.watching import Lists, everything
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kube.client import ADVICES, LEASES, NODE_CLASSES, NODES, PODS, RESULTS, ResourceType
from tierbench.kube.fence import DeposedError
from tierbench.workloads.names import LABEL_BENCHMARK, LABEL_KIND, Owner

RESOURCE = ResourceType.of(FileTransferBenchmark.KIND)
KEY = ("FileTransferBenchmark", "default", "demo")
DONE = {"phase": "Complete", "observedGeneration": 1}
Raw = dict[str, Any]


class Loop:
    """In place of the loop behind a benchmark: notes what happens to it."""

    log: list[str] = []
    may_clean_up = asyncio.Event()

    def __init__(self, context: Context, resource: ResourceType, owner: Owner) -> None:
        self.key = (owner.kind, owner.namespace, owner.name)
        self._context = context
        self._resource = resource
        self._owner = owner
        self._stopped = False
        self._bell = context.wakeups.bell(self.key)

    def stop(self) -> None:
        self._stopped = True
        self._bell.set()

    async def run(self) -> None:
        """Until it is stopped, or its benchmark is gone."""
        self.log.append(f"runs {self._owner.name} {self._owner.uid}")
        try:
            while not self._stopped:
                await self._bell.wait()
                self._bell.clear()
                raw = self._context.objects[self._resource].get((self._owner.namespace, self._owner.name))
                if raw is None or raw["metadata"]["uid"] != self._owner.uid:
                    self.log.append(f"misses {self._owner.name}")
                    return
        finally:
            self.log.append(f"ends {self._owner.name} {self._owner.uid}")

    async def clean_up(self) -> None:
        self.log.append(f"cleans up {self._owner.name}")
        await self.may_clean_up.wait()
        self.log.append(f"has cleaned up {self._owner.name}")


@dataclass
class Operator:
    """One process, as far as kopf makes it."""

    context: Context
    memo: Memo
    task: asyncio.Task[None]
    stop: asyncio.Event
    released: list[float] = field(default_factory=list)

    async def end(self) -> None:
        """As SIGKILL: nothing is given back."""
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


@pytest.fixture(autouse=True)
def _loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "Loop", Loop)
    monkeypatch.setattr(framework, "_BACKOFF_SECONDS", (0.05,))
    monkeypatch.setattr(framework, "_LAST_BACKOFF_SECONDS", 0.05)
    monkeypatch.setattr(framework, "_LOGIN_SECONDS", 0.05)
    Loop.log, Loop.may_clean_up = [], asyncio.Event()
    Loop.may_clean_up.set()


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with api_server() as serving:
        yield serving


def start(server: ApiServer, fence: Any = lambda: None, watch_namespaces: str = "") -> Operator:
    context = Context(
        Api(), Settings.from_environment({**ENVIRONMENT, "TIERBENCH_WATCH_NAMESPACES": watch_namespaces})
    )
    types = [
        each
        for each in everything(context, Advisor(context), Benchmarks(context))
        if each.resource not in {NODES, LEASES, RESULTS}
    ]
    lists = Lists(types, URL(server.url).path)

    async def authorization() -> str:
        return "Bearer token"

    def session() -> kopf.AiohttpSession:
        opened = open_session(False, authorization, fence, context.metrics.api_answered, lists.take)
        return kopf.AiohttpSession(server=server.url, aiohttp_session=opened)

    async def release() -> None:
        operator.released.append(time.monotonic())

    memo = Memo(context, {each.resource: each for each in types}, lists, session, release)
    stop = asyncio.Event()
    running = kopf.operator(
        registry=HANDLERS,
        settings=kopf_settings(
            {(*each.resource.group_and_version, each.resource.plural): each.labels for each in types if each.labels}
        ),
        memo=memo,
        standalone=True,
        clusterwide=not context.settings.watch_namespaces,
        namespaces=context.settings.watch_namespaces,
        stop_flag=stop,
        identity="pod",  # type: ignore[arg-type]  # kopf's own type of names is not public
    )
    operator = Operator(context, memo, asyncio.create_task(running), stop)
    return operator


@asynccontextmanager
async def operating(server: ApiServer, **more: Any) -> AsyncIterator[Operator]:
    operator = start(server, **more)
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
        await server.until(lambda: finalizers(server) == [FINALIZER] and Loop.log)
        put(server, "done", **DONE)
        await asyncio.sleep(0.7)  # what is idle for longer than kopf's workers is written nothing into, either
    assert Loop.log == ["runs demo uid-1", "ends demo uid-1"]
    assert len(server.writes) == 1
    assert server.get(RESOURCE, "demo")["metadata"].get("annotations") is None  # type: ignore[index]
    assert {headers["User-Agent"] for headers in server.headers} == {"tierbench"}
    assert {headers["Authorization"] for headers in server.headers} == {"Bearer token"}
