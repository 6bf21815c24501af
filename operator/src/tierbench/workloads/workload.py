"""What a kind of benchmark gives to the controller: its factors, its server, its client."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from tierbench.api.model import OWN_IMAGE
from tierbench.api.node_class import NodeClassSpec
from tierbench.api.result import ServiceFacts
from tierbench.workloads.names import LABEL_ROLE, LABEL_RUN, ROLE_SERVER, Owner
from tierbench.workloads.plan import Case, Factor, ScheduledTrial, ServerPlacement

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Images:
    """Container images, and how they are run: the secrets that they are pulled with, the user whom they run as, the
    PriorityClass of their pods.

    `programs` are those that kinds of benchmark name. `alternatives` are further ones of a server that may be asked
    for, by its service and their names. `pull_policies` are of those images, by the images, that Kubernetes shall not
    pull as it does by default. Without `user` the platform assigns one.
    """

    client: str
    programs: Mapping[str, str]
    pull_secrets: tuple[str, ...] = ()
    pull_policies: Mapping[str, str] = field(default_factory=dict)
    user: int | None = None
    alternatives: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    priority_class: str = ""

    def of(self, service: str, name: str) -> str:
        """The image of a service that has this name; empty where none has."""
        return {**self.alternatives.get(service, {}), OWN_IMAGE: self.programs[service]}.get(name, "")

    def pulled(self, image: str) -> dict[str, str]:
        """The image of a container, and when it is pulled."""
        policy = self.pull_policies.get(image)
        return {"image": image, **({"imagePullPolicy": policy} if policy else {})}

    def image_problem(self, service: str, name: str) -> str:
        """That no image of a service has this name, and what to do; empty where one has."""
        if self.of(service, name):
            return ""
        known = ", ".join((OWN_IMAGE, *self.alternatives.get(service, {})))
        return (
            f"No image of {service} is called {name}; these are: {known}. Name one of them, or have {name} added to "
            f"{service}.alternatives, a value of the chart."
        )


@dataclass(frozen=True)
class NodeSize:
    """What a server has of its node; 0 where it is not known."""

    memory_bytes: int = 0
    storage_bytes: int = 0


@dataclass(frozen=True)
class ServerInstance:
    """Where a server is deployed. `name` is that of its pod and its Service, `attached` of what only they mount.

    `measured` are all nodes that the run measures on, `api_version` is that of another operator that brings it up.
    `refined` are the levels of a refinement that it is prepared for instead of the spec's. So many bytes of the node's
    disk stay free, if `free_bytes` says it.
    """

    name: str
    attached: str
    run: int
    slot: int
    placement: ServerPlacement
    node: str
    node_class: NodeClassSpec
    size: NodeSize = NodeSize()
    measured: tuple[str, ...] = ()
    api_version: str = ""
    refined_levels: tuple[str, ...] = ()
    free_bytes: int | None = None


@dataclass(frozen=True)
class RunningServer:
    """A server that is ready: its addresses. `service` and `agent` are the objects as the API server has them;
    `listeners` are host:port by the name of a listener, where somebody else says what they are."""

    instance: ServerInstance
    pod_ip: str
    host_ip: str
    service: Mapping[str, Any]
    agent: Mapping[str, Any]
    listeners: Mapping[str, str] = field(default_factory=dict)


class Role(StrEnum):
    """What a part of the client does. A share measures beside the others, and is kept though one of them is lost."""

    WHOLE = "Whole"
    SENDER = "Sender"
    ECHO = "Echo"
    SHARE = "Share"


@dataclass(frozen=True)
class ClientPart:
    """A pod of a case's client: they begin each trial together, and what they measure is one trial."""

    index: int
    node_class: str
    role: Role = Role.WHOLE


@dataclass(frozen=True)
class ClientInstance:
    """Where and as what a part of a client runs, and the trials that it is to run, in order. `block` is the number of
    the first case of its block, `pass_number` that of the pass."""

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


@dataclass(frozen=True)
class Target:
    """A case that a client measures, its server, and how long its trials may take together."""

    case: Case
    server: RunningServer
    deadline_seconds: int


@dataclass(frozen=True)
class Credentials:
    """A Secret to be filled with random credentials when it is created.

    `certificate` adds a CA and a server's, `account` makes what a user of this name needs.
    """

    manifest: Manifest
    certificate: bool
    account: Callable[[str], Mapping[str, bytes]] | None = None
    username: str = "tierbench"


def secret(owner: Owner, instance: ServerInstance) -> Manifest:
    """The Secret that server and client share; empty yet."""
    metadata = owner.metadata(instance.attached, {LABEL_RUN: str(instance.run), LABEL_ROLE: ROLE_SERVER})
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"}


class Workload(Protocol):
    """A kind of benchmark, bound to one benchmark of that kind."""

    def server_placements(self) -> tuple[ServerPlacement, ...]:
        """Where its servers stand, in the order of the spec."""

    def image_problem(self, placement: ServerPlacement) -> str:
        """That the image of a slot's server is not to be had, and what to do; empty where it is."""

    def factors(self, placement: ServerPlacement) -> tuple[Factor, ...]:
        """What it varies with the server of a slot, in the order of the spec."""

    def parts(self, case: Case) -> tuple[ClientPart, ...]:
        """The pods of the case's client."""

    def service(self, placement: ServerPlacement, size: NodeSize) -> ServiceFacts | None:
        """What is kept of a server's making with each result."""

    def credentials(self, instance: ServerInstance) -> Credentials:
        """The Secret that server and client share."""

    def server(self, instance: ServerInstance) -> tuple[Manifest, ...]:
        """All objects of a server; the pod is the last."""

    def client(self, instance: ClientInstance, targets: Sequence[Target]) -> Manifest:
        """The Job of one part of the client that measures these cases of a block."""

    def deadline_seconds(self, trials: int) -> int:
        """After how long a case of so many trials is given up."""

    def weight(self, case: Case) -> float:
        """How long the case takes, compared with the others."""

    def preflight(self) -> "tuple[Workload, ...]":
        """What is measured of the network between two nodes before the first case: of each, a trial of its one case."""
