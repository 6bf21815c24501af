"""Leases of benchmarks that are gone are released once their pods are gone, too."""

from typing import Any

import pytest

from tests.unit.apiserver.server import ApiServer, Raw
from tests.unit.controller.operator import context_of, relist
from tests.unit.controller.reconciling import RESOURCE
from tests.unit.domain.objects import KIND
from tierbench.controller.context import Context
from tierbench.controller.executor import release_orphans
from tierbench.kube.client import ApiError
from tierbench.kube.meta import JOBS, LEASES, PODS, format_micro_time
from tierbench.workloads.workload import LABEL_BENCHMARK, LABEL_KIND

LABELS = {LABEL_KIND: KIND, LABEL_BENCHMARK: "demo"}


class Operator:
    """An operator and the Lease of node c1, which a benchmark holds."""

    def __init__(self, holder: str = "default/demo/uid-1", **environment: str) -> None:
        self.api = ApiServer()
        self.context: Context = context_of(self.api, **environment)
        self.before = frozenset[tuple[str, str]]()
        self.put_lease("c1", holder)

    def put_lease(self, node: str, holder: str) -> None:
        time = format_micro_time(self.api.now())
        spec = {"holderIdentity": holder, "acquireTime": time, "renewTime": time, "leaseDurationSeconds": 3600}
        namespace = self.context.settings.lease_namespace
        self.api.put(LEASES, {"metadata": {"name": node, "namespace": namespace}, "spec": spec})

    def put(self, resource: Any, name: str, uid: str, controller: str = "") -> None:
        owners = [{"uid": controller, "controller": True}] if controller else []
        metadata = {"name": name, "uid": uid, "labels": LABELS, "ownerReferences": owners}
        self.api.put(resource, {"metadata": metadata, "spec": {}, "status": {}})

    async def check(self, times: int = 3) -> list[str]:
        """Checks for orphaned Leases several times. Returns the nodes that are held."""
        for _ in range(times):
            relist(self.api, self.context)
            self.before = await release_orphans(self.context, self.before)
        return [raw["metadata"]["name"] for raw in self.api.matching(LEASES.path(None))]


async def test_nodes_of_a_deleted_benchmark_are_released_at_the_second_check() -> None:
    operator = Operator()
    operator.put(RESOURCE, "demo", "uid-2")
    assert await operator.check(times=1) == ["c1"]
    assert await operator.check(times=1) == []


@pytest.mark.parametrize("resource", [JOBS, PODS])
async def test_nodes_are_held_while_there_are_jobs_or_pods_of_the_benchmark(resource: Any) -> None:
    operator = Operator()
    operator.put(resource, "client", "uid-job", controller="uid-1")
    assert await operator.check() == ["c1"]
    operator.api.force_delete(resource, "client")
    assert await operator.check() == []


async def test_pods_of_a_recreated_benchmark_hold_no_nodes_of_the_deleted_one() -> None:
    operator = Operator()
    operator.put(RESOURCE, "demo", "uid-2")
    operator.put(JOBS, "client", "uid-job", controller="uid-2")
    operator.put(PODS, "client-x", "uid-pod", controller="uid-job")
    assert await operator.check() == []


@pytest.mark.parametrize(
    ("holder", "environment"),
    [
        ("default/demo/uid-2", {}),
        ("elsewhere/demo/uid-1", {"TIERBENCH_WATCH_NAMESPACES": "default"}),
        ("tierbench-0", {}),
    ],
)
async def test_leases_of_existing_benchmarks_and_of_other_holders_are_kept(holder: str, environment: Raw) -> None:
    operator = Operator(holder, **environment)
    operator.put(RESOURCE, "demo", "uid-2")
    assert await operator.check() == ["c1"]


async def test_nodes_that_another_benchmark_has_acquired_are_not_released() -> None:
    operator = Operator()
    await operator.check(times=1)
    relist(operator.api, operator.context)
    operator.put_lease("c1", "elsewhere/other/uid-9")
    assert await operator.check(times=1) == ["c1"]


async def test_failed_release_is_retried() -> None:
    operator = Operator()
    operator.api.refuse["DELETE", ""] = ApiError(500, "InternalError", "no")
    assert await operator.check() == ["c1"]
    operator.api.refuse.clear()
    assert await operator.check(times=1) == []
