"""Benchmarks of several namespaces take turns on the same nodes, regardless of their schedules."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from typing import Any

import pytest

from tests.timeouts import TIMEOUT_FACTOR
from tests.unit.apiserver.server import ApiServer, Raw
from tests.unit.controller.operator import context_of, relist, settings_of
from tests.unit.controller.reconciling import RESOURCE
from tests.unit.domain.objects import benchmark, node, node_class
from tierbench.controller.context import FINALIZER, restore_queue
from tierbench.controller.executor import NodeTakenError
from tierbench.controller.reconciler import BenchmarkReconciler
from tierbench.domain.results import BenchmarkKey as Key
from tierbench.kube.meta import LEASES, format_micro_time, format_time
from tierbench.workloads.workload import Owner

LEASES_OF = settings_of().lease_namespace
EVERY_MINUTE = {"schedule": "* * * * *"}


class Cluster:
    """Three nodes, an operator, and benchmarks that need the nodes c1 and u1, unless they name other classes."""

    def __init__(self) -> None:
        self.api = ApiServer()
        self.context = context_of(self.api)
        nodes = (node("c1", "cloud"), node("j1", "jetson"), node("u1", "user"))
        self.context.cluster.nodes = {one.name: one for one in nodes}
        self.context.cluster.classes = {name: node_class(name) for name in ("cloud", "jetson", "user")}
        self.owners: list[Owner] = []
        self.reconcilers: list[BenchmarkReconciler] = []
        self.runs: list[str] = []
        """The benchmarks that held the nodes, in order."""

    def create(self, name: str, namespace: str = "default", classes: Sequence[str] = ("cloud",), **policy: Any) -> None:
        """Creates a benchmark."""
        spec = benchmark(servers={"nodeClassNames": classes}, fileSizes=["1Mi"], runPolicy=policy).to_json()["spec"]
        uid = f"uid-{name}"
        metadata = {"name": name, "namespace": namespace, "uid": uid, "generation": 1, "finalizers": [FINALIZER]}
        self.api.put(RESOURCE, {"metadata": metadata, "spec": spec})
        owner = Owner("FileTransferBenchmark", namespace, name, uid)
        self.owners.append(owner)
        self.reconcilers.append(BenchmarkReconciler(self.context, RESOURCE, owner))

    def put_lease(self, node: str, holder: str) -> None:
        """Lets a benchmark of another release hold a node."""
        time = format_micro_time(self.api.now())
        held = {"holderIdentity": holder, "acquireTime": time, "renewTime": time, "leaseDurationSeconds": 3600}
        self.api.put(LEASES, {"metadata": {"name": node, "namespace": LEASES_OF}, "spec": held})

    def restart(self) -> None:
        """Replaces the operator with a new one."""
        before, self.context = self.context, context_of(self.api)
        self.context.cluster.nodes, self.context.cluster.classes = before.cluster.nodes, before.cluster.classes
        self.reconcilers = [BenchmarkReconciler(self.context, RESOURCE, owner) for owner in self.owners]
        relist(self.api, self.context)
        restore_queue(self.context)

    async def reconcile(self) -> None:
        """Reconciles all benchmarks until those that can have nodes have them."""
        for _ in range(4):
            for reconciler in self.reconcilers:
                relist(self.api, self.context)
                with suppress(NodeTakenError):
                    await reconciler.reconcile()

    async def start_runs(self, number: int) -> None:
        """Lets this many runs start. Each takes 90 seconds, so a schedule is due again while the next one measures."""
        until = len(self.runs) + number
        while len(self.runs) < until:
            for _ in range(3):
                self.api.ahead += timedelta(seconds=30)
                await self.reconcile()
            if (holder := self.holder()) is not None:
                self._end_run(*holder)
            await self.reconcile()
            if (holder := self.holder()) is not None:
                self.runs.append(holder[1])

    def holder(self) -> tuple[str, str] | None:
        """Returns namespace and name of the benchmark that holds the nodes."""
        holders = {lease["spec"]["holderIdentity"] for lease in self.api.matching(LEASES.path(None))}
        assert len(holders) <= 1
        namespace, name, _ = next(iter(holders), "//").split("/")
        return (namespace, name) if name else None

    @property
    def queue_length(self) -> float | None:
        """The metric of the number of queued benchmarks."""
        return self.context.metrics.registry.get_sample_value("tierbench_queue_length")

    def status(self, name: str, namespace: str) -> Raw:
        """Returns the status of a benchmark."""
        raw = self.api.get(RESOURCE, name, namespace)
        assert raw is not None
        found: Raw = raw["status"]
        return found

    def _end_run(self, namespace: str, name: str) -> None:
        """Ends a run as the operator does after its last trial."""
        for path in [path for path in self.api.objects if f"ft-{name}-r" in path or "/leases/" in path]:
            del self.api.objects[path]
        run: Raw = {**self.status(name, namespace)["run"], "completionTime": format_time(self.api.now())}
        self.api.change(RESOURCE, name, namespace, status={"phase": "Complete", "run": run})


@pytest.mark.parametrize("namespace", ["default", "other"])
async def test_schedules_of_older_benchmarks_do_not_starve_a_younger_one(namespace: str) -> None:
    cluster = Cluster()
    for name in ("a1", "a2"):
        cluster.create(name, **EVERY_MINUTE)
    await cluster.start_runs(3)
    cluster.create("b", namespace)
    await cluster.start_runs(10)
    assert "b" in cluster.runs[3:6], cluster.runs


async def test_later_benchmark_acquires_no_free_node_that_an_earlier_one_needs() -> None:
    """Otherwise, a stream of small benchmarks would starve a large one."""
    cluster = Cluster()
    cluster.put_lease("j1", "elsewhere/other/uid-9")
    cluster.create("large", classes=("cloud", "jetson"))
    await cluster.reconcile()
    cluster.create("small", "other")
    await cluster.reconcile()
    assert [one["metadata"]["name"] for one in cluster.api.matching(LEASES.path(None))] == ["j1"]
    condition = next(item for item in cluster.status("small", "other")["conditions"] if item["type"] == "Queued")
    assert condition["reason"] == "WaitsForTurn"
    cluster.api.force_delete(LEASES, "j1", LEASES_OF)
    await cluster.reconcile()
    assert cluster.holder() == ("default", "large")


async def test_restarted_operator_gives_no_free_node_to_a_later_benchmark() -> None:
    """The first benchmark that it reconciles is not the first in the queue."""
    cluster = Cluster()
    cluster.put_lease("j1", "elsewhere/other/uid-9")
    cluster.create("large", classes=("cloud", "jetson"))
    await cluster.reconcile()
    cluster.create("small", "other")
    await cluster.reconcile()
    cluster.restart()
    cluster.reconcilers.reverse()
    await cluster.reconcile()
    assert cluster.holder() == ("elsewhere", "other")


async def test_running_benchmark_is_reconciled_at_once_while_many_others_wait() -> None:
    cluster = Cluster()
    cluster.create("measures")
    await cluster.reconcile()
    assert cluster.holder() == ("default", "measures")
    async with AsyncExitStack() as stack:
        while not cluster.context.slots.locked():
            await stack.enter_async_context(cluster.context.slots)
        async with asyncio.timeout(10 * TIMEOUT_FACTOR):
            await cluster.reconcilers[0].reconcile()
        cluster.create("waits", "other")
        relist(cluster.api, cluster.context)
        waiting = asyncio.create_task(cluster.reconcilers[1].reconcile())
        await asyncio.sleep(0)
        assert not waiting.done()
    await waiting


async def test_deleted_benchmark_does_not_count_in_the_length_of_the_queue() -> None:
    cluster = Cluster()
    cluster.put_lease("c1", "elsewhere/other/uid-9")
    cluster.create("waits")
    await cluster.reconcile()
    assert cluster.queue_length == 1
    cluster.api.force_delete(RESOURCE, "waits")
    relist(cluster.api, cluster.context)
    await cluster.reconcilers[0].run()
    assert cluster.queue_length == 0


async def test_only_the_first_benchmark_is_reconciled_at_once_when_another_leaves_the_queue() -> None:
    """Otherwise, each of a thousand deleted benchmarks would first write which one is ahead of it."""
    cluster = Cluster()
    cluster.put_lease("c1", "elsewhere/other/uid-9")
    for name in ("first", "second", "third"):
        cluster.create(name)
    await cluster.reconcile()
    context = cluster.context
    keys = [(owner.kind, owner.namespace, owner.name) for owner in cluster.owners]
    events = [context.workqueue.event(key) for key in keys]

    def leave(key: Key) -> None:
        for event in events:
            event.clear()
        context.reconcile_moved(context.queue.leave(key, {}))

    leave(keys[1])
    assert not events[2].is_set()
    async with asyncio.timeout(10 * TIMEOUT_FACTOR):
        await events[2].wait()
    leave(keys[0])
    assert events[2].is_set()
