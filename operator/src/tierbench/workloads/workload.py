"""The interface between kinds of benchmark and the operator: servers, clients, and what they deploy.

Names are deterministic, so no object is created twice.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from string import ascii_lowercase
from typing import Any, Final, Protocol

from tierbench.api.model import API_VERSION, GROUP, OWN_IMAGE
from tierbench.api.node_class import NodeClassSpec
from tierbench.api.result import ServiceFacts
from tierbench.kinds.registry import BENCHMARKS
from tierbench.workloads.plan import Case, Factor, ScheduledTrial, ServerPlacement

MANAGED_BY: Final = "tierbench"
LABEL_KIND: Final = f"{GROUP}/kind"
LABEL_BENCHMARK: Final = f"{GROUP}/benchmark"
LABEL_RUN: Final = f"{GROUP}/run"
LABEL_ROLE: Final = f"{GROUP}/role"
LABEL_SLOT: Final = f"{GROUP}/slot"
LABEL_CASE: Final = f"{GROUP}/case"
LABEL_PASS: Final = f"{GROUP}/pass"
LABEL_ATTEMPT: Final = f"{GROUP}/attempt"
LABEL_PART: Final = f"{GROUP}/part"
LABEL_PARTS: Final = f"{GROUP}/parts"
LABEL_PART_ROLE: Final = f"{GROUP}/part-role"
LABEL_RESULTS: Final = f"{GROUP}/results"
LABEL_WORK: Final = f"{GROUP}/work-seconds"
CHILD_LABELS: Final = (
    *(LABEL_KIND, LABEL_BENCHMARK, LABEL_RUN, LABEL_ROLE, LABEL_SLOT),
    *(LABEL_CASE, LABEL_PASS, LABEL_ATTEMPT, LABEL_PART, LABEL_PARTS, LABEL_PART_ROLE),
    *(LABEL_RESULTS, LABEL_WORK),
)
"""The labels of children that are read."""
ROLE_SERVER: Final = "server"
ROLE_CLIENT: Final = "client"
CLIENT: Final = "client"
"""The name of the container in a client's pod."""

MOST_INHERITED_LABELS: Final = 16
_UID_CHARACTERS: Final = 8
_OF_TOOLS: Final = ("kubernetes.io", "k8s.io", "helm.sh", "argoproj.io", "fluxcd.io", GROUP)

Manifest = dict[str, Any]
_OUTSIDE: Final = f"external.{GROUP}"


def place_of(external_class: str) -> str:
    """Returns what the members of an external class have in place of the name of a node. The Lease of this name keeps
    benchmarks from measuring on them at the same time."""
    return f"{external_class}.{_OUTSIDE}"


@dataclass(frozen=True)
class Owner:
    """The benchmark that owns the objects created for it."""

    kind: str
    namespace: str
    name: str
    uid: str

    @property
    def prefix(self) -> str:
        """The prefix of every name."""
        return f"{BENCHMARKS[self.kind].PREFIX}-{self.name}"

    @property
    def selector(self) -> dict[str, str]:
        """The labels of all owned objects."""
        return {LABEL_KIND: self.kind, LABEL_BENCHMARK: self.name}

    def server(self, run: int, slot: int, setup: int = 0) -> str:
        """Returns the name of a server's pod and of what belongs to it.

        `setup` changes each time the server is deployed again, so that an object that is being deleted is not taken for
        a new one.
        """
        return f"{self.prefix}-r{run}-s{slot + 1}" + (f"-{setup}" if setup else "")

    def attached(self, server: str) -> str:
        """Returns the name of a server's Secret, ConfigMap, claim and NetworkPolicy.

        The operator can create and delete these objects, but not read them. So their names contain the benchmark's UID.
        """
        return f"{server}-{self.uid[:_UID_CHARACTERS]}"

    def result(self, run: int, case: Case) -> str:
        """Returns the name of a case's BenchmarkResult."""
        return f"{self.prefix}-r{run}-c{case.number:03d}"

    def job(self, run: int, case: Case, pass_number: int, attempt: int, part: int) -> str:
        """Returns the name of the Job of one part of a case's client.

        Parts are counted from 0. The letter of the name is the pass: a for the first, b for the second.
        """
        client = f"{ascii_lowercase[pass_number - 1]}{attempt}"
        return f"{self.result(run, case)}-{client}" + (f"-p{part + 1}" if part else "")

    def metadata(self, name: str, labels: Mapping[str, str]) -> dict[str, Any]:
        """Returns the metadata of an owned object, with the owner reference that cleans it up."""
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": {**labels, "app.kubernetes.io/managed-by": MANAGED_BY, **self.selector},
            "ownerReferences": [reference(self.kind, self.name, self.uid)],
        }


def server_labels(run: int, slot: int) -> dict[str, str]:
    """Returns the labels of the objects of a server."""
    return {LABEL_RUN: str(run), LABEL_ROLE: ROLE_SERVER, LABEL_SLOT: str(slot)}


def reference(kind: str, name: str, uid: str) -> dict[str, Any]:
    """Returns an owner reference to an object of tierbench's own kinds."""
    return {"apiVersion": API_VERSION, "kind": kind, "name": name, "uid": uid, "controller": True}


def inherited_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Returns the labels of a benchmark that its results get, too. Labels by which tools recognize their objects are
    not among them."""
    return {name: labels[name] for name in _own_labels(labels)[:MOST_INHERITED_LABELS]}


def labels_left_out(labels: Mapping[str, str]) -> list[str]:
    """Returns the names of the labels that results do not get because there are too many: each result stores them."""
    return _own_labels(labels)[MOST_INHERITED_LABELS:]


def _own_labels(labels: Mapping[str, str]) -> list[str]:
    return sorted(key for key in labels if not key.partition("/")[0].endswith(_OF_TOOLS))


@dataclass(frozen=True)
class Images:
    """The container images and how to run them.

    `programs` are the images of kinds, `alternatives` further images of a server, by service and name. `pull_policies`
    are those of images that differ from the default of Kubernetes. Without `user`, the platform assigns one.
    `collector` is the URL where clients push their lines, if there is one.
    """

    client: str
    programs: Mapping[str, str]
    pull_secrets: tuple[str, ...] = ()
    pull_policies: Mapping[str, str] = field(default_factory=dict)
    user: int | None = None
    alternatives: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    priority_class: str = ""
    collector: str = ""

    def of(self, service: str, name: str) -> str:
        """Returns the image with this name of a service. Returns an empty string if there is none."""
        return {**self.alternatives.get(service, {}), OWN_IMAGE: self.programs[service]}.get(name, "")

    def pulled(self, image: str) -> dict[str, str]:
        """Returns the image of a container, and its pull policy."""
        policy = self.pull_policies.get(image)
        return {"image": image, **({"imagePullPolicy": policy} if policy else {})}

    def image_problem(self, service: str, name: str) -> str:
        """Returns that a service has no image with this name, and what to do. Returns an empty string if it has."""
        if self.of(service, name):
            return ""
        known = ", ".join((OWN_IMAGE, *self.alternatives.get(service, {})))
        return (
            f"No image of {service} is called {name}; these are: {known}. Name one of them, or ask an administrator to "
            f"add {name} to the chart value {service}.alternatives."
        )


@dataclass(frozen=True)
class NodeSize:
    """How much memory and disk a server can use. 0 means not known."""

    memory_bytes: int = 0
    storage_bytes: int = 0


@dataclass(frozen=True)
class ServerInstance:
    """A server on its node in one run.

    `name` is the name of its pod and its Service, `attached` that of objects that only they use. `slot` is the number
    of its placement. `measured_nodes` are all nodes that the run measures on. `api_version` is that of another operator
    that deploys the server. `refined_levels` replace the levels of the spec that the server is prepared for.
    `free_bytes` of the node's disk stay free, and its files have at most `most_file_bytes`. `external_clients` says
    whether any client is outside the cluster.
    """

    name: str
    attached: str
    run: int
    slot: int
    placement: ServerPlacement
    node: str
    node_class: NodeClassSpec
    size: NodeSize = NodeSize()
    measured_nodes: tuple[str, ...] = ()
    api_version: str = ""
    refined_levels: tuple[str, ...] = ()
    free_bytes: int | None = None
    most_file_bytes: int = 0
    external_clients: bool = False


@dataclass(frozen=True)
class RunningServer:
    """A server that is ready, and its addresses.

    `service` and `agent` are the Services as the API server has them. `listeners` are host:port by listener, if another
    operator decides them.
    """

    instance: ServerInstance
    pod_ip: str
    host_ip: str
    service: Mapping[str, Any]
    agent: Mapping[str, Any]
    listeners: Mapping[str, str] = field(default_factory=dict)


class Role(StrEnum):
    """What a part of a client does. A share measures with others, and its results are kept if another one is lost."""

    WHOLE = "Whole"
    SENDER = "Sender"
    ECHO = "Echo"
    SHARE = "Share"


@dataclass(frozen=True)
class ClientPart:
    """One pod of a case's client. All parts start each trial together, and their measurements are merged into one
    trial."""

    index: int
    node_class: str
    role: Role = Role.WHOLE


@dataclass(frozen=True)
class ClientInstance:
    """One of the `parts` of a client on its node, and its trials in order.

    `block` is the number of the first case of its block. `away_seconds` of its deadline are for times in which a node
    is away. A member outside the cluster takes the work within `absent_seconds`, and is silent for at most
    `silent_seconds`.
    """

    name: str
    run: int
    block: int
    attempt: int
    part: ClientPart
    node: str
    node_class: NodeClassSpec
    schedule: Sequence[ScheduledTrial]
    deadline_seconds: int
    pass_number: int = 1
    parts: int = 1
    away_seconds: int = 0
    absent_seconds: int = 0
    silent_seconds: int = 0


@dataclass(frozen=True)
class Target:
    """A case that a client measures, its server, and the time limit for all of its trials. An `external` client is
    outside the cluster."""

    case: Case
    server: RunningServer
    deadline_seconds: int
    external: bool = False


@dataclass(frozen=True)
class Credentials:
    """A Secret that is filled with random credentials when it is created.

    `certificate` adds a CA and a server certificate, `client_certificate` also one of the clients. `account` returns
    what a user of this name needs.
    """

    manifest: Manifest
    certificate: bool
    account: Callable[[str], Mapping[str, bytes]] | None = None
    username: str = "tierbench"
    client_certificate: bool = False


def secret(owner: Owner, instance: ServerInstance) -> Manifest:
    """Returns the Secret that server and client share, without its data."""
    metadata = owner.metadata(instance.attached, {LABEL_RUN: str(instance.run), LABEL_ROLE: ROLE_SERVER})
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"}


LINK: Final = 100_000_000
"""The assumed rate of the network between two nodes, in bits per second."""


@dataclass(frozen=True)
class TrialLoad:
    """What one trial does.

    `seconds` is its duration if the spec decides it, and `bytes_moved` its payload if the spec decides that.
    `overhead_bytes` make up for what takes time besides the payload.
    """

    seconds: float | None = None
    bytes_moved: int | None = None
    overhead_bytes: int = 0

    def duration(self, bits_per_second: float = LINK) -> float:
        """Returns the expected seconds over a link of this rate."""
        if self.seconds is not None:
            return self.seconds
        return 8 * ((self.bytes_moved or 0) + self.overhead_bytes) / bits_per_second


class Workload(Protocol):
    """A benchmark of one kind: what it measures, and what it deploys."""

    def server_placements(self) -> tuple[ServerPlacement, ...]:
        """Returns the places of its servers, in the order of the spec."""

    def image_problem(self, placement: ServerPlacement) -> str:
        """Returns that the image of a server is not available, and what to do. Returns an empty string if it is
        available."""

    def factors(self, placement: ServerPlacement) -> tuple[Factor, ...]:
        """Returns the factors that vary with a server, in the order of the spec."""

    def parts(self, case: Case) -> tuple[ClientPart, ...]:
        """Returns the pods of a case's client."""

    def service(self, placement: ServerPlacement, size: NodeSize) -> ServiceFacts | None:
        """Returns what results keep about the setup of a server."""

    def credentials(self, instance: ServerInstance) -> Credentials:
        """Returns the Secret that server and client share."""

    def server(self, instance: ServerInstance) -> tuple[Manifest, ...]:
        """Returns all objects of a server. The pod is the last one."""

    def client(self, instance: ClientInstance, targets: Sequence[Target]) -> Manifest:
        """Returns the Job of one part of the client that measures these cases of a block."""

    def deadline_seconds(self, trials: int) -> int:
        """Returns the time limit of a case with this number of trials."""

    def load(self, case: Case) -> TrialLoad:
        """Returns what one trial of a case does."""

    def preflight(self) -> "tuple[Workload, ...]":
        """Returns the workloads that measure the network between two nodes before the first case. Each has one case
        with one trial."""
