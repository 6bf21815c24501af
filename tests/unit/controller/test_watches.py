"""Handlers update caches and queues, and deleted objects are removed after a relist."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from tests.unit.controller.api import Api
from tests.unit.controller.test_settings import ENVIRONMENT
from tests.unit.domain.world import KIND, benchmark, raw_result
from tierbench.api.result import RESULTS
from tierbench.controller import reconciler as module
from tierbench.controller.advisor import Advisor
from tierbench.controller.context import Context
from tierbench.controller.reconciler import BenchmarkController
from tierbench.controller.settings import Settings
from tierbench.controller.watches import setup_informers
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kube import informer
from tierbench.kube.informer import Informer, InitialListSynced, Update, WatchEvent, run_informer
from tierbench.kube.resources import PODS

RESOURCE = FileTransferBenchmark.KIND.resource
Raw = dict[str, Any]


def item(name: str, namespace: str = "a") -> Raw:
    return {"metadata": {"name": name, "namespace": namespace, "resourceVersion": "5"}}


async def test_a_list_says_what_is_gone_and_an_odd_object_costs_itself_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {("a", "gone"), ("a", "there"), ("b", "of another namespace")}
    forgotten: list[Raw] = []

    def see(raw: Mapping[str, Any], *, deleted: bool) -> None:
        if raw["metadata"]["name"] == "odd":
            raise ZeroDivisionError
        if deleted:
            forgotten.append(dict(raw["metadata"]))

    async def feed(*_: object) -> AsyncIterator[Update]:
        yield WatchEvent(PODS, item("odd"), deleted=False)
        yield WatchEvent(PODS, item("there"), deleted=False)
        yield InitialListSynced(PODS, frozenset({("a", "odd"), ("a", "there")}), "7")

    monkeypatch.setattr(informer, "list_and_watch", feed)
    listed = asyncio.Event()
    await run_informer(Api(), Informer(PODS, see, lambda: known, ("a",)), "a", listed)
    assert listed.is_set()
    assert forgotten == [{"namespace": "a", "name": "gone", "resourceVersion": "7"}]


async def test_a_benchmark_that_an_own_write_found_gone_is_told_of_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its watch may never tell: it was in no cache then, and /metrics told of it for ever."""
    context = Context(Api(), Settings.from_environment(ENVIRONMENT))
    types = setup_informers(context, Advisor(context), BenchmarkController(context))
    watched = next(each for each in types if each.resource == RESOURCE)
    watched.handler(item("gone"), deleted=False)
    context.objects.observe_write(RESOURCE, None, ("a", "gone"))

    async def feed(*_: object) -> AsyncIterator[Update]:
        yield InitialListSynced(RESOURCE, frozenset(), "7")

    monkeypatch.setattr(informer, "list_and_watch", feed)
    await run_informer(context.kube, watched, None, asyncio.Event())
    assert not list(context.results.newest_runs())


async def test_a_benchmark_that_is_due_again_when_its_loop_ends_has_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its spec may change in the instant in which the loop finds nothing to do."""
    context = Context(Api(), Settings.from_environment(ENVIRONMENT))
    raw = benchmark().to_json()
    raw["metadata"] |= {"resourceVersion": "1"}
    context.objects[RESOURCE].observe(raw)
    begun: list[str] = []

    class Short:
        def __init__(self, *_: object) -> None:
            begun.append("loop")

        async def run(self) -> None:
            if len(begun) == 2:
                await asyncio.Event().wait()

    monkeypatch.setattr(module, "BenchmarkReconciler", Short)
    running = asyncio.create_task(BenchmarkController(context).run())
    async with asyncio.timeout(60):
        while len(begun) < 2:  # noqa: ASYNC110 (a task that is to be looked at, not to tell)
            await asyncio.sleep(0)
    running.cancel()


async def test_a_loop_that_ends_while_the_operator_stops_starts_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    context = Context(Api(), Settings.from_environment(ENVIRONMENT))
    raw = benchmark().to_json()
    raw["metadata"] |= {"resourceVersion": "1"}
    context.objects[RESOURCE].observe(raw)
    begun = asyncio.Event()

    class EndsWhenCancelled:
        def __init__(self, *_: object) -> None:
            begun.set()

        async def run(self) -> None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    monkeypatch.setattr(module, "BenchmarkReconciler", EndsWhenCancelled)
    running = asyncio.create_task(BenchmarkController(context).run())
    await begun.wait()
    await asyncio.sleep(0)  # its loop begins
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.parametrize("full", [True, False])
async def test_room_for_results_wakes_the_benchmarks_that_wait(full: bool) -> None:
    limits = '{"storedBytes": "1500"}' if full else "{}"
    context = Context(Api(), Settings.from_environment({**ENVIRONMENT, "TIERBENCH_LIMITS": limits}))
    types = setup_informers(context, Advisor(context), BenchmarkController(context))
    watched = next(each for each in types if each.resource == RESULTS)
    waiting = (KIND, "a", "waiting")
    event = context.workqueue.event(waiting)
    context.queue.enqueue(waiting, "", ["node"])
    for name in ("one", "two"):
        watched.handler(raw_result(name, "files", 1), deleted=False)
    assert context.storage_full == full
    watched.handler(raw_result("one", "files", 1), deleted=True)
    assert (context.storage_full, event.is_set()) == (False, full)
    stored = context.metrics.registry.get_sample_value("tierbench_stored_bytes")
    assert stored == context.results.stored_bytes > 1000
