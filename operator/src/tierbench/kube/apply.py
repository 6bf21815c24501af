"""Does what a decision asks for. Every action is safe to do twice."""

import logging
from typing import Any

from tierbench.api.model import API_VERSION
from tierbench.api.result import BenchmarkResult
from tierbench.api.trace import BenchmarkTrace
from tierbench.domain.actions import (
    AcquireLeases,
    Action,
    Create,
    CreateCredentials,
    DeleteBenchmark,
    DeleteJob,
    DeleteResult,
    DeleteServer,
    DeleteStrimziObject,
    DropFinalizers,
    Event,
    ReleaseLeases,
    SaveResult,
    SaveTrace,
)
from tierbench.kube.client import (
    CONFIG_MAPS,
    JOBS,
    PODS,
    RESULTS,
    SECRETS,
    SERVICES,
    TRACES,
    VOLUME_CLAIMS,
    ApiError,
    ConflictError,
    Kube,
    NotFoundError,
    ResourceType,
    type_of,
)
from tierbench.kube.credentials import fill
from tierbench.kube.events import post
from tierbench.kube.leases import acquire, release
from tierbench.workloads.names import Owner
from tierbench.workloads.workload import Manifest

_logger = logging.getLogger(__name__)


class Executor:
    """Carries out the actions of one benchmark."""

    def __init__(self, kube: Kube, owner: Owner, resource: ResourceType, holder: str, lease_namespace: str) -> None:
        self._kube = kube
        self._owner = owner
        self._resource = resource
        self._holder = holder
        self._lease_namespace = lease_namespace

    async def carry_out(self, action: Action) -> None:  # noqa: PLR0912 (one branch an action)
        """One action. Raises NodeTakenError, ConflictError or ApiError; then the rest must wait for the next pass."""
        kube, namespace = self._kube, self._owner.namespace
        match action:
            case AcquireLeases(nodes, until):
                await acquire(kube, self._lease_namespace, self._holder, nodes, until)
            case ReleaseLeases(nodes):
                await release(kube, self._lease_namespace, self._holder, nodes)
            case Create(manifests):
                for manifest in manifests:
                    await self._create(manifest)
            case CreateCredentials(credentials):
                await self._create(fill(credentials))
            case DeleteServer(name):
                await self._delete_server(name)
            case DeleteStrimziObject(api_version, kind, name):
                await kube.delete(type_of(api_version, kind), namespace, name)
            case DropFinalizers(api_version, kind, name):
                await kube.drop_finalizers(type_of(api_version, kind), namespace, name)
            case DeleteJob(name):
                await kube.delete(JOBS, namespace, name)
            case SaveResult():
                await self._save(RESULTS, BenchmarkResult.KIND.kind, action)
            case SaveTrace():
                await self._save(TRACES, BenchmarkTrace.KIND.kind, action)
            case DeleteResult(name):
                await kube.delete(TRACES, namespace, name)
                await kube.delete(RESULTS, namespace, name)
            case DeleteBenchmark():
                await kube.delete(self._resource, namespace, self._owner.name)

    async def _create(self, manifest: Manifest) -> None:
        try:
            kind = type_of(manifest["apiVersion"], manifest["kind"])
            await self._kube.create(kind, self._owner.namespace, manifest)
        except NotFoundError as error:
            # The type or the namespace, not the benchmark: whose loop would end.
            raise ApiError(error.status, error.reason, error.message) from error
        except ConflictError:
            _logger.debug("%s %s exists already", manifest["kind"], manifest["metadata"]["name"])

    async def _delete_server(self, name: str) -> None:
        for kind in (PODS, SERVICES, CONFIG_MAPS, SECRETS, VOLUME_CLAIMS):
            await self._kube.delete(kind, self._owner.namespace, name)
        await self._kube.delete(SERVICES, self._owner.namespace, f"{name}-agent")

    async def _save(self, resource: ResourceType, kind: str, action: SaveResult | SaveTrace) -> None:
        head: dict[str, Any] = {"apiVersion": API_VERSION, "kind": kind}
        namespace = self._owner.namespace
        name = {"name": action.name, "namespace": namespace}
        status = {**head, "metadata": name, "status": action.status.to_json()}
        try:
            await self._kube.apply_status(resource, namespace, status)
        except NotFoundError:
            metadata = self._owner.metadata(action.name, {})
            await self._kube.create(resource, namespace, {**head, "metadata": metadata, "spec": action.spec.to_json()})
            await self._kube.apply_status(resource, namespace, status)

    async def post(self, event: Event) -> None:
        """An event on the benchmark, for `kubectl describe`."""
        await post(self._kube, self._owner, event)
