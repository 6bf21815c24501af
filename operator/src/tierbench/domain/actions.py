"""What a decision asks to be done. Each is safe to do twice."""

from dataclasses import dataclass
from datetime import datetime

from tierbench.api.benchmark import BenchmarkStatus
from tierbench.api.result import ResultSpec, ResultStatus, TraceSpec, TraceStatus
from tierbench.workloads.workload import Credentials, Manifest


@dataclass(frozen=True)
class AcquireLeases:
    """Take or renew the Leases of all these nodes, or none of them, until a time."""

    nodes: tuple[str, ...]
    until: datetime


@dataclass(frozen=True)
class ReleaseLeases:
    """Give back every Lease that this benchmark holds."""

    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Create:
    """Create what is not there yet."""

    manifests: tuple[Manifest, ...]


@dataclass(frozen=True)
class CreateCredentials:
    """Create a Secret with new random credentials, unless it is there."""

    credentials: Credentials


@dataclass(frozen=True)
class DeleteServer:
    """Delete a server's pod and all that bears its name."""

    name: str


@dataclass(frozen=True)
class DeleteProvided:
    """Delete an object that another operator was asked for."""

    api_version: str
    kind: str
    name: str


@dataclass(frozen=True)
class DropFinalizers:
    """Let go such an object that is being deleted, though nobody has done what it waits for."""

    api_version: str
    kind: str
    name: str


@dataclass(frozen=True)
class DeleteJob:
    """Delete a client Job and its pod."""

    name: str


@dataclass(frozen=True)
class SaveResult:
    """Create the result if it is not there, and write its status."""

    name: str
    spec: ResultSpec
    status: ResultStatus


@dataclass(frozen=True)
class SaveTrace:
    """Create the trace of a case if it is not there, and write its status."""

    name: str
    spec: TraceSpec
    status: TraceStatus


@dataclass(frozen=True)
class DeleteResult:
    """Delete a result of a run that is no longer kept, and its trace."""

    name: str


@dataclass(frozen=True)
class DeleteBenchmark:
    """Its time to live is over."""


Action = (
    AcquireLeases
    | ReleaseLeases
    | Create
    | CreateCredentials
    | DeleteServer
    | DeleteProvided
    | DropFinalizers
    | DeleteJob
    | SaveResult
    | SaveTrace
    | DeleteResult
    | DeleteBenchmark
)


@dataclass(frozen=True)
class Event:
    """A line for `kubectl describe`."""

    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True)
class Decision:
    """The status to write, then the actions to take, then the events to post, then how long to wait for a wake-up.

    `wait_seconds` 0 means: look again at once, something has changed by the actions. `waits_for` is what it waits for
    in the queue, which whoever waits for it for longer gets first. `reads_earlier`: the next look needs the results of
    earlier runs.
    """

    status: BenchmarkStatus
    actions: tuple[Action, ...] = ()
    events: tuple[Event, ...] = ()
    wait_seconds: float = 30.0
    waits_for: tuple[str, ...] = ()
    reads_earlier: bool = False
