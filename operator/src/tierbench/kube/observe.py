"""Reads everything that one pass over a benchmark decides from."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tierbench.domain.children import UNREADABLE, Children, Family
from tierbench.domain.observed import Surroundings
from tierbench.domain.strimzi import StrimziView
from tierbench.domain.views import LeaseView, lease_view
from tierbench.kube.client import JOBS, LEASES, PODS, RESULTS, SERVICES, Kube
from tierbench.kube.cluster import ClusterView
from tierbench.kube.strimzi import list_strimzi
from tierbench.workloads.names import LABEL_ROLE, ROLE_SERVER, Owner

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Seen:
    """What is in the cluster of one benchmark: its children, and they with all that they depend on."""

    children: Children
    surroundings: Surroundings


async def look_around(
    kube: Kube, owner: Owner, family: Family, cluster: ClusterView, lease_namespace: str, *, strimzi: bool
) -> Seen:
    """Children and Leases as the API server has them now; `strimzi` asks for Strimzi's objects too."""
    namespace, labels = owner.namespace, owner.selector
    pods, jobs, services, results, leases, (by_strimzi, objects) = await asyncio.gather(
        kube.list(PODS, namespace, labels),
        kube.list(JOBS, namespace, labels),
        kube.list(SERVICES, namespace, {**labels, LABEL_ROLE: ROLE_SERVER}),
        kube.list(RESULTS, namespace, labels),
        kube.list(LEASES, lease_namespace),
        list_strimzi(kube, owner) if strimzi else _none(),
    )
    listed = {"Pod": pods, "Job": jobs, "Service": services, "BenchmarkResult": results, **objects}
    children = family.sort(listed)
    surroundings = Surroundings(
        owner=owner,
        nodes=dict(cluster.nodes),
        leases={lease.node: lease for lease in _leases(leases)},
        pods=children.pods,
        jobs=children.jobs,
        services=children.services,
        strimzi=StrimziView(by_strimzi.installed, by_strimzi.version, children.strimzi),
        uids=children.uids,
    )
    return Seen(children, surroundings)


async def _none() -> tuple[StrimziView, dict[str, list[dict[str, Any]]]]:
    return StrimziView(), {}


def _leases(raws: Iterable[Mapping[str, Any]]) -> Iterable[LeaseView]:
    for raw in raws:
        try:
            yield lease_view(raw)
        except UNREADABLE as error:
            _logger.warning("Lease %s cannot be understood: %s", raw["metadata"]["name"], error)
