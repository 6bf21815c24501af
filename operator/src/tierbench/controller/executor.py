"""Carries out the actions of a decision, and releases the nodes of benchmarks that are gone.

Each action can be carried out twice without harm.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from tierbench.api.model import API_VERSION, Metadata, Model
from tierbench.api.record import RECORDS, BenchmarkRecord
from tierbench.api.result import LABEL_SUPERSEDED, RESULTS, BenchmarkResult
from tierbench.controller.context import Context, ObjectCaches, benchmark_of
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
    MarkSuperseded,
    ReleaseLeases,
    RemoveFinalizers,
    SaveRecord,
    SaveResult,
)
from tierbench.domain.views import PARSE_ERRORS, LeaseView, lease_view
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.client import REQUEST_ERRORS, ApiError, ConflictError, Kube, NotFoundError
from tierbench.kube.meta import (
    CONFIG_MAPS,
    JOBS,
    LEASES,
    NETWORK_POLICIES,
    PODS,
    SECRETS,
    SERVICES,
    VOLUME_CLAIMS,
    Raw,
    ResourceType,
    format_micro_time,
    is_owned_by,
    type_of,
)
from tierbench.workloads.workload import LABEL_RUN, Manifest, inherited_labels, reference

_RESULT: Final = BenchmarkResult.KIND.kind
_RECORD: Final = BenchmarkRecord.KIND.kind
# The operator may not list these types. Their names show which benchmark they belong to.
_NEVER_LISTED: Final = frozenset({"ConfigMap", "Secret", "PersistentVolumeClaim", "NetworkPolicy"})
_CONFLICT: Final = 409
_logger = logging.getLogger(__name__)
_PERIOD_SECONDS: Final = 10.0


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

    Its labels are copied to its results. A result or record that has changed since it was observed raises
    ConflictError. `records` has the records by name, and None for those that do not exist. It is kept current.
    `of_run` returns credentials that are the same in a run, by the UID of the benchmark and the number of the run.
    `sign` returns the Job of a client with the signature of its plan, if it needs one.
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
        records: dict[str, BenchmarkRecord | None],
        of_run: Callable[[tuple[str, int]], Mapping[str, bytes]] = lambda _: MappingProxyType({}),
        sign: Callable[[tuple[str, int], Manifest], Manifest] = lambda _, job: job,
    ) -> None:
        self._kube = kube
        self._objects = objects
        self._resource = resource
        self._owner = observed.owner
        self._holder = observed.holder
        self._uids = dict(observed.uids)
        self._labels = labels
        self._lease_namespace = lease_namespace
        self._of_run = of_run
        self._sign = sign
        self._records = records
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
                await self._create(fill(credentials, self._of_run(self._scope(credentials.manifest))))
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
            case MarkSuperseded(name):
                await self._label(name, {LABEL_SUPERSEDED: "true"})
            case SaveRecord():
                await self._save_record(action)
            case DeleteResult(name):
                await self._delete(RESULTS, _RESULT, name)
            case DeleteBenchmark():
                await kube.delete(self._resource, namespace, self._owner.name, {"uid": self._owner.uid})

    async def _create(self, manifest: Manifest) -> None:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        resource = type_of(manifest["apiVersion"], kind)
        if resource == JOBS:
            manifest = self._sign(self._scope(manifest), manifest)
            self._objects.expect_job((self._owner.namespace, name))
        try:
            self._objects.observe_write(resource, await self._kube.create(resource, self._owner.namespace, manifest))
        except ConflictError:
            if kind not in _NEVER_LISTED and (kind, name) not in self._uids:
                raise NameConflictError(kind, name) from None
            _logger.debug("object exists already", extra={"kind": kind, "object": name})

    def _scope(self, manifest: Manifest) -> tuple[str, int]:
        return self._owner.uid, int(manifest["metadata"]["labels"][LABEL_RUN])

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
            body = {**self._body(_RESULT, name, action.spec), "metadata": self._metadata(name, action.spec.run)}
            try:
                created = await self._kube.create(RESULTS, namespace, body)
            except ConflictError:
                raise NameConflictError(_RESULT, name) from None
            self._objects.observe_write(RESULTS, created)
            uid = self._uids[_RESULT, name] = created["metadata"]["uid"]
            self._versions[name] = created["metadata"]["resourceVersion"]
            self._records[name] = None
        applied = {"name": name, "namespace": namespace, "uid": uid}
        if version := self._versions.get(name):
            applied["resourceVersion"] = version
        # The metadata of the result and that of its record, each with the managed fields about as large again.
        metadata = 4 * len(json.dumps(self._metadata(name, action.spec.run)))
        stored = {"storedBytes": action.status.stored_bytes + metadata}
        status = {**self._body(_RESULT, name), "metadata": applied, "status": {**action.status.to_json(), **stored}}
        written = await self._kube.apply_status(RESULTS, namespace, status)
        self._objects.observe_write(RESULTS, written)
        self._versions[name] = written["metadata"]["resourceVersion"]

    async def _label(self, name: str, labels: Mapping[str, str]) -> None:
        """Adds labels to a result, if it exists."""
        namespace, uid = self._owner.namespace, self._uids.get((_RESULT, name))
        if uid is not None:
            written = await self._kube.merge(RESULTS, namespace, name, {"metadata": {"uid": uid, "labels": labels}})
            self._objects.observe_write(RESULTS, written)
            self._versions[name] = written["metadata"]["resourceVersion"]

    async def _save_record(self, action: SaveRecord) -> None:
        """Writes a record, which the result of the same name owns. After an error it is read again.

        A status that has not changed is not written: a record without trials is only created.
        """
        namespace, name = self._owner.namespace, action.name
        known = self._records.pop(name, None)
        if known is None:
            known = await self._create_record(action)
        if action.status == known.status:
            self._records[name] = known
            return
        applied = {"name": name, "namespace": namespace, "uid": known.metadata.uid}
        applied["resourceVersion"] = known.metadata.resource_version or ""
        status = {**self._body(_RECORD, name), "metadata": applied, "status": action.status.to_json()}
        written = await self._kube.apply_status(RECORDS, namespace, status)
        metadata = Metadata.model_validate(written["metadata"])
        self._records[name] = BenchmarkRecord(metadata=metadata, spec=action.spec, status=action.status)

    async def _create_record(self, action: SaveRecord) -> BenchmarkRecord:
        """Creates a record. One that a deleted result of the same name has left is deleted first."""
        namespace, name = self._owner.namespace, action.name
        metadata = self._metadata(name, action.spec.run)
        metadata["ownerReferences"] = [reference(_RESULT, name, self._uids[_RESULT, name])]
        body = {**self._body(_RECORD, name, action.spec), "metadata": metadata}
        try:
            return BenchmarkRecord.model_validate(await self._kube.create(RECORDS, namespace, body))
        except ConflictError:
            left = await self._kube.get(RECORDS, namespace, name)
            if is_owned_by(left, self._uids[_RESULT, name]):
                raise
            await self._kube.delete(RECORDS, namespace, name, {"uid": left["metadata"]["uid"]})
            return BenchmarkRecord.model_validate(await self._kube.create(RECORDS, namespace, body))

    def _metadata(self, name: str, run: int) -> dict[str, Any]:
        return self._owner.metadata(name, {**inherited_labels(self._labels), LABEL_RUN: str(run)})

    @staticmethod
    def _body(kind: str, name: str, spec: Model | None = None) -> dict[str, Any]:
        body: dict[str, Any] = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}}
        return body if spec is None else {**body, "spec": spec.to_json()}


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
    """Returns whether the Lease is newly acquired. An own one is renewed as it is cached, without reading it."""
    now, found = kube.now(), objects[LEASES].get((namespace, node))
    try:
        if found is None or lease_view(found).holder != holder:
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
    try:
        objects.observe_write(LEASES, await kube.replace(LEASES, namespace, {**body, "metadata": metadata}))
    except NotFoundError:
        raise NodeTakenError(node) from None
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


async def run_orphaned_leases(context: Context) -> None:
    """Releases Leases without an owner every ten seconds, without end. It reads caches only."""
    before = frozenset[tuple[str, str]]()
    while True:
        await asyncio.sleep(_PERIOD_SECONDS)
        before = await release_orphans(context, before)


async def release_orphans(context: Context, before: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """Releases the Leases that have no owner now and had none before. Returns node and holder of those without one.

    Two looks are needed because the watches of benchmarks, Jobs and pods may be apart for a moment.
    """
    found = frozenset(_orphans(context))
    with context.metrics.track("Leases of benchmarks that are gone"):
        for node, holder in sorted(found & before):
            extra = {"node": node, "holder": holder}
            try:
                await release_leases(context.kube, context.objects, context.settings.lease_namespace, holder, [node])
                _logger.warning("released a node whose benchmark is gone", extra=extra)
            except REQUEST_ERRORS as error:
                _logger.warning("cannot release a node; retrying", extra={**extra, "error": str(error)})
    return found


def _orphans(context: Context) -> Iterator[tuple[str, str]]:
    """Yields node and holder of each Lease whose benchmark, Jobs and pods are gone, if its namespace is watched."""
    caches = [context.objects[model.KIND.resource] for model in BENCHMARKS.values()]
    watched = context.settings.watch_namespaces
    suspects = list[tuple[LeaseView, str, str]]()
    for raw in context.objects[LEASES].list():
        try:
            lease = lease_view(raw)
            namespace, name, uid = lease.holder.split("/")
        except PARSE_ERRORS:
            continue
        namesakes = (one for cache in caches if (one := cache.get((namespace, name))) is not None)
        if (not watched or namespace in watched) and all(one["metadata"]["uid"] != uid for one in namesakes):
            suspects.append((lease, namespace, name))
    uids = {one["metadata"]["uid"] for cache in caches for one in cache.list()} if suspects else set()
    for lease, namespace, name in suspects:
        if not _has_pods(context, namespace, name, uids):
            yield lease.node, lease.holder


def _has_pods(context: Context, namespace: str, name: str, uids: set[str]) -> bool:
    """Returns whether there are Jobs or pods of a benchmark of this name that is gone."""
    jobs, pods = (
        [raw for raw in context.objects[each].list() if benchmark_of(raw)[1:] == (namespace, name)]
        for each in (JOBS, PODS)
    )
    owners = uids | {raw["metadata"]["uid"] for raw in jobs if _controller(raw) in uids}
    return any(_controller(raw) not in owners for raw in (*jobs, *pods))


def _controller(raw: Raw) -> str:
    """Returns the UID of the controller of an object; empty without one."""
    owners = raw["metadata"].get("ownerReferences", ())
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")
