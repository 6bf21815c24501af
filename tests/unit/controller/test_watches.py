"""Handlers update caches and queues, and a list removes the objects that are missing from it."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from yarl import URL

from tests.unit.apiserver.client import InProcessKube
from tests.unit.apiserver.server import ApiServer
from tests.unit.controller.operator import context_of
from tests.unit.domain.objects import KIND, START, raw_result
from tierbench.api.result import RESULTS
from tierbench.controller.advisor import Advisor
from tierbench.controller.handlers import handled, reflected
from tierbench.domain.queueing import Wait
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kube.informer import Informer, ListObserver, run_informer
from tierbench.kube.meta import PODS

RESOURCE = FileTransferBenchmark.KIND.resource
Raw = dict[str, Any]


def item(name: str) -> Raw:
    return {"metadata": {"name": name, "namespace": "a", "resourceVersion": "5"}}


async def test_list_deletes_missing_objects_and_an_invalid_object_affects_no_other() -> None:
    known = {("a", "gone"), ("a", "there"), ("b", "of another namespace")}
    deletions: list[Raw] = []

    def handle(raw: Mapping[str, Any], *, deleted: bool) -> None:
        if raw["metadata"]["name"] == "invalid":
            raise ZeroDivisionError
        if deleted:
            deletions.append(dict(raw["metadata"]))

    api, synced = ApiServer(), asyncio.Event()
    api.put(PODS, item("invalid"))
    api.put(PODS, item("there"))
    informing = asyncio.create_task(
        run_informer(InProcessKube(api), Informer(PODS, handle, lambda: known, ("a",)), "a", synced)
    )
    await asyncio.wait_for(synced.wait(), 60)
    informing.cancel()
    version = api.page_of(PODS.path("a"))["metadata"]["resourceVersion"]
    assert deletions == [{"namespace": "a", "name": "gone", "resourceVersion": version}]


async def test_metrics_drop_a_benchmark_that_an_own_write_found_deleted() -> None:
    """It is in no cache then. If the watch missed the deletion, /metrics would always contain the benchmark."""
    context = context_of(ApiServer())
    informer = next(each for each in handled(context, Advisor(context)) if each.resource == RESOURCE)
    informer.handler(item("gone"), deleted=False)
    context.objects.observe_write(RESOURCE, None, ("a", "gone"))
    lists = ListObserver([informer], "")
    lists.observe(URL(f"https://h{RESOURCE.path(None)}"), {"metadata": {"resourceVersion": "7"}, "items": []})
    assert not list(context.results.newest_runs())


@pytest.mark.parametrize("full", [True, False])
async def test_deleted_result_adds_queued_benchmarks_when_storage_was_full(full: bool) -> None:
    limits = '{"storedBytes": "1500"}' if full else "{}"
    context = context_of(ApiServer(), TIERBENCH_LIMITS=limits)
    informer = next(each for each in reflected(context, Advisor(context)) if each.resource == RESULTS)
    queued = (KIND, "a", "queued")
    event = context.workqueue.event(queued)
    context.queue.enqueue(queued, Wait(START, frozenset({"node"})))
    for name in ("one", "two"):
        informer.handler(raw_result(name, "files", 1), deleted=False)
    assert context.storage_full == full
    informer.handler(item("one"), deleted=True)
    assert (context.storage_full, event.is_set()) == (False, full)
    stored = context.metrics.registry.get_sample_value("tierbench_stored_bytes")
    assert stored == context.results.stored_bytes == 1000


def run_of(number: int, *, ended: bool) -> Raw:
    run = {"number": number, "startTime": "2026-11-21T00:00:00Z"}
    return {"run": run | ({"completionTime": "2026-11-21T01:00:00Z"} if ended else {})}


async def test_advices_are_due_when_a_run_ends_and_not_after_each_case() -> None:
    """Otherwise, thousands of advices would be answered again after each case."""
    context, added = context_of(ApiServer()), list[str | None]()
    advisor = Advisor(context)
    advisor.add_all = added.append  # type: ignore[assignment,method-assign]
    results = next(each for each in reflected(context, advisor) if each.resource == RESULTS)
    benchmarks = next(each for each in handled(context, advisor) if each.resource == RESOURCE)
    files = item("files")
    benchmarks.handler({**files, "status": run_of(1, ended=False)}, deleted=False)
    results.handler(raw_result("one", "files", 1), deleted=False)
    assert added == []
    benchmarks.handler({**files, "status": run_of(1, ended=True)}, deleted=False)
    assert added == ["a"]
    results.handler(raw_result("two", "files", 1), deleted=False)
    assert added == ["a", "a"], "the watch of results may be late"
    results.handler(item("one"), deleted=True)
    assert added == ["a", "a", "a"]
