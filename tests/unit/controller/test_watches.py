"""Handlers update caches and queues, and deleted objects are removed after a relist."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from yarl import URL

from tests.unit.controller.api import Api
from tests.unit.controller.test_settings import ENVIRONMENT
from tests.unit.domain.world import KIND, raw_result
from tierbench.api.result import RESULTS
from tierbench.controller.advisor import Advisor
from tierbench.controller.context import Context
from tierbench.controller.settings import Settings
from tierbench.controller.watches import handled, reflected
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kube import informer
from tierbench.kube.informer import Informer, InitialListSynced, ListObserver, Update, WatchEvent, run_informer
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


async def test_a_benchmark_that_an_own_write_found_gone_is_told_of_no_more() -> None:
    """Its watch may never tell: it was in no cache then, and /metrics told of it for ever."""
    context = Context(Api(), Settings.from_environment(ENVIRONMENT))
    watched = next(each for each in handled(context, Advisor(context)) if each.resource == RESOURCE)
    watched.handler(item("gone"), deleted=False)
    context.objects.observe_write(RESOURCE, None, ("a", "gone"))
    lists = ListObserver([watched], "")
    lists.observe(URL(f"https://h{RESOURCE.path('a')}"), {"metadata": {"resourceVersion": "7"}, "items": []})
    assert not list(context.results.newest_runs())


@pytest.mark.parametrize("full", [True, False])
async def test_room_for_results_wakes_the_benchmarks_that_wait(full: bool) -> None:
    limits = '{"storedBytes": "1500"}' if full else "{}"
    context = Context(Api(), Settings.from_environment({**ENVIRONMENT, "TIERBENCH_LIMITS": limits}))
    watched = next(each for each in reflected(context, Advisor(context)) if each.resource == RESULTS)
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
