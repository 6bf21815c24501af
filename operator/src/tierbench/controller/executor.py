"""Carries out the actions of a decision. Each action can be carried out twice without harm."""

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from tierbench.api.model import API_VERSION
from tierbench.api.result import RESULTS, TRACES, BenchmarkResult, BenchmarkTrace
from tierbench.controller.context import ObjectCaches
from tierbench.controller.credentials import fill
from tierbench.domain.decision import (
    AcquireLeases,
    Action,
    ClusterState,
    Create,
    CreateCredentials,
    DeleteBenchmark,
    DeleteJob,
    DeleteProviderObject,
    DeleteResult,
    DeleteServer,
    ReleaseLeases,
    RemoveFinalizers,
    SaveResult,
    SaveTrace,
)
from tierbench.domain.views import lease_view
from tierbench.kube.client import ApiError, ConflictError, Kube, NotFoundError
from tierbench.kube.meta import (
    CONFIG_MAPS,
    JOBS,
    LEASES,
    NETWORK_POLICIES,
    PODS,
    SECRETS,
    SERVICES,
    VOLUME_CLAIMS,
    ResourceType,
    format_micro_time,
    type_of,
)
from tierbench.workloads.workload import LABEL_RUN, Manifest, inherited_labels, reference

_RESULT: Final = BenchmarkResult.KIND.kind
# The operator may not list these types. Their names show which benchmark they belong to.
_NEVER_LISTED: Final = frozenset({"ConfigMap", "Secret", "PersistentVolumeClaim", "NetworkPolicy"})
_CONFLICT: Final = 409
_logger = logging.getLogger(__name__)


class NameConflictError(ApiError):
    """An object that the benchmark does not own has the name of one that it needs."""

    def __init__(self, kind: str, name: str) -> None:
        message = (
            f"{kind} {name} exists already and is not this benchmark's: delete it, or give one of them another name"
        )
        super().__init__(_CONFLICT, "Occupied", message)


class NodeTakenError(Exception):
    """Another benchmark holds the Lease of a node."""


class Executor:
    """Carries out the actions of one benchmark, on the objects that it owns by UID.

    Its labels are copied to its results. A result that has changed since it was observed raises ConflictError.
    """

    def __init__(
        self,
        kube: Kube,
        objects: ObjectCaches,
        resource: ResourceType,
        observed: ClusterState,
        labels: Mapping[str, str],
        lease_namespace: str,
        results: Mapping[str, BenchmarkResult],
    ) -> None:
        self._kube = kube
        self._objects = objects
        self._resource = resource
        self._owner = observed.owner
        self._holder = observed.holder
        self._uids = dict(observed.uids)
        self._labels = labels
        self._lease_namespace = lease_namespace
        self._versions = {name: result.metadata.resource_version for name, result in results.items()}

    async def carry_out(self, action: Action) -> None:  # noqa: PLR0912 (one branch per action)
        """Carries out one action.

        Raises NodeTakenError, ConflictError or ApiError. The other actions then have to wait for the next reconcile.
        """
        kube, namespace = self._kube, self._owner.namespace
        match action:
            case AcquireLeases(nodes, until):
                await acquire_leases(kube, self._objects, self._lease_namespace, self._holder, nodes, until)
            case ReleaseLeases(nodes):
                await release_leases(kube, self._objects, self._lease_namespace, self._holder, nodes)
            case Create(manifests):
                for manifest in manifests:
                    await self._create(manifest)
            case CreateCredentials(credentials):
                await self._create(fill(credentials))
            case DeleteServer(name):
                await self._delete_server(name)
            case DeleteProviderObject(api_version, kind, name):
                await self._delete(type_of(api_version, kind), kind, name)
            case RemoveFinalizers(api_version, kind, name):
                if (uid := self._uids.get((kind, name))) is not None:
                    await kube.drop_finalizers(type_of(api_version, kind), namespace, name, uid)
            case DeleteJob(name):
                await self._delete(JOBS, "Job", name)
            case SaveResult():
                await self._save_result(action)
            case SaveTrace():
                await self._save_trace(action)
            case DeleteResult(name):
                await self._delete(RESULTS, _RESULT, name)
            case DeleteBenchmark():
                await kube.delete(self._resource, namespace, self._owner.name, {"uid": self._owner.uid})

    async def _create(self, manifest: Manifest) -> None:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        resource = type_of(manifest["apiVersion"], kind)
        try:
            self._objects.observe_write(resource, await self._kube.create(resource, self._owner.namespace, manifest))
        except ConflictError:
            if kind not in _NEVER_LISTED and (kind, name) not in self._uids:
                raise NameConflictError(kind, name) from None
            _logger.debug("object exists already", extra={"kind": kind, "object": name})

    async def _delete(self, resource: ResourceType, kind: str, name: str) -> None:
        """Deletes an object, if the benchmark owns it."""
        uid = self._uids.get((kind, name))
        if uid is not None:
            left = await self._kube.delete(resource, self._owner.namespace, name, {"uid": uid})
            self._objects.observe_write(resource, left, (self._owner.namespace, name))

    async def _delete_server(self, name: str) -> None:
        """Deletes a server, its Services last: they show the next operator that there may be more to delete."""
        await self._delete(PODS, "Pod", name)
        for resource in (CONFIG_MAPS, SECRETS, VOLUME_CLAIMS, NETWORK_POLICIES):
            await self._kube.delete(resource, self._owner.namespace, self._owner.attached(name))
        for service in (name, f"{name}-agent"):
            await self._delete(SERVICES, "Service", service)

    async def _save_result(self, action: SaveResult) -> None:
        namespace, name = self._owner.namespace, action.name
        uid = self._uids.get((_RESULT, name))
        if uid is None:
            labels = {**inherited_labels(self._labels), LABEL_RUN: str(action.spec.run)}
            metadata = self._owner.metadata(name, labels)
            body = {"apiVersion": API_VERSION, "kind": _RESULT, "metadata": metadata, "spec": action.spec.to_json()}
            try:
                created = await self._kube.create(RESULTS, namespace, body)
            except ConflictError:
                raise NameConflictError(_RESULT, name) from None
            self._objects.observe_write(RESULTS, created)
            uid = self._uids[_RESULT, name] = created["metadata"]["uid"]
            self._versions[name] = created["metadata"]["resourceVersion"]
        applied = {"name": name, "namespace": namespace, "uid": uid}
        if version := self._versions.get(name):
            applied["resourceVersion"] = version
        status = {"apiVersion": API_VERSION, "kind": _RESULT, "metadata": applied, "status": action.status.to_json()}
        written = await self._kube.apply_status(RESULTS, namespace, status)
        self._objects.observe_write(RESULTS, written)
        self._versions[name] = written["metadata"]["resourceVersion"]

    async def _save_trace(self, action: SaveTrace) -> None:
        """Writes a trace, which the result of the same name owns."""
        namespace, kind = self._owner.namespace, BenchmarkTrace.KIND.kind
        applied = {"name": action.name, "namespace": namespace}
        status = {"apiVersion": API_VERSION, "kind": kind, "metadata": applied, "status": action.status.to_json()}
        try:
            await self._kube.apply_status(TRACES, namespace, status)
        except NotFoundError:
            metadata = self._owner.metadata(action.name, {})
            metadata["ownerReferences"] = [reference(_RESULT, action.name, self._uids[_RESULT, action.name])]
            body = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": action.spec.to_json()}
            await self._kube.create(TRACES, namespace, body)
            await self._kube.apply_status(TRACES, namespace, status)


async def acquire_leases(
    kube: Kube, objects: ObjectCaches, namespace: str, holder: str, nodes: Iterable[str], until: datetime
) -> None:
    """Acquires or renews the Leases of all nodes, or none: raises NodeTakenError if another benchmark holds one."""
    taken: list[str] = []
    for node in sorted(nodes):
        try:
            if await _acquire_one(kube, objects, namespace, holder, node, until):
                taken.append(node)
        except (ConflictError, NodeTakenError) as error:
            await release_leases(kube, objects, namespace, holder, taken)
            raise NodeTakenError(f"node {node} was taken by another benchmark") from error


async def release_leases(kube: Kube, objects: ObjectCaches, namespace: str, holder: str, nodes: Iterable[str]) -> None:
    """Deletes the Leases of these nodes that `holder` holds."""
    for node in nodes:
        try:
            found = await kube.get(LEASES, namespace, node)
            if lease_view(found).holder == holder:
                version = found["metadata"]["resourceVersion"]
                await kube.delete(LEASES, namespace, node, {"resourceVersion": version})
                objects[LEASES].remove((namespace, node))
        except (NotFoundError, ConflictError):
            continue


async def _acquire_one(
    kube: Kube, objects: ObjectCaches, namespace: str, holder: str, node: str, until: datetime
) -> bool:
    """Returns whether the Lease is newly acquired."""
    now = kube.now()
    try:
        found = await kube.get(LEASES, namespace, node)
    except NotFoundError:
        created = await kube.create(LEASES, namespace, _lease_body(node, namespace, holder, now, now, until))
        objects.observe_write(LEASES, created)
        return True
    lease = lease_view(found)
    if lease.holder == holder and lease.expires >= until:
        return False
    if lease.holder not in {"", holder} and lease.expires > now:
        raise NodeTakenError(node)
    acquired = lease.acquired if lease.holder == holder else now
    body = _lease_body(node, namespace, holder, acquired, now, until)
    metadata = {"name": node, "namespace": namespace, "resourceVersion": found["metadata"]["resourceVersion"]}
    objects.observe_write(LEASES, await kube.replace(LEASES, namespace, {**body, "metadata": metadata}))
    return lease.holder != holder


def _lease_body(
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
