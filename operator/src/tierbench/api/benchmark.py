"""The fields that all kinds of benchmark share: placement, preflight, status, and what an administrator can refuse."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import Field, field_validator

from tierbench.api.canonical import fingerprint, in_order
from tierbench.api.link import TRACE_CONFIG_MAPS, Links
from tierbench.api.measurements import MAXIMUM_OUTAGES, MAXIMUM_PAIRS, NodeNetwork, Outage
from tierbench.api.model import ClassNames, Column, Conditions, Model, OpenModel, Resource, Rule, Time, rules
from tierbench.api.quantity import REQUESTS_WITHIN_LIMITS, Resources
from tierbench.api.run_policy import (
    MAXIMUM_REFINED,
    TIME_ZONE_NEEDS_SCHEDULE,
    Order,
    Preflight,
    Repetitions,
    RunPolicy,
    Timeouts,
    Trim,
    WarmupTrials,
)

_SHORT_NAME = Rule(
    "size(self.metadata.name) <= 40",
    "metadata.name is longer than 40 characters: choose a shorter one, because the names of pods are made from it",
)
_UNDOTTED_NAME = Rule(
    "!self.metadata.name.contains('.')",
    "metadata.name has a dot: write a hyphen instead, because the names of Services are made from it",
)


EMPTY_LIST: Final = "[]"


@dataclass(frozen=True, kw_only=True)
class PolicySubject:
    """The properties of a spec that an administrator can refuse.

    `addresses` are those of external servers. `plain_secrets` are Secrets of the user that would be sent to external
    servers without encryption. `links` are the names of links.
    """

    access: str
    node_class_names: tuple[str, ...]
    host_paths: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    plain_secrets: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PolicySubjectCel:
    """CEL expressions for the fields of PolicySubject and for what the clients read. Each returns a list for an
    `object`.

    Only the API server knows whether the user may read `secrets` and `config_maps`.
    """

    access: str = "[object.spec.access]"
    node_class_names: str = "object.spec.servers.nodeClassNames + object.spec.clients.nodeClassNames"
    host_paths: str = EMPTY_LIST
    addresses: str = EMPTY_LIST
    plain_secrets: str = EMPTY_LIST
    secrets: str = EMPTY_LIST
    config_maps: str = TRACE_CONFIG_MAPS
    links: str = "object.spec.links.map(l, l.name)"


class Colocation(StrEnum):
    """Whether server and client can share a node."""

    FORBIDDEN = "Forbidden"
    ALLOWED = "Allowed"
    REQUIRED = "Required"


class Phase(StrEnum):
    """The state of a benchmark in one word."""

    PENDING = "Pending"
    QUEUED = "Queued"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    COMPLETE = "Complete"
    FAILED = "Failed"


class Delivery(StrEnum):
    """The delivery guarantee for a message."""

    AT_MOST_ONCE = "AtMostOnce"
    AT_LEAST_ONCE = "AtLeastOnce"
    EXACTLY_ONCE = "ExactlyOnce"


class Tls(StrEnum):
    """The protection of a connection."""

    NONE = "None"
    TLS12 = "TLSv1.2"
    TLS13 = "TLSv1.3"


class Access(StrEnum):
    """The network path from client to server."""

    POD_IP = "PodIP"
    CLUSTER_IP = "ClusterIP"
    NODE_PORT = "NodePort"
    HOST_NETWORK = "HostNetwork"


ACCESS: Final = (
    "Network path from %s. PodIP needs neither Services nor DNS. HostNetwork: server, agent and client are in the "
    "network namespaces of their nodes, and need no CNI, kube-proxy or DNS."
)
"""The description of the field `access`, for a path."""


class Servers(Model):
    """Where the service under test runs."""

    node_class_names: ClassNames = Field(description="Names of the node classes that host the service.")
    nodes_per_class: int = Field(
        default=1,
        ge=1,
        le=16,
        description="Number of nodes per class that are measured. More nodes say more about a class than more trials "
        "do.",
    )
    resources: Resources | None = Field(
        default=None,
        json_schema_extra=REQUESTS_WITHIN_LIMITS,
        description="Resource requests and limits of each container of the service. The containers that tierbench adds "
        "to the pod have the same limits. For Kafka from Strimzi, set kafka.strimzi.resources instead.",
    )


@dataclass(frozen=True)
class ClientPlacement:
    """The place of a client: node number `ordinal` of a class, counted from 0.

    Of several clients that measure at the same time it is the place of the first. `levels` are those of the factors
    that the place decides.
    """

    node_class: str
    ordinal: int = 0
    levels: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """Returns the name of the class, followed by the number of the node if it is not the first."""
        return f"{self.node_class} {self.ordinal + 1}" if self.ordinal else self.node_class


class Clients(Model):
    """Where the clients of the service run."""

    node_class_names: ClassNames = Field(
        description="Names of the node classes that use the service. Each one is measured in turn."
    )
    resources: Resources | None = Field(
        default=None,
        json_schema_extra=REQUESTS_WITHIN_LIMITS,
        description="Resource requests and limits of each client.",
    )

    @property
    def placements(self) -> tuple[ClientPlacement, ...]:
        """The places of clients that have cases of their own."""
        return tuple(map(ClientPlacement, self.node_class_names))


class NodeAssignment(OpenModel):
    """The nodes that a class has in a run. They do not change until the run ends."""

    node_class: str = Field(max_length=63, description="Name of the node class.")
    nodes: tuple[Annotated[str, Field(max_length=253)], ...] = Field(
        default=(), max_length=64, description="Names of its nodes that were ready."
    )
    reason: str | None = Field(
        default=None, max_length=63, description="Why the class has no node, as one CamelCase word."
    )
    message: str | None = Field(default=None, max_length=1024, description="Why the class has no node, and what to do.")


class Refinement(OpenModel):
    """Levels that a run measures in addition to those of the spec, with every server."""

    round: int = Field(
        ge=1,
        description="Round of the refinement, counted from 1. The levels of a round are chosen and measured together.",
    )
    client_class: str = Field(max_length=63, description="Name of the clients' node class.")
    levels: dict[str, Annotated[str, Field(max_length=63)]] = Field(
        json_schema_extra={"maxProperties": 24}, description="The level of each factor, by the factor's name."
    )


class RunStatus(OpenModel):
    """The current or the last run."""

    number: int = Field(ge=1, description="Number of the run, counted from 1.")
    rerun: str | None = Field(
        default=None, max_length=63, description="The value of runPolicy.rerun that started the run."
    )
    start_time: Time = Field(description="When the run started.")
    completion_time: Time | None = Field(default=None, description="When the run ended.")
    assignments: tuple[NodeAssignment, ...] = Field(
        default=(), max_length=16, description="The nodes of each class in this run."
    )
    networks: tuple[NodeNetwork, ...] = Field(
        default=(),
        max_length=MAXIMUM_PAIRS,
        description="The network between the nodes of each server and each client, as the preflight measured it.",
    )
    refinements: tuple[Refinement, ...] = Field(
        default=(),
        max_length=MAXIMUM_REFINED // 2,
        description="The levels that runPolicy.refine added. Their cases have the numbers after those of the spec.",
    )
    outages: tuple[Outage, ...] = Field(
        default=(),
        max_length=MAXIMUM_OUTAGES,
        description="The newest times for which nodes of the run were not Ready. No deadline contains them.",
    )
    spec_hash: str | None = Field(
        default=None,
        max_length=63,
        description="Hash of the spec that the run measures: of all of it but runPolicy.",
    )
    observed_generation: int | None = Field(
        default=None, description="The newest metadata.generation with the spec that the run measures."
    )
    superseded: bool | None = Field(
        default=None,
        description="True if the spec changed before the run had ended. What was measured is kept, and the next run "
        "measures the new spec.",
    )
    previous: int | None = Field(
        default=None,
        ge=0,
        description="Number of the newest earlier run that was not superseded, if it is not the run before. 0 if there "
        "is none.",
    )

    @property
    def newest_ended(self) -> int:
        """The number of the newest run that has ended and was not superseded; 0 if there is none."""
        if self.completion_time is not None and not self.superseded:
            return self.number
        return self.number - 1 if self.previous is None else self.previous


class CurrentCase(Model):
    """The case that is being measured."""

    name: str = Field(max_length=253, description="The case in words.")
    result: str = Field(max_length=253, description="Name of its BenchmarkResult.")
    finished_trials: int = Field(default=0, description="Trials that have ended.")
    total_trials: int = Field(description="Trials that the case will have.")


class CaseCounts(Model):
    """The number of cases of the run in each state."""

    total: int = Field(default=0, description="Cases of the run.")
    finished: int = Field(default=0, description="Cases that were measured or failed.")
    failed: int = Field(default=0, description="Cases that ended without a good trial.")
    invalid: int = Field(default=0, description="Measured cases whose numbers something may have distorted.")


class BenchmarkStatus(OpenModel):
    """The status that the operator writes."""

    observed_generation: int = Field(default=0, description="The metadata.generation that this status is about.")
    phase: Phase = Field(default=Phase.PENDING, description="The state of the benchmark in one word.")
    progress: str = Field(default="", max_length=32, description="Number of ended cases, of all cases: 12/28.")
    remaining_seconds: int | None = Field(
        default=None, description="Estimate of the remaining time. Absent until a trial has ended."
    )
    cases: CaseCounts = Field(default=CaseCounts(), description="The number of cases of the run in each state.")
    current: CurrentCase | None = Field(default=None, description="The case that is being measured.")
    run: RunStatus | None = Field(default=None, description="The current or the last run.")
    next_run_time: Time | None = Field(default=None, description="When the schedule starts the next run.")
    best: str = Field(
        default="",
        max_length=32,
        description="The node class or setting that is best in the newest complete run. Otherwise `equal`, "
        "`inconclusive`, or `depends`, which `answer` explains. Empty if only one alternative was "
        "measured.",
    )
    answer: str = Field(
        default="", max_length=1024, description="The answer of the newest complete run, as a sentence."
    )
    conditions: Conditions = ()


BENCHMARK_COLUMNS = (
    Column("Phase", ".status.phase"),
    Column("Progress", ".status.progress", description="Number of ended cases, of all cases."),
    Column("Run", ".status.run.number", "integer"),
    Column("Failed", ".status.cases.failed", "integer", priority=1),
    Column("Now", ".status.current.name", priority=1),
    Column("Next", ".status.nextRunTime", priority=1, description="When the schedule starts the next run."),
    Column("Passed", '.status.conditions[?(@.type=="Passed")].status', priority=1),
    Column("Regressed", '.status.conditions[?(@.type=="Regressed")].status', priority=1),
    Column("Best", ".status.best", description="What is best according to the newest complete run."),
    Column("Answer", ".status.answer", priority=1, description="What the newest complete run shows."),
    Column("Age", ".metadata.creationTimestamp", "date"),
)


class BenchmarkSpec(Model):
    """The part of a spec that every kind of benchmark has."""

    servers: Servers = Field(description="Where the service under test runs.")
    clients: Clients = Field(description="Where the clients run.")
    access: Access
    links: Links = ()
    colocation: Colocation = Field(
        default=Colocation.FORBIDDEN,
        description="Whether server and client share a node: Forbidden, Allowed (if no other node is ready) or "
        "Required.",
    )
    repetitions: Repetitions = 10
    warmup_trials: WarmupTrials = 0
    order: Order = Order()
    timeouts: Timeouts = Timeouts()
    run_policy: RunPolicy = Field(
        default=RunPolicy(),
        json_schema_extra=rules(TIME_ZONE_NEEDS_SCHEDULE),
        description="Schedule, retention and pass criteria. A change of any other field of the spec ends the run in "
        "progress, and a new run measures the new spec.",
    )

    @property
    def policy_subject(self) -> PolicySubject:
        """What an administrator can refuse in this spec."""
        classes = (*self.servers.node_class_names, *self.clients.node_class_names)
        links = tuple(link.name for link in self.links)
        return PolicySubject(access=self.access.value, node_class_names=classes, links=links)

    @property
    def active_trim(self) -> Trim | None:
        """The trials to leave out of the statistics, or None."""
        return None

    @property
    def parameters(self) -> dict[str, str]:
        """The settings that hold in every case and affect the numbers, by name. Levels of factors are not among
        them."""
        given = {"server": self.servers.resources, "client": self.clients.resources}
        amounts = {
            name: amount
            for side, resources in given.items()
            if resources is not None
            for name, amount in resources.parameters(side).items()
        }
        return amounts | ({"links": fingerprint(" ".join(map(str, self.links)))} if self.links else {})


class ServiceSpec(BenchmarkSpec):
    """The part of a spec that every kind has that measures a service, and not the network itself."""

    preflight: Preflight | None = Field(
        default=None,
        description="Measures the network between the nodes of each server and each client once per run, before the "
        "first case. Every result then contains the network that it ran on. Without it, results say nothing about the "
        "network. {} means 3 seconds in each direction and 10 echo requests.",
    )


class Benchmark(Resource):
    """A benchmark of any kind.

    The names of its objects begin with PREFIX. POLICY_SUBJECT has the CEL expressions for the `policy_subject` of its
    spec.
    """

    PREFIX: ClassVar[str]
    POLICY_SUBJECT: ClassVar[PolicySubjectCel] = PolicySubjectCel()
    RULES: ClassVar[tuple[Rule, ...]] = (_SHORT_NAME, _UNDOTTED_NAME)

    spec: BenchmarkSpec
    status: BenchmarkStatus = BenchmarkStatus()

    @field_validator("spec")
    @classmethod
    def _in_order(cls, spec: BenchmarkSpec) -> BenchmarkSpec:
        return in_order(spec)
