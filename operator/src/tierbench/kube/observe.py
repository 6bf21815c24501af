"""Reads everything that one pass over a benchmark decides from."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tierbench.domain.children import UNREADABLE, Children, Family
from tierbench.domain.observed import Surroundings
from tierbench.domain.provided import ProviderApi
from tierbench.domain.views import LeaseView, Raw, lease_view
from tierbench.kube.client import JOBS, LEASES, PODS, RESULTS, SERVICES, Kube
from tierbench.kube.cluster import ClusterView
from tierbench.kube.provided import list_provided
from tierbench.workloads.names import LABEL_ROLE, ROLE_SERVER, Owner

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Seen:
    """What is in the cluster of one benchmark: its children, and they with all that they depend on. `without_pod` are
    its Jobs that should have one."""

    children: Children
    surroundings: Surroundings
    without_pod: tuple[Raw, ...]


async def look_around(
    kube: Kube, owner: Owner, family: Family, cluster: ClusterView, lease_namespace: str, apis: Sequence[ProviderApi]
) -> Seen:
    """Children and Leases as the API server has them now, those of other operators' `apis` among them."""
    namespace, labels = owner.namespace, owner.selector
    pods, jobs, services, results, leases, provided = await asyncio.gather(
        kube.list(PODS, namespace, labels),
        kube.list(JOBS, namespace, labels),
        kube.list(SERVICES, namespace, {**labels, LABEL_ROLE: ROLE_SERVER}),
        kube.list(RESULTS, namespace, labels),
        kube.list(LEASES, lease_namespace),
        asyncio.gather(*(list_provided(kube, owner, api) for api in apis)),
    )
    listed = {"Pod": pods, "Job": jobs, "Service": services, "BenchmarkResult": results}
    for _, objects in provided:
        listed |= objects
    children = family.sort(listed)
    surroundings = Surroundings(
        owner=owner,
        nodes=dict(cluster.nodes),
        leases={lease.node: lease for lease in _leases(leases)},
        pods=children.pods,
        jobs=children.jobs,
        services=children.services,
        provided={
            api.group: replace(found, objects=children.provided[api.group])
            for api, (found, _) in zip(apis, provided, strict=True)
        },
        uids=children.uids,
    )
    return Seen(children, surroundings, tuple(_without_pod(children, jobs, pods)))


def _without_pod(children: Children, jobs: Iterable[Raw], pods: Iterable[Raw]) -> Iterable[Raw]:
    under_way = {job.name for job in children.jobs if not job.finished and not job.deleting}
    owners = {item["uid"] for pod in pods for item in pod["metadata"].get("ownerReferences", ())}
    return (job for job in jobs if job["metadata"]["name"] in under_way and job["metadata"]["uid"] not in owners)


def _leases(raws: Iterable[Raw]) -> Iterable[LeaseView]:
    for raw in raws:
        try:
            yield lease_view(raw)
        except UNREADABLE as error:
            _logger.warning("Lease %s cannot be understood: %s", raw["metadata"]["name"], error)
