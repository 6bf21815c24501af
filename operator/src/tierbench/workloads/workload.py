"""What a kind of benchmark gives to the controller: its factors, its server, its client."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tierbench.api.node_class import NodeClassSpec
from tierbench.plan import Case, Factor

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Images:
    """Container images, and the secrets that they are pulled with."""

    client: str
    nginx: str
    pull_secrets: tuple[str, ...] = ()


@dataclass(frozen=True)
class ServerSite:
    """Where a server is deployed. `name` is that of its pod and of all that belongs to it."""

    name: str
    run: int
    slot_index: int
    node: str
    node_class: NodeClassSpec


@dataclass(frozen=True)
class RunningServer:
    """A server that is ready: its addresses. `service` and `agent` are the objects as the API server has them."""

    site: ServerSite
    pod_ip: str
    host_ip: str
    service: Mapping[str, Any]
    agent: Mapping[str, Any]


@dataclass(frozen=True)
class ClientSite:
    """Where and as what a client runs. `trials` are the numbers that it is to run, ascending."""

    name: str
    run: int
    attempt: int
    node: str
    node_class: NodeClassSpec
    trials: Sequence[int]
    deadline_seconds: int


@dataclass(frozen=True)
class Credentials:
    """A Secret to be filled with random credentials when it is created: `certificate` adds a CA and a server's."""

    manifest: Manifest
    certificate: bool


class Workload(Protocol):
    """A kind of benchmark, bound to one benchmark of that kind."""

    def factors(self) -> tuple[Factor, ...]:
        """What it varies, in the order of the spec."""

    def credentials(self, site: ServerSite) -> Credentials:
        """The Secret that server and client share."""

    def server(self, site: ServerSite) -> tuple[Manifest, ...]:
        """All objects of a server; the pod is the last."""

    def client(self, site: ClientSite, case: Case, server: RunningServer) -> Manifest:
        """The Job that measures `case`."""

    def deadline_seconds(self, trials: int) -> int:
        """After how long a Job of so many trials is given up."""

    def weight(self, case: Case) -> float:
        """How long the case takes, compared with the others."""
