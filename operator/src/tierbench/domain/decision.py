"""The input of a decision: one benchmark and its environment, at one moment. Its output: actions, events, a status."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from tierbench.api.benchmark import Benchmark, BenchmarkStatus
from tierbench.api.node_class import NodeClass
from tierbench.api.policy import Policy, Quotas
from tierbench.api.record import BenchmarkRecord, RecordSpec, RecordStatus
from tierbench.api.result import BenchmarkResult, ResultSpec, ResultStatus
from tierbench.domain.queueing import AdmissionQueue, Wait
from tierbench.domain.results import ResultMetadata, StoredRun
from tierbench.domain.views import JobView, LeaseView, NodeView, PodView, Problem
from tierbench.kube.meta import Raw
from tierbench.results.client_output import Output
from tierbench.workloads.workload import Credentials, Manifest, Owner, Workload


@dataclass(frozen=True)
class ProviderObject:
    """An object that another operator reconciles. `answered` says whether its status is set."""

    kind: str
    name: str
    run: int
    slot: int
    created: datetime
    deleted: datetime | None = None
    answered: bool = False
    ready: bool = False
    rejection: Problem | None = None
    rejected_since: datetime | None = None
    listeners: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ProviderState:
    """The state of another operator. `installed` says whether its API group is served, `version` is the newest usable
    version or empty, `objects` belong to one benchmark."""

    installed: bool = False
    version: str = ""
    objects: tuple[ProviderObject, ...] = ()

    def of(self, run: int, slot: int) -> tuple[ProviderObject, ...]:
        """Returns the objects of one server."""
        return tuple(item for item in self.objects if (item.run, item.slot) == (run, slot))


@dataclass(frozen=True)
class ProviderApi:
    """The API of another operator. The first served one of `versions` is used. Its pods have the label value `role`,
    and `pod_label` names the object that they belong to. `view` parses an object of a kind."""

    group: str
    versions: tuple[str, ...]
    kinds: tuple[str, ...]
    role: str
    pod_label: str
    view: Callable[[str, Raw], ProviderObject]


T = TypeVar("T")
Steps = Generator[None, None, T]
"""A computation that takes long. It pauses between its steps, so that other tasks can run."""


@dataclass(frozen=True)
class FailedRequest:
    """A request that the API server has failed since a time, with its last error message."""

    since: datetime
    message: str


@dataclass(frozen=True)
class PodLog:
    """The log of a client pod. `complete` says that the pod has terminated, and its log was read to the end or is not
    needed. `current` says that it was read to its end in this reconcile. `error` is set if it could not be read to its
    end."""

    output: Output = field(default_factory=Output)
    complete: bool = False
    error: FailedRequest | None = None
    current: bool = False


@dataclass(frozen=True, kw_only=True)
class ClusterState:
    """The nodes and Leases of the cluster, and the objects that one benchmark owns.

    `provider_states` maps the API group of another operator to its state. `uids` maps kind and name of each owned
    object to its UID.
    """

    owner: Owner
    nodes: Mapping[str, NodeView] = field(default_factory=dict)
    leases: Mapping[str, LeaseView] = field(default_factory=dict)
    pods: tuple[PodView, ...] = ()
    jobs: tuple[JobView, ...] = ()
    services: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    provider_states: Mapping[str, ProviderState] = field(default_factory=dict)
    uids: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @property
    def holder(self) -> str:
        """The holder identity of the benchmark in Leases."""
        return f"{self.owner.namespace}/{self.owner.name}/{self.owner.uid}"


@dataclass(frozen=True, kw_only=True)
class Observed(ClusterState):
    """One benchmark, the objects that it owns, and everything that it depends on.

    `results` are those of the current or last run. `records` maps the names that the last decision asked for to the
    records, or to None if there is none. `earlier` are the results of other runs, or None unless the last decision
    asked for them. `known_results` is the metadata of all results. `unowned` names objects that have the labels of the
    benchmark and another owner. `last_orphaned_run` is the newest run of which results without an owner exist.
    `stored_bytes` is the size of the results and records of all benchmarks. `deletable_runs` are the runs of the
    namespace that can be deleted if that is too much, the largest first. `rejected_create` is the last failed create.
    `rejected_pods` maps Jobs whose pods the API server rejects. `rejected_results` maps results that it rejects to its
    message. The `permanently_rejected` ones cannot even be stored as failed. `unreadable` names results that this
    version cannot parse. `isolated` says whether a NetworkPolicy protects the pods of the benchmark. `collector` is the
    URL where clients push their lines.
    """

    benchmark: Benchmark
    workload: Workload
    quotas: Quotas = field(default_factory=Quotas)
    policy: Policy = field(default_factory=Policy)
    classes: Mapping[str, NodeClass] = field(default_factory=dict)
    results: Mapping[str, BenchmarkResult] = field(default_factory=dict)
    records: Mapping[str, BenchmarkRecord | None] = field(default_factory=dict)
    earlier: Mapping[str, BenchmarkResult] | None = None
    known_results: tuple[ResultMetadata, ...] = ()
    logs: Mapping[str, PodLog] = field(default_factory=dict)
    queue: AdmissionQueue = field(default_factory=AdmissionQueue)
    unowned: tuple[str, ...] = ()
    last_orphaned_run: int = 0
    stored_bytes: int = 0
    deletable_runs: tuple[StoredRun, ...] = ()
    rejected_create: FailedRequest | None = None
    rejected_pods: Mapping[str, FailedRequest] = field(default_factory=dict)
    rejected_results: Mapping[str, str] = field(default_factory=dict)
    permanently_rejected: frozenset[str] = frozenset()
    unreadable: frozenset[str] = frozenset()
    isolated: bool = False
    collector: str = ""

    def is_external(self, node_class: str) -> bool:
        """Whether a class consists of machines outside the cluster."""
        return (found := self.classes.get(node_class)) is not None and found.spec.external


def is_unreachable(state: ClusterState, pod: PodView) -> bool:
    """Whether a terminating pod stays until its node is back. Its kubelet then removes the pod before anything else."""
    node = state.nodes.get(pod.node)
    return pod.deleting and (node is None or not node.ready)


@dataclass(frozen=True)
class AcquireLeases:
    """Acquires or renews the Leases of all these nodes, or of none of them, until a time."""

    nodes: tuple[str, ...]
    until: datetime


@dataclass(frozen=True)
class ReleaseLeases:
    """Releases the Leases of these nodes that the benchmark holds."""

    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Create:
    """Creates the objects that do not exist yet."""

    manifests: tuple[Manifest, ...]


@dataclass(frozen=True)
class CreateCredentials:
    """Creates a Secret with new random credentials, unless it exists."""

    credentials: Credentials


@dataclass(frozen=True)
class DeleteServer:
    """Deletes the pod of a server and every other object of that server."""

    name: str


@dataclass(frozen=True)
class DeleteProviderObject:
    """Deletes an object that another operator reconciles."""

    api_version: str
    kind: str
    name: str


@dataclass(frozen=True)
class RemoveFinalizers:
    """Removes the finalizers of an object whose operator is gone, so that the object can be deleted."""

    api_version: str
    kind: str
    name: str


@dataclass(frozen=True)
class DeleteJob:
    """Deletes a client Job and its pod."""

    name: str


@dataclass(frozen=True)
class SaveResult:
    """Creates the result if it does not exist, and writes its status."""

    name: str
    spec: ResultSpec
    status: ResultStatus


@dataclass(frozen=True)
class MarkSuperseded:
    """Labels a result as one of a run that was superseded."""

    name: str


@dataclass(frozen=True)
class SaveRecord:
    """Creates the record of a case if it does not exist, and writes its status. Its result exists."""

    name: str
    spec: RecordSpec
    status: RecordStatus


@dataclass(frozen=True)
class DeleteResult:
    """Deletes a result and its record."""

    name: str


@dataclass(frozen=True)
class DeleteBenchmark:
    """Deletes the benchmark, because its time to live is over."""


Action = (
    AcquireLeases
    | ReleaseLeases
    | Create
    | CreateCredentials
    | DeleteServer
    | DeleteProviderObject
    | RemoveFinalizers
    | DeleteJob
    | SaveResult
    | MarkSuperseded
    | SaveRecord
    | DeleteResult
    | DeleteBenchmark
)
"""A change of the cluster. Every action is idempotent."""


@dataclass(frozen=True)
class Event:
    """A Kubernetes event of the benchmark. `warning` selects the type Warning instead of Normal."""

    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True)
class Decision:
    """The result of one reconcile: write the status, then carry out the actions, then record the events.

    `requeue_after` is in seconds; 0 reconciles again at once, because the actions have changed something. `waits_for`
    is what the benchmark queues for until it holds its nodes. `reads_records` names the records that the next reconcile
    observes. `needs_earlier_runs` asks for the results of earlier runs, and `reads_logs` for logs up to their current
    end. `recorded` are the UIDs of the client pods whose trials are all stored once the actions are carried out.
    """

    status: BenchmarkStatus
    actions: tuple[Action, ...] = ()
    events: tuple[Event, ...] = ()
    requeue_after: float = 30.0
    waits_for: Wait | None = None
    reads_records: tuple[str, ...] = ()
    needs_earlier_runs: bool = False
    reads_logs: bool = False
    recorded: tuple[str, ...] = ()
