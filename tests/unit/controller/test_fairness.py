"""Benchmarks of several namespaces take turns on the same nodes, whatever their schedules ask for."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.apiserver.server import ApiServer, Raw
from tests.unit.controller.operator import context_of, relist, settings_of
from tests.unit.controller.reconciling import RESOURCE
from tests.unit.domain.world import benchmark, node, node_class
from tierbench.controller.executor import NodeTakenError
from tierbench.controller.reconciler import FINALIZER, BenchmarkReconciler
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
        self.reconcilers: list[BenchmarkReconciler] = []
        self.runs: list[str] = []
        """The benchmarks that held the nodes, in order."""

    def create(self, name: str, namespace: str = "default", classes: Sequence[str] = ("cloud",), **policy: Any) -> None:
        """Creates a benchmark."""
        spec = benchmark(servers={"nodeClasses": classes}, fileSizes=["1Mi"], runPolicy=policy).to_json()["spec"]
        uid = f"uid-{name}"
        metadata = {"name": name, "namespace": namespace, "uid": uid, "generation": 1, "finalizers": [FINALIZER]}
        self.api.put(RESOURCE, {"metadata": metadata, "spec": spec})
        owner = Owner("FileTransferBenchmark", namespace, name, uid)
        self.reconcilers.append(BenchmarkReconciler(self.context, RESOURCE, owner))

    async def reconcile(self) -> None:
        """Reconciles all benchmarks until those that can have nodes have them."""
        for _ in range(4):
            for reconciler in self.reconcilers:
                relist(self.api, self.context)
                with suppress(NodeTakenError):
                    await reconciler.reconcile()

    async def pass_runs(self, number: int) -> None:
        """Lets this many runs begin. Each takes 90 seconds, so a schedule is due again while the next one measures."""
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
async def test_schedules_of_older_benchmarks_do_not_keep_a_younger_one_from_its_nodes(namespace: str) -> None:
    cluster = Cluster()
    for name in ("a1", "a2"):
        cluster.create(name, **EVERY_MINUTE)
    await cluster.pass_runs(3)
    cluster.create("b", namespace)
    await cluster.pass_runs(10)
    assert "b" in cluster.runs[3:6], cluster.runs


async def test_benchmark_that_comes_later_takes_no_free_node_of_one_that_waits_for_another() -> None:
    """Otherwise a stream of small benchmarks would keep a large one from its nodes without end."""
    cluster = Cluster()
    time = format_micro_time(cluster.api.now())
    held = {"holderIdentity": "elsewhere/other/uid-9", "acquireTime": time, "renewTime": time}
    metadata = {"name": "j1", "namespace": LEASES_OF}
    cluster.api.put(LEASES, {"metadata": metadata, "spec": {**held, "leaseDurationSeconds": 3600}})
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
