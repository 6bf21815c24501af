"""What one reconcile of a benchmark observes, from the caches and, where nothing is watched, from the API server.

A benchmark's objects are found by the UID of their controller, because anyone can write names and labels.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from tierbench.api.benchmark import Benchmark
from tierbench.api.record import RECORDS, BenchmarkRecord
from tierbench.api.result import BenchmarkResult
from tierbench.controller.context import Context, controller_of
from tierbench.domain.decision import ClusterState, FailedRequest, ProviderApi, ProviderObject, ProviderState
from tierbench.domain.results import ResultMetadata, StoredResult
from tierbench.domain.servers import api_of_pods, known_apis
from tierbench.domain.views import PARSE_ERRORS, JobView, PodView, job_view, pod_view
from tierbench.kinds.registry import BENCHMARKS, workload_of
from tierbench.kube.client import REJECTED, ApiError, Kube, NotFoundError
from tierbench.kube.meta import JOBS, PODS, SERVICES, Raw, is_owned_by, parse_time, type_of
from tierbench.workloads.workload import LABEL_ROLE, ROLE_CLIENT, Owner, Workload

View = TypeVar("View")

_RESULT: Final = BenchmarkResult.KIND.kind
_RECORD: Final = BenchmarkRecord.KIND.kind
_logger = logging.getLogger(__name__)
OTHER_VERSION: Final = "was written by another version of tierbench, or by hand. It is kept as it is: run that version."
_USUAL_DELAY: Final = timedelta(seconds=10)


@dataclass(frozen=True)
class Children:
    """The objects that one benchmark owns.

    `uids` maps kind and name to the UID, `provider_objects` the API group of another operator to its objects. `results`
    contains the results that were given in full, `known_results` the metadata of all. `unowned` names objects that have
    the labels of the benchmark and another owner, or that cannot be parsed. `last_orphaned_run` is the newest run of
    which results without an owner exist. `unreadable` names owned results that this version cannot parse.
    """

    pods: tuple[PodView, ...] = ()
    jobs: tuple[JobView, ...] = ()
    services: Mapping[str, Raw] = field(default_factory=dict)
    results: Mapping[str, BenchmarkResult] = field(default_factory=dict)
    known_results: tuple[ResultMetadata, ...] = ()
    provider_objects: Mapping[str, tuple[ProviderObject, ...]] = field(default_factory=dict)
    uids: Mapping[tuple[str, str], str] = field(default_factory=dict)
    unowned: tuple[str, ...] = ()
    last_orphaned_run: int = 0
    unreadable: frozenset[str] = frozenset()

    @property
    def client_pods(self) -> tuple[PodView, ...]:
        """The pods of clients."""
        return tuple(pod for pod in self.pods if pod.role == ROLE_CLIENT)


class ControllerRefManager:
    """Claims the objects of one benchmark. It remembers what it has claimed, because pods outlive their owners."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._jobs: set[str] = set()
        self._provider_pods: set[str] = set()
        self._results: dict[str, tuple[tuple[str, int], BenchmarkResult | None]] = {}

    async def parse(self, results: Iterable[StoredResult]) -> None:
        """Parses the results that have changed, and forgets others. It yields to other tasks between two results."""
        parsed = {}
        for stored in results:
            name, version = stored.metadata.name, (stored.metadata.uid, stored.metadata.version)
            known = self._results.get(name)
            if known is None or known[0] != version:
                await asyncio.sleep(0)
                known = version, _parse_result(stored)
            parsed[name] = known
        self._results = parsed

    def claim(self, listed: Mapping[str, Iterable[Raw]], known_results: Iterable[ResultMetadata] = ()) -> Children:
        """Returns the objects that the benchmark owns.

        `listed` has objects with the labels of the benchmark, by kind. `known_results` refer to it by name. Those that
        were parsed before are included in full.
        """
        claim = _Claim(self._owner, self._jobs, self._provider_pods)
        provider_objects = {
            api.group: tuple(item for kind in api.kinds for item in claim.views(kind, listed, partial(api.view, kind)))
            for api in known_apis()
        }
        jobs = claim.views("Job", listed, job_view)
        self._jobs |= {claim.uids["Job", job.name] for job in jobs}
        pods = claim.views("Pod", listed, pod_view)
        services = claim.views("Service", listed, dict)
        owned_results = claim.results(known_results)
        parsed = {one.name: self._results[one.name][1] for one in owned_results if one.name in self._results}
        return Children(
            pods=pods,
            jobs=jobs,
            services={raw["metadata"]["name"]: raw for raw in services},
            results={name: result for name, result in parsed.items() if result is not None},
            known_results=owned_results,
            provider_objects=provider_objects,
            uids=claim.uids,
            unowned=tuple(claim.unowned),
            last_orphaned_run=claim.last_orphaned_run,
            unreadable=frozenset(name for name, result in parsed.items() if result is None),
        )


def _parse_result(stored: StoredResult) -> BenchmarkResult | None:
    """Returns a result, or None if this version cannot parse it."""
    try:
        return stored.parse()
    except PARSE_ERRORS as error:
        extra = {"kind": _RESULT, "object": stored.metadata.name, "error": str(error)}
        _logger.warning("ignoring invalid object", extra=extra)
        return None


@dataclass
class _Claim:
    owner: Owner
    jobs: set[str]
    provider_pods: set[str]
    previous_uids: set[str] = field(default_factory=set)
    uids: dict[tuple[str, str], str] = field(default_factory=dict)
    unowned: list[str] = field(default_factory=list)
    last_orphaned_run: int = 0

    def views(self, kind: str, listed: Mapping[str, Iterable[Raw]], view: Callable[[Raw], View]) -> tuple[View, ...]:
        """Returns the views of the owned objects of a kind."""
        found = []
        for raw in listed.get(kind, ()):
            name, uid = raw["metadata"]["name"], raw["metadata"]["uid"]
            if not self._is_owned(kind, raw):
                continue
            self.uids[kind, name] = uid
            try:
                found.append(view(raw))
            except PARSE_ERRORS as error:
                extra = {"kind": kind, "object": f"{self.owner.namespace}/{name}", "error": str(error)}
                _logger.warning("ignoring invalid object", extra=extra)
                self.unowned.append(f"{kind} {name}")
        return tuple(found)

    def results(self, known: Iterable[ResultMetadata]) -> tuple[ResultMetadata, ...]:
        """Returns the metadata of the owned results."""
        owned = []
        for result in known:
            uid, *reference = result.controller
            if uid == self.owner.uid:
                owned.append(result)
                self.uids[_RESULT, result.name] = result.uid
            elif uid not in self.previous_uids and tuple(reference) != (self.owner.kind, self.owner.name):
                self.unowned.append(f"{_RESULT} {result.name}")
                if not uid:
                    self.last_orphaned_run = max(self.last_orphaned_run, result.run)
        return tuple(owned)

    def _is_owned(self, kind: str, raw: Raw) -> bool:
        controller = controller_of(raw)
        uid = controller.get("uid")
        api = api_of_pods(raw["metadata"]["labels"].get(LABEL_ROLE)) if kind == "Pod" else None
        if api is not None:
            owned = self._is_of_provider(api, raw["metadata"])
        else:
            owned = uid == self.owner.uid or (kind == "Pod" and uid in self.jobs)
        if not owned and not self._is_of_previous(raw, controller):
            self.unowned.append(f"{kind} {raw['metadata']['name']}")
        return owned

    def _is_of_provider(self, api: ProviderApi, metadata: Raw) -> bool:
        """Whether a pod belongs to an object that the benchmark owns, or did so when it was claimed first.

        Anyone can create pods with the labels and the kind of owner of another operator's pods.
        """
        name = metadata["labels"].get(api.pod_label)
        if any((kind, name) in self.uids for kind in api.kinds):
            self.provider_pods.add(metadata["uid"])
        return metadata["uid"] in self.provider_pods

    def _is_of_previous(self, raw: Raw, controller: Raw) -> bool:
        """Whether an object belongs to a deleted benchmark of the same name. Garbage collection will delete it."""
        if controller.get("uid") in self.previous_uids:
            return True
        if (controller.get("kind"), controller.get("name")) != (self.owner.kind, self.owner.name):
            return False
        self.previous_uids.add(raw["metadata"]["uid"])
        return True


class InvalidBenchmarkError(Exception):
    """The benchmark is not valid for this version of tierbench."""


@dataclass(frozen=True)
class OwnedObjects:
    """The objects that a benchmark owns, and what else its reconcile depends on.

    `jobs_without_pods` are its active Jobs that have no pod.
    """

    children: Children
    state: ClusterState
    jobs_without_pods: tuple[Raw, ...]


def parse_benchmark(context: Context, owner: Owner, raw: Raw) -> tuple[Benchmark, Workload]:
    """Returns a benchmark and its workload. Raises InvalidBenchmarkError."""
    try:
        benchmark = BENCHMARKS[owner.kind].model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        message = f"{where}: {first['msg']}. It {OTHER_VERSION} Or correct the spec."
        raise InvalidBenchmarkError(message) from error
    return benchmark, workload_of(owner, benchmark.spec, context.settings.images, context.settings.policy)


async def read_earlier(context: Context, owner: Owner, run: int) -> dict[str, BenchmarkResult]:
    """Returns the valid results of all runs but one. It yields to other tasks between two results."""
    found = {}
    for stored in context.results.of((owner.kind, owner.namespace, owner.name)):
        if stored.metadata.run != run:
            await asyncio.sleep(0)
            with suppress(*PARSE_ERRORS):
                found[stored.metadata.name] = stored.parse()
    return found


async def read_records(
    context: Context,
    owner: Owner,
    records: dict[str, BenchmarkRecord | None],
    names: Iterable[str],
    results: Mapping[str, BenchmarkResult],
) -> frozenset[str]:
    """Reads the records with these names that `records` lacks, and drops others. Returns those that are invalid.

    A case without a result has no record. One that belongs to a deleted result of the same name does not count.
    """
    wanted, broken = frozenset(names), set[str]()
    for name in records.keys() - wanted:
        del records[name]
    for name in sorted(wanted - records.keys()):
        found = None
        try:
            raw = await context.kube.get(RECORDS, owner.namespace, name) if name in results else None
            if raw is not None and is_owned_by(raw, results[name].metadata.uid):
                found = BenchmarkRecord.model_validate(raw)
        except NotFoundError:
            pass
        except PARSE_ERRORS as error:
            broken.add(name)
            extra = {"kind": _RECORD, "object": f"{owner.namespace}/{name}", "error": str(error)}
            _logger.warning("ignoring invalid object", extra=extra)
            continue
        records[name] = found
    return frozenset(broken)


async def collect_objects(
    context: Context, owner: Owner, ref_manager: ControllerRefManager, apis: Sequence[ProviderApi]
) -> OwnedObjects:
    """Collects children and Leases from the caches, and the objects of providers from the API server."""
    key = (owner.kind, owner.namespace, owner.name)
    objects = context.objects
    provided = await asyncio.gather(*(list_provided(context.kube, owner, api) for api in apis))
    pods, jobs = objects[PODS].by_index(key), objects[JOBS].by_index(key)
    listed: dict[str, Sequence[Raw]] = {
        "Pod": pods,
        "Job": jobs,
        "Service": objects[SERVICES].by_index(key),
    }
    for _, found in provided:
        listed |= found
    children = ref_manager.claim(listed, [stored.metadata for stored in context.results.of(key)])
    children = replace(children, unowned=(*children.unowned, *objects.foreign(key)))
    state = ClusterState(
        owner=owner,
        nodes=dict(context.cluster.nodes),
        leases=objects.leases(),
        pods=children.pods,
        jobs=children.jobs,
        services=children.services,
        provider_states={
            api.group: replace(found, objects=children.provider_objects[api.group])
            for api, (found, _) in zip(apis, provided, strict=True)
        },
        uids=children.uids,
    )
    return OwnedObjects(children, state, tuple(_jobs_without_pods(children, jobs, pods)))


def _jobs_without_pods(children: Children, jobs: Iterable[Raw], pods: Iterable[Raw]) -> Iterable[Raw]:
    active = {job.name for job in children.jobs if not job.finished and not job.deleting}
    owners = {item["uid"] for pod in pods for item in pod["metadata"].get("ownerReferences", ())}
    return (job for job in jobs if job["metadata"]["name"] in active and job["metadata"]["uid"] not in owners)


async def list_provided(
    kube: Kube, owner: Owner, api: ProviderApi
) -> tuple[ProviderState, dict[str, list[dict[str, Any]]]]:
    """Returns what the API server serves of another operator's API, and its objects of one benchmark by kind.

    A version that lacks any of the kinds counts as none: the other operator is too old.
    """
    try:
        group = await kube.request("GET", f"/apis/{api.group}")
    except NotFoundError:
        return ProviderState(), {}
    served = {item["version"] for item in group["versions"]}
    version = next((version for version in api.versions if version in served), "")
    if not version:
        return ProviderState(installed=True), {}
    types = [type_of(f"{api.group}/{version}", kind) for kind in api.kinds]
    try:
        found = await asyncio.gather(*(kube.list(kind, owner.namespace, owner.selector) for kind in types))
    except NotFoundError:
        return ProviderState(installed=True), {}
    return ProviderState(installed=True, version=version), dict(zip(api.kinds, found, strict=True))


async def rejected_pods(kube: Kube, namespace: str, jobs: Iterable[Raw]) -> dict[str, FailedRequest]:
    """Returns why the API server rejects the pods of these Jobs, by the Job's name.

    Only the Job controller sees the rejection, so each pod is created in a dry run. Young Jobs are left out: their pods
    may just be late.
    """
    found = {}
    for job in jobs:
        name, since = job["metadata"]["name"], parse_time(job["metadata"]["creationTimestamp"])
        if kube.now() - since < _USUAL_DELAY:
            continue
        try:
            if (stored := await kube.find(JOBS, namespace, name)) is not None:  # the cache has no template
                await kube.create(PODS, namespace, _pod(stored), dry_run=True)
        except ApiError as error:
            if error.status not in REJECTED:
                raise
            found[name] = FailedRequest(since, error.message)
    return found


def _pod(job: Raw) -> dict[str, Any]:
    template = job["spec"]["template"]
    metadata = {**template["metadata"], "generateName": f"{job['metadata']['name']}-"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
