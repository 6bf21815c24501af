"""BenchmarkResult: what one case of one run measured. BenchmarkTrace: TCP over time in its trials."""

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field, field_serializer, field_validator
from pydantic_core import PydanticCustomError

from tierbench.api.contract import Distributions, Engine, PairShares, Trace, TrialFields
from tierbench.api.measurements import NodeNetwork
from tierbench.api.model import Column, Count, Kind, Model, OpenModel, PartsPerMillion, Reason, Resource, Rule, Time
from tierbench.api.run_policy import Trim
from tierbench.kinds.registry import BENCHMARKS

Level = Annotated[str, Field(max_length=63)]

MAXIMUM_TRACE_BYTES: Final = 256 * 1024
UNKNOWN_KIND: Final = "unknown_kind"
"""The error of a reference to a kind of benchmark that this version does not know."""


class BenchmarkReference(Model):
    """The benchmark that a result belongs to."""

    kind: str = Field(max_length=63, description=f"Kind of the benchmark: one of {', '.join(BENCHMARKS)}.")
    name: str = Field(max_length=253, description="Name of the benchmark, in the same namespace.")

    @field_validator("kind")
    @classmethod
    def _known(cls, kind: str) -> str:
        if kind not in BENCHMARKS:
            message = "this version of tierbench does not know the kind of benchmark {kind}"
            raise PydanticCustomError(UNKNOWN_KIND, message, {"kind": kind})
        return kind


class NodeFacts(Model):
    """A node as it was when the run started."""

    node_class: str = Field(max_length=63, description="Name of the node class.")
    node: str = Field(default="", max_length=253, description="Name of the node. Empty if the class had none.")
    architecture: str = Field(default="", max_length=32, description="Architecture of the node: amd64, arm64, arm.")
    kernel: str = Field(default="", max_length=128, description="Release of the kernel.")
    os_image: str = Field(default="", max_length=128, description="Operating system.")
    kubelet: str = Field(default="", max_length=64, description="Version of the kubelet.")
    runtime: str = Field(default="", max_length=64, description="Container runtime and its version.")
    cpu_millicores: Count = Field(default=0, description="CPUs in thousandths.")
    memory_bytes: Count = Field(default=0, description="Memory in bytes.")
    access_network: str = Field(default="", max_length=63, description="Access network in the NodeClass.")
    storage: str = Field(default="", max_length=63, description="Storage in the NodeClass.")


class ServiceFacts(Model):
    """The setup of the service under test."""

    name: str = Field(max_length=63, description="Name of the service in the benchmark.")
    image: str = Field(
        default="", max_length=255, description="Image of the service. Empty if tierbench does not choose it."
    )
    image_id: str = Field(
        default="",
        max_length=512,
        description="Digest of the image, as the container runtime of the node reports it. Empty if the runtime does "
        "not.",
    )
    settings: dict[str, Annotated[str, Field(max_length=63)]] = Field(
        default_factory=dict,
        json_schema_extra={"maxProperties": 32},
        description="Settings that tierbench chose, by the names that the service has for them, and the limits of its "
        "container, including those of a LimitRange.",
    )


class Alternation(Model):
    """Cases whose trials alternated. A drift, such as that of the network load, affects all of them alike."""

    cases: tuple[int, ...] = Field(max_length=256, description="Numbers of the cases, including this one.")
    seed: int = Field(
        ge=0, description="Seed of the order within each repetition, together with the run and the first number."
    )


class ResultSpec(Model):
    """The case and run that a result is about."""

    benchmark: BenchmarkReference = Field(description="The benchmark that the result belongs to.")
    run: int = Field(ge=1, description="Number of the run.")
    case: int = Field(
        ge=1,
        description="Number of the case, the same in every run. The cases of refinements have the numbers after those "
        "of the spec.",
    )
    levels: dict[str, Level] = Field(
        json_schema_extra={"maxProperties": 24}, description="The level of each factor, by the factor's name."
    )
    conditions: dict[str, Level] = Field(
        default_factory=dict,
        json_schema_extra={"maxProperties": 24, "default": {}},
        description="Settings that held in every case of the benchmark and are not factors, such as pacing, load, "
        "window, retries and access. Results that differ in them are never combined.",
    )
    server: NodeFacts = Field(description="Node of the service.")
    client: NodeFacts = Field(description="Node of the client. Of several clients, that of the first.")
    clients: tuple[NodeFacts, ...] = Field(
        default=(), max_length=16, description="Nodes of all clients, if several measure at the same time."
    )
    networks: tuple[NodeNetwork, ...] = Field(
        default=(),
        max_length=32,
        description="The network between the nodes of the server and each client, as the preflight measured it before "
        "the first case.",
    )
    service: ServiceFacts | None = Field(default=None, description="The setup of the service, if it can be chosen.")
    alternation: Alternation | None = Field(
        default=None, description="The cases whose trials alternated with those of this one."
    )
    trials: int = Field(ge=1, description="Number of trials that count, once the case is complete.")
    passes: int = Field(
        default=1,
        ge=1,
        description="Number of passes that share the trials as evenly as possible. Other servers were up between two "
        "passes.",
    )
    warmup: int = Field(default=0, ge=0, description="Number of warm-up trials.")
    trim: Trim | None = Field(default=None, description="The trials that are left out of the statistics.")


class ResultPhase(StrEnum):
    """Whether a result can still change."""

    RUNNING = "Running"
    MEASURED = "Measured"
    FAILED = "Failed"


class Statistic(Model):
    """A quantity over the good trials of a case, in the unit at the end of its name."""

    count: Count = Field(description="Number of trials of this statistic.")
    mean: int = Field(description="Arithmetic mean.")
    standard_deviation: Count | None = Field(
        default=None, description="Standard deviation of the sample (n - 1). Absent with one trial."
    )
    minimum: int = Field(description="The smallest value.")
    maximum: int = Field(description="The largest value.")
    p50: int = Field(description="Median.")
    p90: int = Field(description="90th percentile.")
    p99: int = Field(description="99th percentile.")
    confidence_low: int | None = Field(
        default=None,
        description="Lower end of the 95% confidence interval of the mean (Student's t). Absent with one trial.",
    )
    confidence_high: int | None = Field(
        default=None, description="Upper end of the 95% confidence interval of the mean."
    )


class MessageCounts(Model):
    """Counts of messages over all counted trials. sent = received + lost. Without subscribers, the fields about
    receiving are absent."""

    sent: Count = Field(default=0, description="Messages sent, each counted once.")
    received: Count | None = Field(default=None, description="Sent messages that were received.")
    lost: Count | None = Field(default=None, description="Sent messages that were not received.")
    acknowledged: Count = Field(default=0, description="Sent messages that the broker acknowledged.")
    acknowledged_lost: Count | None = Field(
        default=None, description="Messages that the broker acknowledged and that never arrived."
    )
    duplicated: Count | None = Field(default=None, description="Further copies received.")
    out_of_order: Count | None = Field(default=None, description="Messages received after one that was sent later.")
    late_sends: Count = Field(default=0, description="Messages sent later than intended.")
    unsent: Count = Field(
        default=0,
        description="Messages that were due before the end of a load and were not sent. No other field counts them.",
    )
    discarded: Count = Field(
        default=0,
        description="Messages received, or without subscribers acknowledged, before the steady state. Only the "
        "distributions leave them out.",
    )
    reconnects: Count = Field(default=0, description="Connections that were established again.")


class Spread(Model):
    """A trial's distribution as a few numbers in nanoseconds."""

    mean: Count = Field(description="Arithmetic mean.")
    p50: Count = Field(description="Median.")
    p90: Count = Field(description="90th percentile.")
    p99: Count = Field(description="99th percentile.")


class Counts(Model):
    """Events over all counted trials."""

    completed: Count = Field(default=0, description="Good trials: those that ended with everything that was asked for.")
    failed: Count = Field(default=0, description="Failed trials. No statistic contains them.")
    retries: Count = Field(default=0, description="Retries of all counted trials.")
    retry_causes: dict[str, Count] = Field(
        default_factory=dict, json_schema_extra={"maxProperties": 16}, description="Retries by cause, without zeros."
    )
    errors: Count = Field(default=0, description="Operations that failed.")
    messages: MessageCounts | None = Field(default=None, description="Broker: counts of messages.")
    interruptions: Count = Field(
        default=0,
        description="Number of times that the client was lost during the case, and a new one continued with the next "
        "trial.",
    )


class Note(Model):
    """A remark on the numbers."""

    reason: Reason = Field(description="Reason as one CamelCase word.")
    message: str = Field(max_length=512, description="Details for a person.")


class Missing(Model):
    """Trials that were planned and did not run."""

    trials: int = Field(ge=1, description="Number of these trials.")
    reason: Reason = Field(description="The reason, as one CamelCase word. TimedOut if slow ones were cut off.")
    message: str = Field(max_length=512, description="Details for a person.")


class Display(Model):
    """The numbers as `kubectl get` shows them."""

    case: str = Field(default="", max_length=128, description="The levels that vary, in words.")
    mean: str = Field(
        default="", max_length=32, description="Mean of the main quantity of the benchmark, with its unit."
    )
    p99: str = Field(default="", max_length=32, description="99th percentile of the main quantity, with its unit.")
    throughput: str = Field(default="", max_length=32, description="Mean throughput, with its unit.")
    valid: str = Field(default="", max_length=128, description="Yes, or the first reason why not.")


class ResultTrial(TrialFields, OpenModel):
    """A trial in a result."""

    attempt: int = Field(
        default=1, ge=1, description="The client of the case in its pass that ran the trial, counted from 1."
    )
    round_trip: Spread | None = Field(
        default=None, description="Round trips in the trial: of messages through a broker, or of echo requests."
    )
    acknowledge: Spread | None = Field(
        default=None, description="Times to the acknowledgement by the broker, if the delivery has one."
    )
    pair_fairness_parts_per_million: PartsPerMillion | None = Field(
        default=None, description="Jain's index of the rates of the pairs, if there are several."
    )


class ResultStatus(OpenModel):
    """The measurements. They cannot change after the phase is Measured or Failed."""

    phase: ResultPhase = Field(default=ResultPhase.RUNNING, description="Running, Measured or Failed.")
    reason: str = Field(default="", max_length=63, description="Why the case failed, as one CamelCase word.")
    message: str = Field(default="", max_length=1024, description="Details for a person, and what to do next.")
    completion_time: Time | None = Field(default=None, description="When the case ended.")
    trials: tuple[ResultTrial, ...] = Field(
        default=(), max_length=35, description="All trials by number, including warm-up trials."
    )
    missing: Missing | None = Field(default=None, description="The trials that did not run, if the case ended early.")
    counts: Counts = Field(default=Counts(), description="Events over all counted trials.")
    statistics: dict[str, Statistic] = Field(
        default_factory=dict,
        json_schema_extra={"maxProperties": 64},
        description="Quantities over the good trials that were not trimmed, by name. Each name ends with its unit.",
    )
    untrimmed: dict[str, Statistic] = Field(
        default_factory=dict,
        json_schema_extra={"maxProperties": 64},
        description="The same quantities over all good trials, if some were trimmed.",
    )
    distributions: Distributions = Field(
        default=Distributions(), description="Distributions, merged over the good trials."
    )
    pair_shares: PairShares | None = Field(
        default=None, description="Broker: the messages of each pair, summed over the good trials."
    )
    valid: bool | None = Field(
        default=None, description="Whether nothing is known that may have distorted the numbers."
    )
    invalid: tuple[Note, ...] = Field(default=(), max_length=16, description="What may have distorted the numbers.")
    facts: tuple[Note, ...] = Field(
        default=(), max_length=16, description="What explains the numbers without distorting them."
    )
    engine: Engine | None = Field(default=None, description="The program that made the load.")
    display: Display = Field(default=Display(), description="The numbers as `kubectl get` shows them.")
    stored_bytes: Count = Field(default=0, description="Size of this object and its trace as JSON.")

    @field_serializer("trials")
    def _without_defaults(self, trials: tuple[ResultTrial, ...]) -> list[dict[str, Any]]:
        """Leaves out fields that have their default, so that 35 trials need at most 32 KiB."""
        return [
            trial.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True) for trial in trials
        ]


_SEALED = Rule(
    "!has(oldSelf.status) || !has(oldSelf.status.phase) || oldSelf.status.phase == 'Running'"
    " || (has(self.status) && self.status == oldSelf.status)",
    "a result that is Measured or Failed cannot be changed: delete it, or start a new run with spec.runPolicy.rerun",
)
_FIXED = Rule("self == oldSelf", "the spec of a result cannot be changed: it says which case was measured")


class BenchmarkResult(Resource):
    """The measurements of one case of one run."""

    KIND: ClassVar[Kind] = Kind(
        kind="BenchmarkResult",
        short_names=("results", "br"),
        columns=(
            Column("Benchmark", ".spec.benchmark.name", priority=1),
            Column("Run", ".spec.run", "integer"),
            Column("Server", ".spec.server.nodeClass"),
            Column("Client", ".spec.client.nodeClass"),
            Column("Case", ".status.display.case"),
            Column("Mean", ".status.display.mean"),
            Column("P99", ".status.display.p99", priority=1),
            Column("Throughput", ".status.display.throughput"),
            Column("Retries", ".status.counts.retries", "integer"),
            Column("Valid", ".status.display.valid"),
            Column("Node", ".spec.server.node", priority=1),
            Column("Client-Node", ".spec.client.node", priority=1),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
        description="BenchmarkResult contains the measurements of one case of one run: every trial, and the "
        "statistics over them.",
    )

    RULES: ClassVar[tuple[Rule, ...]] = (_SEALED,)
    SPEC_RULES: ClassVar[tuple[Rule, ...]] = (_FIXED,)

    spec: ResultSpec
    status: ResultStatus = ResultStatus()


class TrialTrace(Trace):
    """The trace of one sender in one trial."""

    trial: int = Field(ge=1, le=1000, description="Number of the trial in the result.")
    warmup: bool = Field(default=False, description="Whether this is a warm-up trial.")


class TraceSpec(Model):
    """The case and run that a trace is about. Its result has the same name."""

    benchmark: BenchmarkReference = Field(description="The benchmark that the trace belongs to.")
    run: int = Field(ge=1, description="Number of the run.")
    case: int = Field(ge=1, description="Number of the case.")


class TraceStatus(Model):
    """The samples."""

    trials: int = Field(default=0, ge=0, description="Number of trials with a trace.")
    left_out: int = Field(default=0, ge=0, description="Number of trials whose traces did not fit into 256 KiB.")
    traces: tuple[TrialTrace, ...] = Field(default=(), max_length=1024, description="Traces by trial, then by client.")


class BenchmarkTrace(Resource):
    """TCP over time in the trials of one case."""

    KIND: ClassVar[Kind] = Kind(
        kind="BenchmarkTrace",
        short_names=("traces",),
        columns=(
            Column("Benchmark", ".spec.benchmark.name"),
            Column("Run", ".spec.run", "integer"),
            Column("Trials", ".status.trials", "integer"),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
        description="BenchmarkTrace contains TCP over time in the trials of one case, up to 256 KiB. The result of "
        "the same name has the measurements. Only reports read it.",
    )

    spec: TraceSpec
    status: TraceStatus = TraceStatus()


RESULTS: Final = BenchmarkResult.KIND.resource
TRACES: Final = BenchmarkTrace.KIND.resource
