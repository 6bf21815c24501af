"""Does what a decision asks for. Every action is safe to do twice."""

import logging
from collections.abc import Mapping
from typing import Final

from tierbench.api.model import API_VERSION
from tierbench.api.result import BenchmarkResult, BenchmarkTrace
from tierbench.domain.actions import (
    AcquireLeases,
    Action,
    Create,
    CreateCredentials,
    DeleteBenchmark,
    DeleteJob,
    DeleteProviderObject,
    DeleteResult,
    DeleteServer,
    Event,
    ReleaseLeases,
    RemoveFinalizers,
    SaveResult,
    SaveTrace,
)
from tierbench.domain.observed import ClusterState
from tierbench.kube.cache import Objects
from tierbench.kube.client import (
    CONFIG_MAPS,
    JOBS,
    NETWORK_POLICIES,
    PODS,
    RESULTS,
    SECRETS,
    SERVICES,
    TRACES,
    VOLUME_CLAIMS,
    ConflictError,
    Kube,
    NotFoundError,
    OccupiedError,
    ResourceType,
    type_of,
)
from tierbench.kube.credentials import fill
from tierbench.kube.events import post
from tierbench.kube.leases import acquire, release
from tierbench.workloads.names import passed_on, reference
from tierbench.workloads.workload import Manifest

_RESULT: Final = BenchmarkResult.KIND.kind
# The operator may not read these: their names tell whose they are.
_NEVER_LISTED: Final = frozenset({"ConfigMap", "Secret", "PersistentVolumeClaim", "NetworkPolicy"})
_logger = logging.getLogger(__name__)


class Executor:
    """Carries out the actions of one benchmark, on what is its own by UID. Its labels go to its results, which are
    written as they were seen: `results` that have changed since are another operator's work."""

    def __init__(
        self,
        kube: Kube,
        objects: Objects,
        resource: ResourceType,
        here: ClusterState,
        labels: Mapping[str, str],
        lease_namespace: str,
        results: Mapping[str, BenchmarkResult],
    ) -> None:
        self._kube = kube
        self._objects = objects
        self._resource = resource
        self._owner = here.owner
        self._holder = here.holder
        self._uids = dict(here.uids)
        self._labels = labels
        self._lease_namespace = lease_namespace
        self._versions = {name: result.metadata.resource_version for name, result in results.items()}

    async def carry_out(self, action: Action) -> None:  # noqa: PLR0912 (one branch an action)
        """One action. Raises NodeTakenError, ConflictError or ApiError; then the rest must wait for the next pass."""
        kube, namespace = self._kube, self._owner.namespace
        match action:
            case AcquireLeases(nodes, until):
                await acquire(kube, self._objects, self._lease_namespace, self._holder, nodes, until)
            case ReleaseLeases(nodes):
                await release(kube, self._objects, self._lease_namespace, self._holder, nodes)
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
            self._objects.written(resource, await self._kube.create(resource, self._owner.namespace, manifest))
        except ConflictError:
            if kind not in _NEVER_LISTED and (kind, name) not in self._uids:
                raise OccupiedError(kind, name) from None
            _logger.debug("%s %s exists already", kind, name)

    async def _delete(self, resource: ResourceType, kind: str, name: str) -> None:
        """Deletes an object of the benchmark's own; others are left alone."""
        uid = self._uids.get((kind, name))
        if uid is not None:
            left = await self._kube.delete(resource, self._owner.namespace, name, {"uid": uid})
            self._objects.written(resource, left, (self._owner.namespace, name))

    async def _delete_server(self, name: str) -> None:
        """Its Services last: they tell the next operator, if this one is killed, that there is more of the server."""
        await self._delete(PODS, "Pod", name)
        for resource in (CONFIG_MAPS, SECRETS, VOLUME_CLAIMS, NETWORK_POLICIES):
            await self._kube.delete(resource, self._owner.namespace, self._owner.attached(name))
        for service in (name, f"{name}-agent"):
            await self._delete(SERVICES, "Service", service)

    async def _save_result(self, action: SaveResult) -> None:
        namespace, name = self._owner.namespace, action.name
        uid = self._uids.get((_RESULT, name))
        if uid is None:
            metadata = self._owner.metadata(name, passed_on(self._labels))
            body = {"apiVersion": API_VERSION, "kind": _RESULT, "metadata": metadata, "spec": action.spec.to_json()}
            try:
                created = await self._kube.create(RESULTS, namespace, body)
            except ConflictError:
                raise OccupiedError(_RESULT, name) from None
            self._objects.written(RESULTS, created)
            uid = self._uids[_RESULT, name] = created["metadata"]["uid"]
            self._versions[name] = created["metadata"]["resourceVersion"]
        head = {"name": name, "namespace": namespace, "uid": uid}
        if version := self._versions.get(name):
            head["resourceVersion"] = version
        status = {"apiVersion": API_VERSION, "kind": _RESULT, "metadata": head, "status": action.status.to_json()}
        written = await self._kube.apply_status(RESULTS, namespace, status)
        self._objects.written(RESULTS, written)
        self._versions[name] = written["metadata"]["resourceVersion"]

    async def _save_trace(self, action: SaveTrace) -> None:
        """A trace belongs to the result of its name, and goes with it."""
        namespace, kind = self._owner.namespace, BenchmarkTrace.KIND.kind
        head = {"name": action.name, "namespace": namespace}
        status = {"apiVersion": API_VERSION, "kind": kind, "metadata": head, "status": action.status.to_json()}
        try:
            await self._kube.apply_status(TRACES, namespace, status)
        except NotFoundError:
            metadata = self._owner.metadata(action.name, {})
            metadata["ownerReferences"] = [reference(_RESULT, action.name, self._uids[_RESULT, action.name])]
            body = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": action.spec.to_json()}
            await self._kube.create(TRACES, namespace, body)
            await self._kube.apply_status(TRACES, namespace, status)

    async def post(self, event: Event) -> None:
        """An event on the benchmark, for `kubectl describe`."""
        await post(self._kube, self._owner, event)
