"""What one reconcile of a benchmark observes, from the caches and, where nothing is watched, from the API server."""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from pydantic import ValidationError

from tierbench.api.benchmark import Benchmark
from tierbench.api.result import RESULTS, BenchmarkResult
from tierbench.controller.context import Context
from tierbench.domain.children import PARSE_ERRORS, Children, ControllerRefManager
from tierbench.domain.decision import ClusterState, FailedRequest
from tierbench.domain.views import LeaseView, ProviderApi, ProviderState, lease_view
from tierbench.kinds.registry import BENCHMARKS, workload_of
from tierbench.kube.client import REJECTED, ApiError, Kube, NotFoundError
from tierbench.kube.meta import JOBS, LEASES, PODS, SERVICES, Raw, parse_time, type_of
from tierbench.workloads.workload import Owner, Workload

OTHER_VERSION: Final = "was written by another version of tierbench, or by hand. It is kept as it is: run that version."
_USUAL_DELAY: Final = timedelta(seconds=10)
_logger = logging.getLogger(__name__)


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
        message = f"{where}: {first['msg']}. It {OTHER_VERSION} Or delete the benchmark and create it again."
        raise InvalidBenchmarkError(message) from error
    return benchmark, workload_of(owner, benchmark.spec, context.settings.images, context.settings.policy)


async def read_results(
    context: Context, owner: Owner, benchmark: Benchmark, *, earlier: bool
) -> dict[str, BenchmarkResult] | None:
    """Reads missing results of the current run into the cache. With `earlier`, returns those of earlier runs."""
    key = (owner.kind, owner.namespace, owner.name)
    run = 0 if benchmark.status.run is None else benchmark.status.run.number
    missing = context.objects.results.follow(key, run, context.results.metadata_of(key))
    if not (missing or earlier):
        return None
    raws = await context.kube.list(RESULTS, owner.namespace, owner.selector)
    for raw in raws:
        context.objects.results.observe(raw)
    return dict(_valid_results(raw for raw in raws if raw["spec"]["run"] != run)) if earlier else None


def _valid_results(raws: Iterable[Raw]) -> Iterator[tuple[str, BenchmarkResult]]:
    for raw in raws:
        with suppress(*PARSE_ERRORS):
            yield raw["metadata"]["name"], BenchmarkResult.model_validate(raw)


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
        "BenchmarkResult": objects[RESULTS].by_index(key),
    }
    for _, found in provided:
        listed |= found
    children = ref_manager.claim(listed, context.results.metadata_of(key))
    state = ClusterState(
        owner=owner,
        nodes=dict(context.cluster.nodes),
        leases={lease.node: lease for lease in _leases(objects[LEASES].list())},
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


def _leases(raws: Iterable[Raw]) -> Iterable[LeaseView]:
    for raw in raws:
        try:
            yield lease_view(raw)
        except PARSE_ERRORS as error:
            fields = {"kind": "Lease", "object": raw["metadata"]["name"], "error": str(error)}
            _logger.warning("ignoring invalid object", extra=fields)


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
        since = parse_time(job["metadata"]["creationTimestamp"])
        if kube.now() - since < _USUAL_DELAY:
            continue
        try:
            await kube.create(PODS, namespace, _pod(job), dry_run=True)
        except ApiError as error:
            if error.status not in REJECTED:
                raise
            found[job["metadata"]["name"]] = FailedRequest(since, error.message)
    return found


def _pod(job: Raw) -> dict[str, Any]:
    template = job["spec"]["template"]
    metadata = {**template["metadata"], "generateName": f"{job['metadata']['name']}-"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
