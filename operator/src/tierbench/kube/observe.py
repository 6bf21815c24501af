"""Reads everything that one pass over a benchmark decides from."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from tierbench.api.benchmark import Benchmark
from tierbench.api.result import BenchmarkResult
from tierbench.domain.observed import Observed, Refusal
from tierbench.domain.strimzi import StrimziView
from tierbench.domain.views import job_view, lease_view, pod_view
from tierbench.kube.client import JOBS, LEASES, PODS, RESULTS, SERVICES, Kube
from tierbench.kube.cluster import ClusterView
from tierbench.kube.logs import LogFollower
from tierbench.kube.strimzi import see_strimzi
from tierbench.workloads.names import LABEL_ROLE, ROLE_CLIENT, ROLE_SERVER, Owner
from tierbench.workloads.strimzi import uses_strimzi
from tierbench.workloads.workload import Workload

_logger = logging.getLogger(__name__)


async def observe(
    kube: Kube,
    benchmark: Benchmark,
    owner: Owner,
    workload: Workload,
    cluster: ClusterView,
    logs: LogFollower,
    lease_namespace: str,
    ahead: tuple[str, ...],
    refusal: Refusal | None,
) -> Observed:
    """Children, results and Leases as the API server has them now, and what the clients have printed."""
    namespace, labels = owner.namespace, owner.selector
    raw_pods, raw_jobs, raw_services, raw_results, raw_leases = await asyncio.gather(
        kube.list(PODS, namespace, labels),
        kube.list(JOBS, namespace, labels),
        kube.list(SERVICES, namespace, {**labels, LABEL_ROLE: ROLE_SERVER}),
        kube.list(RESULTS, namespace, labels),
        kube.list(LEASES, lease_namespace),
    )
    pods = tuple(map(pod_view, raw_pods))
    return Observed(
        benchmark=benchmark,
        owner=owner,
        workload=workload,
        classes=dict(cluster.classes),
        nodes=dict(cluster.nodes),
        leases={lease.node: lease for lease in map(lease_view, raw_leases)},
        pods=pods,
        jobs=tuple(map(job_view, raw_jobs)),
        strimzi=await see_strimzi(kube, owner) if uses_strimzi(benchmark.spec) else StrimziView(),
        services={raw["metadata"]["name"]: raw for raw in raw_services},
        results=_results(raw_results),
        logs=await logs.read(pod for pod in pods if pod.role == ROLE_CLIENT),
        ahead=ahead,
        refusal=refusal,
    )


def _results(raw_results: Iterable[Mapping[str, Any]]) -> dict[str, BenchmarkResult]:
    """Results by name. One that somebody has damaged counts as not there, so it is written again."""
    results = {}
    for raw in raw_results:
        name = raw["metadata"]["name"]
        try:
            results[name] = BenchmarkResult.model_validate(raw)
        except ValidationError as error:
            _logger.warning("Result %s cannot be read, and is written anew: %s", name, error.errors()[0]["msg"])
    return results
