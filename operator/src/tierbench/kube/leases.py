"""Exclusive use of nodes: one Lease a node, in a namespace that all releases share."""

from collections.abc import Iterable
from datetime import datetime

from tierbench.api.model import format_micro_time
from tierbench.domain.views import lease_view
from tierbench.kube.cache import Objects
from tierbench.kube.client import LEASES, ConflictError, Kube, NotFoundError


class NodeTakenError(Exception):
    """Somebody else was faster."""


def _body(
    node: str, namespace: str, holder: str, acquired: datetime, now: datetime, until: datetime
) -> dict[str, object]:
    seconds = max(1, round((until - now).total_seconds()))
    spec = {
        "holderIdentity": holder,
        "acquireTime": format_micro_time(acquired),
        "renewTime": format_micro_time(now),
        "leaseDurationSeconds": seconds,
    }
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": node, "namespace": namespace},
        "spec": spec,
    }


async def acquire(
    kube: Kube, objects: Objects, namespace: str, holder: str, nodes: Iterable[str], until: datetime
) -> None:
    """Takes or renews the Leases of all nodes. Raises NodeTakenError, with none taken anew, if one is not to be had."""
    taken: list[str] = []
    for node in sorted(nodes):
        try:
            if await _acquire_one(kube, objects, namespace, holder, node, until):
                taken.append(node)
        except (ConflictError, NodeTakenError) as error:
            await release(kube, objects, namespace, holder, taken)
            raise NodeTakenError(f"node {node} was taken by another benchmark") from error


async def _acquire_one(kube: Kube, objects: Objects, namespace: str, holder: str, node: str, until: datetime) -> bool:
    """Whether it was taken anew."""
    now = kube.now()
    try:
        found = await kube.get(LEASES, namespace, node)
    except NotFoundError:
        created = await kube.create(LEASES, namespace, _body(node, namespace, holder, now, now, until))
        objects.written(LEASES, created)
        return True
    lease = lease_view(found)
    if lease.holder == holder and lease.expires >= until:
        return False
    if lease.holder not in {"", holder} and lease.expires > now:
        raise NodeTakenError(node)
    acquired = lease.acquired if lease.holder == holder else now
    body = _body(node, namespace, holder, acquired, now, until)
    metadata = {"name": node, "namespace": namespace, "resourceVersion": found["metadata"]["resourceVersion"]}
    objects.written(LEASES, await kube.replace(LEASES, namespace, {**body, "metadata": metadata}))
    return lease.holder != holder


async def release(kube: Kube, objects: Objects, namespace: str, holder: str, nodes: Iterable[str]) -> None:
    """Deletes the Leases of these nodes that `holder` has."""
    for node in nodes:
        try:
            found = await kube.get(LEASES, namespace, node)
            if lease_view(found).holder == holder:
                version = found["metadata"]["resourceVersion"]
                await kube.delete(LEASES, namespace, node, {"resourceVersion": version})
                objects[LEASES].forget((namespace, node))
        except (NotFoundError, ConflictError):
            continue
