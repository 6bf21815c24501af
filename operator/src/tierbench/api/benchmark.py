"""What all kinds of benchmark share: placement, preflight, status, and what an administrator may refuse."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import Field

from tierbench.api.measurements import MAXIMUM_PAIRS, NodeNetwork
from tierbench.api.model import ClassNames, Column, Conditions, Model, OpenModel, Resource, Rule, rules
from tierbench.api.quantity import FITTING, Resources
from tierbench.api.run_policy import (
    MAXIMUM_REFINED,
    ZONE_OF_SCHEDULE,
    Order,
    Repetitions,
    RunPolicy,
    Timeouts,
    Trim,
    Warmup,
)

_SHORT_NAME = Rule(
    "size(self.metadata.name) <= 40",
    "metadata.name is longer than 40 characters: choose a shorter one, the names of pods are made from it",
)
_UNDOTTED_NAME = Rule(
    "!self.metadata.name.contains('.')",
    "metadata.name has a dot: write a hyphen instead, the names of Services are made from it",
)


NODES: Final = "(has(self.servers) ? size(self.servers.nodeClasses) * self.servers.nodesPerClass : 0)"
"""How many nodes host the service, in CEL."""
NOTHING: Final = "[]"


@dataclass(frozen=True, kw_only=True)
class PolicySubject:
    """What a spec asks for. Addresses are those of servers that are there already; `plain_secrets` are the user's that
    would be sent to them without encryption."""

    access: str
    node_classes: tuple[str, ...]
    host_paths: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    plain_secrets: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PolicySubjectCel:
    """The same of an `object`, each a list in CEL, and what of a user's its clients are given: the API server
    alone knows who may read that."""

    access: str = "[object.spec.access]"
    node_classes: str = "object.spec.servers.nodeClasses + object.spec.clients.nodeClasses"
    host_paths: str = NOTHING
    addresses: str = NOTHING
    plain_secrets: str = NOTHING
    secrets: str = NOTHING
    config_maps: str = NOTHING


def refinable(sizes: str) -> Rule:
    """What has to be there that a run can measure between these sizes of the spec."""
    return Rule(
        "!has(self.runPolicy) || !has(self.runPolicy.refine)"
        f" || has(self.{sizes}) && size(self.{sizes}) > 1 && has(self.servers) && size(self.servers.nodeClasses) > 1",
        "runPolicy.refine measures between sizes where another server class comes ahead: "
        f"name two {sizes} and two servers.nodeClasses at least",
    )


def bounded_pairs(clients: str) -> Rule:
    """The rule that a preflight fits the status; `clients` is how many nodes use each server, in CEL."""
    return Rule(
        f"!has(self.preflight) || {NODES} * ({clients}) <= {MAXIMUM_PAIRS}",
        f"preflight would measure between more than {MAXIMUM_PAIRS} pairs of nodes: take it out, or name fewer classes",
    )


class Colocation(StrEnum):
    """Whether server and client may share a node."""

    FORBIDDEN = "Forbidden"
    ALLOWED = "Allowed"
    REQUIRED = "Required"


class Phase(StrEnum):
    """Where a benchmark stands, in one word."""

    PENDING = "Pending"
    QUEUED = "Queued"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    COMPLETE = "Complete"
    FAILED = "Failed"


class Delivery(StrEnum):
    """How hard client and broker try to deliver a message."""

    AT_MOST_ONCE = "AtMostOnce"
    AT_LEAST_ONCE = "AtLeastOnce"
    EXACTLY_ONCE = "ExactlyOnce"


class Tls(StrEnum):
    """Protection of the connection."""

    NONE = "None"
    TLS12 = "TLSv1.2"
    TLS13 = "TLSv1.3"


class Access(StrEnum):
    """The path from client to server."""

    POD_IP = "PodIP"
    CLUSTER_IP = "ClusterIP"
    NODE_PORT = "NodePort"
    HOST_NETWORK = "HostNetwork"


class Servers(Model):
    """Where the service under test runs."""

    node_classes: ClassNames = Field(description="The node classes that host the service.")
    nodes_per_class: int = Field(
        default=1,
        ge=1,
        le=16,
        description="How many nodes of each class are measured. More nodes tell more about the class than more trials.",
    )
    resources: Resources | None = Field(
        default=None,
        json_schema_extra=FITTING,
        description="What each container of the service asks for, and may use at most. What tierbench runs beside it "
        "has the same limits. Of a Kafka that Strimzi brings up, kafka.strimzi.resources says it.",
    )


@dataclass(frozen=True)
class ClientPlacement:
    """A place for a client: the `ordinal`-th node, from 0, of a class; where several measure at once it is the first
    one's. `levels` are those of the factors that say so.
    """

    node_class: str
    ordinal: int = 0
    levels: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """The class, and which node of it if that is not the first."""
        return f"{self.node_class} {self.ordinal + 1}" if self.ordinal else self.node_class


class Clients(Model):
    """Where the users of the service run."""

    node_classes: ClassNames = Field(description="The node classes that use the service, each in turn.")
    resources: Resources | None = Field(
        default=None, json_schema_extra=FITTING, description="What each client asks for, and may use at most."
    )

    @property
    def placements(self) -> tuple[ClientPlacement, ...]:
        """Where clients have cases of their own."""
        return tuple(map(ClientPlacement, self.node_classes))


class Ping(Model):
    """Echo requests before the load of each trial, while nothing else is on the way."""

    count: int = Field(default=10, ge=0, le=1000, description="How many; 0 for none.")
    interval_milliseconds: int = Field(default=200, ge=2, le=60000, description="From one to the next.")
    size: int = Field(default=56, ge=16, le=65000, description="Bytes of payload in each, as ping counts them.")


class Preflight(Model):
    """How the network between two nodes is measured before the first case."""

    duration_seconds: int = Field(default=3, ge=1, le=60, description="How long TCP is sent each way.")
    ping: Ping = Field(default=Ping(), description="Echo requests before that.")


class NodeAssignment(OpenModel):
    """A node chosen for a class at the start of a run, kept until its end."""

    node_class: str = Field(max_length=63, description="The node class.")
    nodes: tuple[Annotated[str, Field(max_length=253)], ...] = Field(
        default=(), max_length=64, description="Its nodes that were ready, by name."
    )
    reason: str | None = Field(default=None, max_length=63, description="Why there is none, if there is none.")
    message: str | None = Field(default=None, max_length=1024, description="The same for a person.")


class Refinement(OpenModel):
    """A level that a run measures beside those of the spec, with every server."""

    round: int = Field(ge=1, description="Counts from 1: levels of one round are chosen, and served, together.")
    client_class: str = Field(max_length=63, description="The class of its clients.")
    levels: dict[str, Annotated[str, Field(max_length=63)]] = Field(
        json_schema_extra={"maxProperties": 24}, description="The level of each factor, by the factor's name."
    )


class RunStatus(OpenModel):
    """The run under way, or the last one."""

    number: int = Field(ge=1, description="Counts from 1.")
    rerun: str | None = Field(default=None, max_length=63, description="The value of runPolicy.rerun that started it.")
    start_time: str = Field(json_schema_extra={"format": "date-time"}, description="When it began.")
    completion_time: str | None = Field(
        default=None, json_schema_extra={"format": "date-time"}, description="When it ended."
    )
    assignments: tuple[NodeAssignment, ...] = Field(
        default=(), max_length=16, description="Which nodes stand for which class in this run."
    )
    networks: tuple[NodeNetwork, ...] = Field(
        default=(),
        max_length=MAXIMUM_PAIRS,
        description="The network between each server's and each client's node, as the preflight found it.",
    )
    refinements: tuple[Refinement, ...] = Field(
        default=(),
        max_length=MAXIMUM_REFINED // 2,
        description="What runPolicy.refine has added; their cases are numbered on from those of the spec.",
    )


class CurrentCase(Model):
    """What is measured at this moment."""

    name: str = Field(max_length=253, description="The case, in words.")
    result: str = Field(max_length=253, description="Its BenchmarkResult.")
    trials: int = Field(default=0, description="Trials that have ended.")
    of: int = Field(description="Trials that it will have.")


class CaseCounts(Model):
    """How the cases of the run stand."""

    total: int = Field(default=0, description="Cases of the run.")
    ended: int = Field(default=0, description="Measured or failed.")
    failed: int = Field(default=0, description="Ended without one good trial.")
    invalid: int = Field(default=0, description="Measured, and something may have spoiled the numbers.")


class Eviction(OpenModel):
    """A run that goes for want of room."""

    run: int = Field(ge=1, description="The run.")
    notice_time: str = Field(json_schema_extra={"format": "date-time"}, description="When that was announced.")
    begun: bool = Field(default=False, description="Whether its results are being deleted.")


class BenchmarkStatus(OpenModel):
    """What the operator knows and has done."""

    observed_generation: int = Field(
        default=0, json_schema_extra={"format": "int64"}, description="The metadata.generation that this is said of."
    )
    phase: Phase = Field(default=Phase.PENDING, description="Where the benchmark stands, in one word.")
    progress: str = Field(default="", max_length=32, description="Cases ended, of all: 12/28.")
    remaining_seconds: int | None = Field(default=None, description="An estimate, once a trial has ended.")
    cases: CaseCounts = Field(default=CaseCounts(), description="How the cases of the run stand.")
    current: CurrentCase | None = Field(default=None, description="What is measured at this moment.")
    run: RunStatus | None = Field(default=None, description="The run under way, or the last one.")
    next_run_time: str | None = Field(
        default=None, json_schema_extra={"format": "date-time"}, description="When the schedule starts the next run."
    )
    evictions: tuple[Eviction, ...] = Field(
        default=(), max_length=64, description="Runs that go once limits.storedBytes, a value of the chart, is reached."
    )
    best: str = Field(
        default="",
        max_length=32,
        description="What the newest complete run shows to be best: a node class or a setting. Else `equal`, "
        "`inconclusive`, or `depends`: `answer` says on what. Empty where only one alternative was measured.",
    )
    answer: str = Field(default="", max_length=1024, description="What the newest complete run says, in a sentence.")
    conditions: Conditions = ()


BENCHMARK_COLUMNS = (
    Column("Phase", ".status.phase"),
    Column("Progress", ".status.progress", description="Cases ended, of all."),
    Column("Run", ".status.run.number", "integer"),
    Column("Failed", ".status.cases.failed", "integer", priority=1),
    Column("Now", ".status.current.name", priority=1),
    Column("Next", ".status.nextRunTime", priority=1, description="When the schedule starts the next run."),
    Column("Passed", '.status.conditions[?(@.type=="Passed")].status', priority=1),
    Column("Regressed", '.status.conditions[?(@.type=="Regressed")].status', priority=1),
    Column("Best", ".status.best", description="What the newest complete run shows to be best."),
    Column("Answer", ".status.answer", priority=1, description="What the newest complete run says."),
    Column("Age", ".metadata.creationTimestamp", "date"),
)


class BenchmarkSpec(Model):
    """What the spec of every kind of benchmark has."""

    servers: Servers = Field(description="Where the service under test runs.")
    clients: Clients = Field(description="Where its users run.")
    access: Access
    colocation: Colocation = Field(
        default=Colocation.FORBIDDEN,
        description="Whether server and client share a node: Forbidden, Allowed (if no other is ready) or Required.",
    )
    repetitions: Repetitions = 10
    warmup: Warmup = 0
    order: Order = Order()
    timeouts: Timeouts = Timeouts()
    run_policy: RunPolicy = Field(
        default=RunPolicy(),
        json_schema_extra=rules(ZONE_OF_SCHEDULE),
        description="When it runs, how long it is kept, what it is held to: can change.",
    )

    @property
    def policy_subject(self) -> PolicySubject:
        """What of it an administrator may refuse."""
        classes = (*self.servers.node_classes, *self.clients.node_classes)
        return PolicySubject(access=self.access.value, node_classes=classes)

    @property
    def trimmed(self) -> Trim | None:
        """What is left out of the statistics, where anything is."""
        return None

    @property
    def parameters(self) -> dict[str, str]:
        """What holds in every case and bears on the numbers, by name; levels of factors apart."""
        given = {"server": self.servers.resources, "client": self.clients.resources}
        return {
            name: amount
            for side, resources in given.items()
            if resources is not None
            for name, amount in resources.parameters(side).items()
        }


class ServiceSpec(BenchmarkSpec):
    """What the spec of every kind has that measures a service, and not the network itself."""

    preflight: Preflight | None = Field(
        default=None,
        description="Measures the network between each server's and each client's node once a run, before the first "
        "case, so that every result carries the network that it ran on. Without it nothing is known of the network; "
        "write {} for three seconds each way and ten echo requests.",
    )


class Benchmark(Resource):
    """Any kind of benchmark, as the controller sees it. The names of its children begin with PREFIX. ASKS says in CEL
    what the `asks` of its spec do."""

    PREFIX: ClassVar[str]
    POLICY_SUBJECT: ClassVar[PolicySubjectCel] = PolicySubjectCel()
    RULES: ClassVar[tuple[Rule, ...]] = (_SHORT_NAME, _UNDOTTED_NAME)

    spec: BenchmarkSpec
    status: BenchmarkStatus = BenchmarkStatus()
