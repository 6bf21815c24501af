"""What the controllers share: caches, rejected writes, the workqueue."""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from tierbench.api.benchmark import BenchmarkStatus, Phase
from tierbench.api.model import API_VERSION, GROUP
from tierbench.api.result import RESULTS
from tierbench.controller.collector import Inbox
from tierbench.controller.definitions import DefinitionCheck
from tierbench.controller.node_classes import ClusterView
from tierbench.controller.settings import Settings
from tierbench.domain import decide as decisions
from tierbench.domain.fields import project
from tierbench.domain.queueing import AdmissionQueue, known_wait
from tierbench.domain.results import BenchmarkKey as Key
from tierbench.domain.results import ResultStore
from tierbench.domain.servers import api_of_pods
from tierbench.domain.views import PARSE_ERRORS, LeaseView, lease_view
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.client import ApiError, Kube, UnknownFieldError
from tierbench.kube.events import EventRecorder
from tierbench.kube.informer import InformerCache
from tierbench.kube.meta import JOBS, LEASES, PODS, SERVICES, Name, Raw, ResourceType, name_of
from tierbench.metrics.operator import OperatorMetrics
from tierbench.workloads.workload import LABEL_BENCHMARK, LABEL_KIND, LABEL_ROLE, Owner

FINALIZER: Final = f"{GROUP}/cleanup"
TRIES: Final = 4
SUSPENDED_SECONDS: Final = 600.0
_SLOTS: Final = 8
_BEHIND_SECONDS: Final = 1.0
_COMPONENT: Final = "tierbench"
_MOST_FOREIGN: Final = 5
_KINDS: Final = {PODS: "Pod", JOBS: "Job", SERVICES: "Service"}
_logger = logging.getLogger(__name__)


def benchmark_of(raw: Raw) -> Key:
    """Returns the benchmark that the labels of an object name."""
    metadata = raw["metadata"]
    labels = metadata.get("labels", {})
    return labels.get(LABEL_KIND, ""), metadata.get("namespace", ""), labels.get(LABEL_BENCHMARK, "")


def controller_of(raw: Raw) -> Raw:
    """Returns the owner reference of the controller of an object, or an empty one."""
    return next((item for item in raw["metadata"].get("ownerReferences", ()) if item.get("controller")), {})


def is_being_deleted(raw: Raw) -> bool:
    """Returns whether the benchmark was deleted and waits for its finalizers."""
    return "deletionTimestamp" in raw["metadata"]


def is_running(raw: Raw) -> bool:
    """Returns whether a benchmark measures."""
    return bool(raw.get("status", {}).get("phase") == Phase.RUNNING)


def needs_reconcile(raw: Raw) -> bool:
    """Returns whether the operator has anything to do for a benchmark, or to clean up after it."""
    metadata, policy = raw["metadata"], raw.get("spec", {}).get("runPolicy", {})
    if is_being_deleted(raw):
        return FINALIZER in metadata.get("finalizers", ())
    try:
        known = BenchmarkStatus.model_validate(raw.get("status", {}))
    except ValueError:
        return True  # the reconciler reports what is invalid
    later = any(policy.get(name) is not None for name in ("ttlSecondsAfterFinished", "schedule"))
    return decisions.needs_reconcile(known.observed_generation, metadata["generation"], known.phase, later=later)


class ObjectCaches:
    """The caches of all types that a reconcile reads. Watches and own writes keep them current.

    They keep only the fields that are read, and of pods, Jobs and Services only those that may belong to a benchmark.
    """

    def __init__(self, results: ResultStore | None = None) -> None:
        types = (PODS, JOBS, SERVICES, LEASES, *(model.KIND.resource for model in BENCHMARKS.values()))
        self.results = results or ResultStore()
        self._caches: dict[ResourceType, InformerCache[Key]] = {each: InformerCache(benchmark_of) for each in types}
        self._foreign: dict[Key, dict[str, None]] = {}
        self._expected_jobs: set[Name] = set()
        self._leases: dict[str, tuple[Raw, LeaseView]] = {}

    def __getitem__(self, resource: ResourceType) -> InformerCache[Key]:
        return self._caches[resource]

    def observe_write(self, resource: ResourceType, raw: Mapping[str, Any] | None, name: Name | None = None) -> None:
        """Stores the answer to a write: an object, or None and the name of a deleted one. Ignores other types."""
        if resource == RESULTS:
            if raw is not None:
                self.results.update_result(raw, deleted=False)
            elif name is not None:
                self.results.update_result({"metadata": {"namespace": name[0], "name": name[1]}}, deleted=True)
            return
        cache = self._caches.get(resource)
        if cache is None:
            return
        if raw is not None:
            if resource == JOBS:
                self._expected_jobs.discard(name_of(raw))
            cache.observe(project(resource, raw))
        elif name is not None:
            cache.remove(name)

    def leases(self) -> dict[str, LeaseView]:
        """Returns the valid Leases by their node. Each version of a Lease is parsed once."""
        known, self._leases = self._leases, {}
        for raw in self[LEASES].list():
            name = raw["metadata"]["name"]
            try:
                same = known.get(name)
                self._leases[name] = same if same is not None and same[0] is raw else (raw, lease_view(raw))
            except PARSE_ERRORS as error:
                fields = {"kind": "Lease", "object": name, "error": str(error)}
                _logger.warning("ignoring invalid object", extra=fields)
        return {view.node: view for _, view in self._leases.values()}

    def expect_job(self, name: Name) -> None:
        """Admits the pods of a Job that is about to be created. They can be seen before the answer to its creation."""
        self._expected_jobs.add(name)

    def admit(self, resource: ResourceType, raw: Raw) -> Raw | None:
        """Returns what is kept of a child, or None if it belongs to no benchmark that is known or holds nodes."""
        key, known = benchmark_of(raw), self[resource].get(name_of(raw))
        if known is not None and known["metadata"]["uid"] == raw["metadata"]["uid"]:
            return project(resource, raw)  # a pod outlives its Job
        controller, owner = controller_of(raw), self._uid(key)
        if self._is_owned(key, owner, controller) or (resource == PODS and self._may_own_pod(raw, owner, controller)):
            return project(resource, raw)
        is_of_previous = controller.get("kind") in {key[0], "Job"}  # garbage collection will delete it
        if owner is not None and not is_of_previous:
            noted = self._foreign.setdefault(key, {})
            if len(noted) < _MOST_FOREIGN:
                noted[f"{_KINDS[resource]} {raw['metadata']['name']}"] = None
        return None

    def _uid(self, benchmark: Key) -> str | None:
        kind, namespace, name = benchmark
        raw = self[BENCHMARKS[kind].KIND.resource].get((namespace, name)) if kind in BENCHMARKS else None
        return None if raw is None else raw["metadata"]["uid"]

    def _is_owned(self, key: Key, owner: str | None, controller: Raw) -> bool:
        uid = controller.get("uid", "")
        return uid != "" and (uid == owner or self._holds_nodes(key, uid))

    def _holds_nodes(self, key: Key, uid: str = "") -> bool:
        """Returns whether a benchmark of this name, with this UID if it is given, holds nodes. It may be gone."""
        prefix = f"{key[1]}/{key[2]}/{uid}"
        return any((raw["spec"].get("holderIdentity") or "").startswith(prefix) for raw in self[LEASES].list())

    def _may_own_pod(self, pod: Raw, owner: str | None, controller: Raw) -> bool:
        """Returns whether the controller is a Job of a benchmark, or may be an object of another operator.

        Those are not watched, so a reconcile decides.
        """
        if api_of_pods(pod["metadata"]["labels"].get(LABEL_ROLE)) is not None:
            return owner is not None or self._holds_nodes(benchmark_of(pod))
        name = pod["metadata"]["namespace"], controller.get("name", "")
        job = self[JOBS].get(name)
        return name in self._expected_jobs or (job is not None and job["metadata"]["uid"] == controller.get("uid"))

    def foreign(self, benchmark: Key) -> tuple[str, ...]:
        """Returns the names of some objects that have the labels of a benchmark, and another owner."""
        return tuple(self._foreign.get(benchmark, ()))

    def forget_foreign(self, benchmark: Key) -> None:
        """Forgets these names."""
        self._foreign.pop(benchmark, None)


class RetryTracker:
    """The writes of one object that the API server has rejected for what they are, by name.

    After four tries a write is suspended for ten minutes. All is forgotten when the reset key changes: what the answer
    depends on.
    """

    def __init__(self) -> None:
        self._reset_key: object = None
        self._tries: dict[str, int] = {}
        self._suspended: dict[str, float] = {}
        self.rejected: dict[str, str] = {}
        """The messages about results that are not stored as they were measured, by name."""

    def set_reset_key(self, key: object) -> None:
        """Forgets all if the key has changed."""
        if key != self._reset_key:
            self._reset_key = key
            self._tries.clear()
            self._suspended.clear()
            self.rejected.clear()

    def failed(self, name: str, error: Exception) -> bool:
        """Counts a rejected write. Returns whether it is suspended.

        An unknown field does not count: the write is repeated until the definitions have the field.
        """
        if isinstance(error, UnknownFieldError):
            return False
        self._tries[name] = self._tries.get(name, 0) + 1
        if self._tries[name] < TRIES:
            return False
        self._suspended[name] = time.monotonic() + SUSPENDED_SECONDS
        return True

    def result_failed(self, name: str, error: ApiError) -> None:
        """Counts a rejected result. After four tries it is stored as failed."""
        if self.failed(name, error):
            self.rejected.setdefault(name, error.message)

    def succeeded(self, name: str) -> None:
        """Forgets the tries of a write."""
        self._tries.pop(name, None)

    def suspended(self, name: str) -> bool:
        """Returns whether a write is suspended."""
        return time.monotonic() < self._suspended.get(name, 0.0)

    @property
    def permanently_rejected(self) -> frozenset[str]:
        """The results that cannot even be stored as failed."""
        return frozenset(name for name in self.rejected if self._tries.get(name, 0) > TRIES)


class WorkQueue:
    """The benchmarks to reconcile. Each reconciler waits for the event of its own benchmark."""

    def __init__(self) -> None:
        self._events: dict[Key, asyncio.Event] = {}
        self._nodes: dict[Key, frozenset[str] | None] = {}

    def event(self, key: Key) -> asyncio.Event:
        """Returns the event that is set while a benchmark is in the queue."""
        return self._events.setdefault(key, asyncio.Event())

    def set_nodes(self, key: Key, nodes: frozenset[str] | None) -> None:
        """Changes of these nodes add the benchmark; None means all nodes."""
        self._nodes[key] = nodes

    def add(self, *keys: Key) -> None:
        """Adds these benchmarks, if they have a reconciler."""
        for key in keys:
            event = self._events.get(key)
            if event is not None:
                event.set()

    def add_all(self) -> None:
        """Adds every benchmark."""
        self.add(*self._events)

    def add_for_nodes(self, nodes: Iterable[str]) -> None:
        """Adds the benchmarks that depend on any of these nodes."""
        changed = frozenset(nodes)
        self.add(*(key for key, mine in self._nodes.items() if mine is None or mine & changed))

    def forget(self, key: Key) -> None:
        """The reconciler of a benchmark has ended."""
        self._events.pop(key, None)
        self._nodes.pop(key, None)


@dataclass(frozen=True)
class Context:
    """One operator."""

    kube: Kube
    settings: Settings
    metrics: OperatorMetrics = field(default_factory=OperatorMetrics)
    objects: ObjectCaches = field(default_factory=ObjectCaches)
    cluster: ClusterView = field(default_factory=ClusterView)
    workqueue: WorkQueue = field(default_factory=WorkQueue)
    queue: AdmissionQueue = field(default_factory=AdmissionQueue)
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_SLOTS))
    """Of benchmarks that do not measure, a few are reconciled at a time. So those that measure continue at once."""
    definitions: DefinitionCheck = field(default_factory=DefinitionCheck)
    inbox: Inbox = field(default_factory=Inbox)

    @property
    def results(self) -> ResultStore:
        """The store of all results."""
        return self.objects.results

    @property
    def storage_full(self) -> bool:
        """Whether the results and records of all benchmarks take `limits.storedBytes`."""
        return self.results.stored_bytes >= self.settings.quotas.most_stored_bytes

    def reconcile_moved(self, moved: Sequence[Key]) -> None:
        """Adds the benchmarks to the workqueue whose place in the admission queue has changed.

        For those that are not first, it changes no more than a message. They wait a little, because many may move.
        """
        if moved:
            heads = frozenset(self.queue.heads())
            self.workqueue.add(*heads.intersection(moved))
            behind = (key for key in moved if key not in heads)
            asyncio.get_running_loop().call_later(_BEHIND_SECONDS, self.workqueue.add, *behind)
        self.metrics.set_queue_length(len(self.queue))


def restore_queue(context: Context) -> None:
    """Enqueues the benchmarks that waited when the last operator ended, before the first one is reconciled.

    Otherwise that one would take free nodes that another one waits for.
    """
    for kind, model in BENCHMARKS.items():
        for raw in context.objects[model.KIND.resource].list():
            metadata = raw["metadata"]
            with suppress(*PARSE_ERRORS):
                wait = known_wait(BenchmarkStatus.model_validate(raw.get("status", {})), context.kube.now())
                if wait is not None and "deletionTimestamp" not in metadata:
                    context.queue.enqueue((kind, metadata["namespace"], metadata["name"]), wait)


def recorder_of(kube: Kube, owner: Owner) -> EventRecorder:
    """Returns the recorder of events of a benchmark or an advice."""
    reference = {
        "apiVersion": API_VERSION,
        "kind": owner.kind,
        "name": owner.name,
        "namespace": owner.namespace,
        "uid": owner.uid,
    }
    return EventRecorder(kube, reference, _COMPONENT, f"{GROUP}/operator")
