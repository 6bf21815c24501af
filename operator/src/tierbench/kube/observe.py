"""Everything that one pass over a benchmark decides from, as watches and own writes have told."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tierbench.domain.children import PARSE_ERRORS, Children, ControllerRefManager
from tierbench.domain.observed import ClusterState
from tierbench.domain.results import ResultMetadata
from tierbench.domain.views import LeaseView, ProviderApi, Raw, lease_view
from tierbench.kube.cache import Objects
from tierbench.kube.client import JOBS, LEASES, PODS, RESULTS, SERVICES, Kube
from tierbench.kube.cluster import ClusterView
from tierbench.kube.provided import list_provided
from tierbench.workloads.names import Owner

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Here:
    """What is in the cluster of one benchmark: its children, and they with all that they depend on. `without_pod` are
    its Jobs that should have one."""

    children: Children
    state: ClusterState
    without_pod: tuple[Raw, ...]


async def look_around(
    kube: Kube,
    objects: Objects,
    owner: Owner,
    ref_manager: ControllerRefManager,
    cluster: ClusterView,
    known_results: Iterable[ResultMetadata],
    apis: Sequence[ProviderApi],
) -> Here:
    """Children and Leases as they were last seen; of other operators' `apis`, which nobody watches, as they are now."""
    key = (owner.kind, owner.namespace, owner.name)
    provided = await asyncio.gather(*(list_provided(kube, owner, api) for api in apis))
    pods, jobs = objects[PODS].of(key), objects[JOBS].of(key)
    listed: dict[str, Sequence[Raw]] = {
        "Pod": pods,
        "Job": jobs,
        "Service": objects[SERVICES].of(key),
        "BenchmarkResult": objects[RESULTS].of(key),
    }
    for _, found in provided:
        listed |= found
    children = ref_manager.claim(listed, known_results)
    state = ClusterState(
        owner=owner,
        nodes=dict(cluster.nodes),
        leases={lease.node: lease for lease in _leases(objects[LEASES].all())},
        pods=children.pods,
        jobs=children.jobs,
        services=children.services,
        provider_states={
            api.group: replace(found, objects=children.provider_objects[api.group])
            for api, (found, _) in zip(apis, provided, strict=True)
        },
        uids=children.uids,
    )
    return Here(children, state, tuple(_without_pod(children, jobs, pods)))


def _without_pod(children: Children, jobs: Iterable[Raw], pods: Iterable[Raw]) -> Iterable[Raw]:
    under_way = {job.name for job in children.jobs if not job.finished and not job.deleting}
    owners = {item["uid"] for pod in pods for item in pod["metadata"].get("ownerReferences", ())}
    return (job for job in jobs if job["metadata"]["name"] in under_way and job["metadata"]["uid"] not in owners)


def _leases(raws: Iterable[Raw]) -> Iterable[LeaseView]:
    for raw in raws:
        try:
            yield lease_view(raw)
        except PARSE_ERRORS as error:
            _logger.warning("Lease %s cannot be understood: %s", raw["metadata"]["name"], error)
