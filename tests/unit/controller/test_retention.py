"""Stored results stay under their limit: evictions are announced first, and failed steps are repeated."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.controller.api import Api, Raw
from tests.unit.controller.test_settings import ENVIRONMENT
from tests.unit.domain.world import KIND, raw_benchmark, raw_result
from tierbench.api.result import RESULTS
from tierbench.controller import retention as module
from tierbench.controller.context import Context
from tierbench.controller.retention import run_retention
from tierbench.controller.settings import Settings
from tierbench.domain import reasons
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kube.errors import ApiError
from tierbench.metrics.operator import OperatorMetrics

BENCHMARK = FileTransferBenchmark.KIND.resource
BENCHMARKS = BENCHMARK.path("a")
LIMITS = '{"storedBytes": "4k", "evictionNoticeSeconds": 60}'
SPEC = {"servers": {"nodeClasses": ["cloud"]}, "clients": {"nodeClasses": ["user"]}, "fileSizes": ["1Mi"]}


class Looks(OperatorMetrics):
    """Counts how often it was looked."""

    def __init__(self, stirred: asyncio.Event) -> None:
        super().__init__()
        self.count = 0
        self._stirred = stirred

    def set_stored_bytes(self, size: int, limit: int) -> None:
        super().set_stored_bytes(size, limit)
        self.count += 1
        self._stirred.set()


class Watched(Api):
    """An API server whose objects an operator knows by watches; `asked` are the requests."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.stirred = asyncio.Event()
        self.context = self.start()

    def start(self) -> Context:
        """An operator that has just started."""
        settings = Settings.from_environment({**ENVIRONMENT, "TIERBENCH_LIMITS": LIMITS})
        self.looks = Looks(self.stirred)
        self.context = Context(self, settings, metrics=self.looks)
        for path, raw in self.objects.items():
            self._show(path, raw, deleted=False)
        return self.context

    def _show(self, path: str, raw: Mapping[str, Any], *, deleted: bool) -> None:
        if path.startswith(RESULTS.path("a")):
            self.context.storage_usage.update_result(raw, deleted=deleted)
        else:
            self.context.objects[BENCHMARK].observe(raw, deleted=deleted)
            self.context.storage_usage.update_benchmark({**raw, "kind": KIND}, deleted=deleted)

    def put(self, collection: str, raw: Raw) -> Raw:
        stored = super().put(collection, raw)
        self._show(f"{collection}/{stored['metadata']['name']}", stored, deleted=False)
        return stored

    async def request(self, method: str, path: str, **asked: Any) -> Raw:
        self.asked.append(f"{method} {path.rpartition('/')[2]}")
        before = self.objects.get(path)
        answer = await super().request(method, path, **asked)
        if method == "DELETE" and before is not None:
            self._show(path, before, deleted=True)
        return answer

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.objects[f"{BENCHMARKS}/files"]["status"]
        return found

    def condition(self) -> tuple[str, str]:
        """Status and reason."""
        (found,) = [item for item in self.status["conditions"] if item["type"] == reasons.EVICTION_PENDING]
        return found["status"], found["reason"]

    async def until(self, holds: Any) -> None:
        """Waits for something that the operator does."""
        async with asyncio.timeout(60):
            while not holds():
                self.stirred.clear()
                await self.stirred.wait()

    async def look(self) -> None:
        """Returns when it was looked once more from beginning to end."""
        before = self.looks.count
        await self.until(lambda: self.looks.count > before + 2)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PERIOD_SECONDS", 0.001)


def filled(runs: int, stored: int = 600) -> Watched:
    """A benchmark that has ended so many runs of one result each."""
    api = Watched()
    api.put(BENCHMARKS, {**raw_benchmark("files", runs), "spec": SPEC})
    for run in range(1, runs + 1):
        api.put(RESULTS.path("a"), raw_result(f"r{run}", "files", run, stored, second=run))
    return api


@asynccontextmanager
async def keeping(api: Watched) -> AsyncIterator[None]:
    task = asyncio.create_task(run_retention(api.context))
    try:
        yield
    finally:
        task.cancel()


async def test_nothing_is_asked_while_there_is_room() -> None:
    api = filled(2)
    async with keeping(api):
        await api.look()
    assert api.asked == []


async def test_a_run_is_announced_and_goes_when_its_notice_is_over() -> None:
    api = filled(5)
    async with keeping(api):
        await api.until(lambda: api.status.get("evictions"))
        assert [item["run"] for item in api.status["evictions"]] == [1, 2]
        assert api.condition() == ("True", reasons.STORAGE_NEARLY_FULL)
        await api.look()
        assert api.deleted == []
        asked = len(api.asked)
        await api.look()
        assert len(api.asked) == asked
        api.ahead = timedelta(seconds=61)
        await api.until(lambda: api.status["evictions"] == [])
    assert api.condition() == ("False", reasons.STORAGE_FREE)
    assert sorted(api.names("benchmarkresults")) == ["r3", "r4", "r5"]
    assert [reason for reason, _ in api.events] == [reasons.EVICTION_PENDING, reasons.EVICTED]
    assert "runs 1, 2 of this benchmark may be deleted from" in api.events[0][1]
    assert "runs 1, 2 are deleted, as announced" in api.events[1][1]


async def test_the_notice_outlives_the_operator() -> None:
    api = filled(5)
    async with keeping(api):
        await api.until(lambda: api.status.get("evictions"))
    given = api.status["evictions"]
    api.start()
    async with keeping(api):
        await api.look()
        assert api.status["evictions"] == given
        api.ahead = timedelta(seconds=61)
        await api.until(lambda: api.deleted)
    assert api.events[0][0] == reasons.EVICTION_PENDING
    assert [reason for reason, _ in api.events].count(reasons.EVICTION_PENDING) == 1


@pytest.mark.parametrize("refused", [("POST", "/events"), ("PATCH", "/files/status")])
async def test_nothing_goes_whose_announcement_was_refused(refused: tuple[str, str]) -> None:
    api = filled(5)
    api.refuse[refused] = ApiError(500, "InternalError", "etcd is away")
    async with keeping(api):
        await api.look()
        api.ahead = timedelta(seconds=61)
        await api.look()
        assert api.deleted == []
        assert "evictions" not in api.status
        api.refuse.clear()
        await api.until(lambda: api.status.get("evictions"))
        await api.look()
        assert api.deleted == []


async def test_what_could_not_be_deleted_is_deleted_later() -> None:
    api = filled(5)
    async with keeping(api):
        await api.until(lambda: api.status.get("evictions"))
        api.refuse["DELETE", "/r2"] = ApiError(503, "ServiceUnavailable", "away")
        api.ahead = timedelta(seconds=61)
        await api.until(lambda: api.deleted)
        await api.look()
        api.refuse.clear()
        await api.until(lambda: api.status["evictions"] == [])
    assert sorted(path.rpartition("/")[2] for path in api.deleted) == ["r1", "r2"]
    assert api.asked.count("PATCH status") == len(["announced", "begun", "one gone", "both gone"])
    assert [reason for reason, _ in api.events] == [reasons.EVICTION_PENDING, reasons.EVICTED]


async def test_waiting_runs_are_woken_when_there_is_room() -> None:
    api = filled(5)
    other = (KIND, "a", "other")
    event = api.context.workqueue.event(other)
    api.context.queue.enqueue(other, "", ["node"])
    async with keeping(api):
        await api.until(lambda: api.status.get("evictions"))
        assert not event.is_set()
        api.ahead = timedelta(seconds=61)
        await asyncio.wait_for(event.wait(), 60)
