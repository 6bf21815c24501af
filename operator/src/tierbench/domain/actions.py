"""The output of a decision: actions, events and a status. Every action is idempotent."""

from dataclasses import dataclass
from datetime import datetime

from tierbench.api.benchmark import BenchmarkStatus
from tierbench.api.result import ResultSpec, ResultStatus, TraceSpec, TraceStatus
from tierbench.workloads.workload import Credentials, Manifest


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
class SaveTrace:
    """Creates the trace of a case if it does not exist, and writes its status."""

    name: str
    spec: TraceSpec
    status: TraceStatus


@dataclass(frozen=True)
class DeleteResult:
    """Deletes a result and its trace."""

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
    | SaveTrace
    | DeleteResult
    | DeleteBenchmark
)


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
    names the nodes, or the namespace, that the benchmark queues for, in the order of arrival. `needs_earlier_runs` asks
    for the results of earlier runs at the next reconcile.
    """

    status: BenchmarkStatus
    actions: tuple[Action, ...] = ()
    events: tuple[Event, ...] = ()
    requeue_after: float = 30.0
    waits_for: tuple[str, ...] = ()
    needs_earlier_runs: bool = False
