"""BenchmarkResult: what one case of one run measured. BenchmarkTrace: TCP over time in its trials."""

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field, field_serializer, field_validator
from pydantic_core import PydanticCustomError

from tierbench.api.contract import Distributions, Engine, PairShares, Trace, TrialFields
from tierbench.api.measurements import NodeNetwork
from tierbench.api.model import Column, Count, Kind, Model, OpenModel, PartsPerMillion, Reason, Resource, Rule
from tierbench.api.run_policy import Trim
from tierbench.kinds.registry import BENCHMARKS

Level = Annotated[str, Field(max_length=63)]

MAXIMUM_TRACE_BYTES: Final = 256 * 1024
UNKNOWN_KIND: Final = "unknown_kind"
"""The error of a reference to a benchmark of another version's kind."""


class BenchmarkReference(Model):
    """The benchmark that a result belongs to."""

    kind: str = Field(max_length=63, description=f"One of {', '.join(BENCHMARKS)}.")
    name: str = Field(max_length=253, description="Its name, in the same namespace.")

    @field_validator("kind")
    @classmethod
    def _known(cls, kind: str) -> str:
        if kind not in BENCHMARKS:
            message = "{kind} is no kind of benchmark that this version of tierbench knows"
            raise PydanticCustomError(UNKNOWN_KIND, message, {"kind": kind})
        return kind


class NodeFacts(Model):
    """A node as it was when the run began."""

    node_class: str = Field(max_length=63, description="The class that it stands for.")
    node: str = Field(default="", max_length=253, description="Its name; empty if the class had none.")
    architecture: str = Field(default="", max_length=32, description="amd64, arm64, arm.")
    kernel: str = Field(default="", max_length=128, description="Release of its kernel.")
    os_image: str = Field(default="", max_length=128, description="Its operating system.")
    kubelet: str = Field(default="", max_length=64, description="Version of its kubelet.")
    runtime: str = Field(default="", max_length=64, description="Its container runtime and version.")
    cpu_millicores: Count = Field(default=0, description="Its CPUs, in thousandths.")
    memory_bytes: Count = Field(default=0, description="Its memory.")
    access_network: str = Field(default="", max_length=63, description="As its NodeClass says.")
    storage: str = Field(default="", max_length=63, description="As its NodeClass says.")


class ServiceFacts(Model):
    """How the service under test was set up."""

    name: str = Field(max_length=63, description="What the benchmark calls it.")
    image: str = Field(default="", max_length=255, description="Its image; empty if tierbench does not choose it.")
    image_id: str = Field(
        default="",
        max_length=512,
        description="What this image was, by its digest, as the node's runtime tells it; empty where it does not.",
    )
    settings: dict[str, Annotated[str, Field(max_length=63)]] = Field(
        default_factory=dict,
        json_schema_extra={"maxProperties": 32},
        description="What was set on purpose, by the names that the service has for it, and the limits of its "
        "container, a LimitRange's included.",
    )


class Alternation(Model):
    """Cases whose trials alternated: what drifts meanwhile, as the load of a network does, falls on all of them."""

    cases: tuple[int, ...] = Field(max_length=256, description="Their numbers in the matrix, this one's included.")
    seed: int = Field(ge=0, description="With the run and the first number, of their order within each repetition.")


class ResultSpec(Model):
    """Which case of which run this is."""

    benchmark: BenchmarkReference = Field(description="The benchmark that it belongs to.")
    run: int = Field(ge=1, description="The run.")
    case: int = Field(
        ge=1,
        description="The case's number in the benchmark's matrix, the same in every run; those of refinements follow.",
    )
    levels: dict[str, Level] = Field(
        json_schema_extra={"maxProperties": 24}, description="The level of each factor, by the factor's name."
    )
    conditions: dict[str, Level] = Field(
        default_factory=dict,
        json_schema_extra={"maxProperties": 24, "default": {}},
        description="What held in every case of the benchmark and is no factor: pacing, load, window, retries, access. "
        "Results that differ in it are not alike, and never taken together.",
    )
    server: NodeFacts = Field(description="Where the service ran.")
    client: NodeFacts = Field(description="Where its user ran; of several nodes, the first.")
    clients: tuple[NodeFacts, ...] = Field(
        default=(), max_length=16, description="Where each client ran, of several that measure at once."
    )
    networks: tuple[NodeNetwork, ...] = Field(
        default=(),
        max_length=32,
        description="The network that it ran on: between the server's node and each client's, as the preflight "
        "found it before the first case.",
    )
    service: ServiceFacts | None = Field(default=None, description="How it was set up, where that can be chosen.")
    alternation: Alternation | None = Field(
        default=None, description="Which cases it was measured with, trial by trial, if with any."
    )
    trials: int = Field(ge=1, description="Trials that count, once complete.")
    passes: int = Field(
        default=1,
        ge=1,
        description="Passes that they are shared among, as even as can be: between two of them other servers were up.",
    )
    warmup: int = Field(default=0, ge=0, description="Trials before them that do not.")
    trim: Trim | None = Field(default=None, description="What is left out of its statistics, if anything is.")


class ResultPhase(StrEnum):
    """Whether a result can still change."""

    RUNNING = "Running"
    MEASURED = "Measured"
    FAILED = "Failed"


class Statistic(Model):
    """A quantity over the good trials of a case, in the unit that its name ends with."""

    count: Count = Field(description="Trials that it is computed from.")
    mean: int = Field(json_schema_extra={"format": "int64"}, description="Arithmetic mean.")
    standard_deviation: Count | None = Field(default=None, description="Of the sample (n - 1); absent with one trial.")
    minimum: int = Field(json_schema_extra={"format": "int64"}, description="The smallest.")
    maximum: int = Field(json_schema_extra={"format": "int64"}, description="The largest.")
    p50: int = Field(json_schema_extra={"format": "int64"}, description="Median.")
    p90: int = Field(json_schema_extra={"format": "int64"}, description="90th percentile.")
    p99: int = Field(json_schema_extra={"format": "int64"}, description="99th percentile.")
    confidence_low: int | None = Field(
        default=None,
        json_schema_extra={"format": "int64"},
        description="Lower end of the 95 % confidence interval of the mean (Student's t); absent with one trial.",
    )
    confidence_high: int | None = Field(
        default=None, json_schema_extra={"format": "int64"}, description="Upper end of it."
    )


class MessageCounts(Model):
    """What became of messages, over all counted trials. sent = received + lost; absent is what nobody received."""

    sent: Count = Field(default=0, description="Messages sent, each counted once.")
    received: Count | None = Field(default=None, description="Of these, those that were received.")
    lost: Count | None = Field(default=None, description="Of these, those that were not.")
    acknowledged: Count = Field(default=0, description="Of these, those that the broker acknowledged.")
    acknowledged_lost: Count | None = Field(default=None, description="Acknowledged by the broker, and never received.")
    duplicated: Count | None = Field(default=None, description="Further copies received.")
    out_of_order: Count | None = Field(default=None, description="Received after one that was sent later.")
    late_sends: Count = Field(default=0, description="Sent later than intended.")
    unsent: Count = Field(default=0, description="Due before the end of a load, and not sent: in none of the others.")
    discarded: Count = Field(
        default=0,
        description="Received, or without subscribers acknowledged, before the steady state: left out of the "
        "distributions, and of nothing else.",
    )
    reconnects: Count = Field(default=0, description="Connections made anew.")


class Spread(Model):
    """A trial's distribution in a few numbers, nanoseconds."""

    mean: Count = Field(description="Arithmetic mean.")
    p50: Count = Field(description="Median.")
    p90: Count = Field(description="90th percentile.")
    p99: Count = Field(description="99th percentile.")


class Counts(Model):
    """What happened, over all counted trials."""

    completed: Count = Field(default=0, description="Trials that ended with everything asked for.")
    failed: Count = Field(default=0, description="Trials that did not; they stand outside every statistic.")
    retries: Count = Field(default=0, description="Retries of all counted trials.")
    retry_causes: dict[str, Count] = Field(
        default_factory=dict, json_schema_extra={"maxProperties": 16}, description="The same by cause, zeros left out."
    )
    errors: Count = Field(default=0, description="Operations that did not succeed.")
    messages: MessageCounts | None = Field(default=None, description="Of brokers: what became of messages.")
    interruptions: Count = Field(
        default=0, description="How often the client was lost in mid-case and a new one went on with the next trial."
    )


class Note(Model):
    """Something to know about the numbers."""

    reason: Reason = Field(description="One CamelCase word.")
    message: str = Field(max_length=512, description="The same for a person.")


class Missing(Model):
    """Trials that were to count and were not run."""

    trials: int = Field(ge=1, description="How many.")
    reason: Reason = Field(description="Why, as one CamelCase word; TimedOut if slow ones were cut off.")
    message: str = Field(max_length=512, description="The same for a person.")


class Display(Model):
    """The numbers as `kubectl get` shows them."""

    case: str = Field(default="", max_length=128, description="The levels that vary, in words.")
    mean: str = Field(default="", max_length=32, description="Mean of the benchmark's main quantity, with unit.")
    p99: str = Field(default="", max_length=32, description="Its 99th percentile.")
    throughput: str = Field(default="", max_length=32, description="Mean throughput, with unit.")
    valid: str = Field(default="", max_length=128, description="Yes, or the first reason why not.")


class ResultTrial(TrialFields, OpenModel):
    """A trial that is kept."""

    attempt: int = Field(default=1, ge=1, description="Which client of the case in its pass ran it.")
    round_trip: Spread | None = Field(
        default=None, description="The trial's round trips: of messages through a broker, or of echo requests."
    )
    acknowledge: Spread | None = Field(
        default=None, description="The times to the broker's acknowledgements, of deliveries that have them."
    )
    pair_fairness_parts_per_million: PartsPerMillion | None = Field(
        default=None, description="Of several pairs: Jain's index of their rates."
    )


class ResultStatus(OpenModel):
    """What was measured. Once the phase is Measured or Failed, nothing of it can change."""

    phase: ResultPhase = Field(default=ResultPhase.RUNNING, description="Running, Measured or Failed.")
    reason: str = Field(default="", max_length=63, description="Why it failed, as one CamelCase word.")
    message: str = Field(default="", max_length=1024, description="The same for a person, and what to do next.")
    completion_time: str | None = Field(
        default=None, json_schema_extra={"format": "date-time"}, description="When it ended."
    )
    trials: tuple[ResultTrial, ...] = Field(
        default=(), max_length=35, description="Every trial, warm-up ones included, by number."
    )
    missing: Missing | None = Field(default=None, description="What was not run, of a case that ended early.")
    counts: Counts = Field(default=Counts(), description="What happened, over all counted trials.")
    statistics: dict[str, Statistic] = Field(
        default_factory=dict,
        json_schema_extra={"maxProperties": 64},
        description="Quantities over the good trials that were not trimmed, by name; each name ends with its unit.",
    )
    untrimmed: dict[str, Statistic] = Field(
        default_factory=dict,
        json_schema_extra={"maxProperties": 64},
        description="The same over all good trials, where some were trimmed.",
    )
    distributions: Distributions = Field(default=Distributions(), description="Merged over the good trials.")
    pair_shares: PairShares | None = Field(
        default=None, description="Of brokers: what each pair had, summed over the good trials, however many those are."
    )
    valid: bool | None = Field(
        default=None, description="Whether nothing is known that could have spoiled the numbers."
    )
    invalid: tuple[Note, ...] = Field(default=(), max_length=16, description="What could have spoiled them.")
    facts: tuple[Note, ...] = Field(default=(), max_length=16, description="What explains them, and spoils nothing.")
    engine: Engine | None = Field(default=None, description="The program that made the load.")
    display: Display = Field(default=Display(), description="The numbers as `kubectl get` shows them.")
    stored_bytes: Count = Field(default=0, description="What this and its trace take, as JSON.")

    @field_serializer("trials")
    def _without_defaults(self, trials: tuple[ResultTrial, ...]) -> list[dict[str, Any]]:
        """Fields that say nothing are left out, so that 35 trials stay within 32 KiB."""
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
    """What one case of one run measured."""

    KIND: ClassVar[Kind] = Kind(
        kind="BenchmarkResult",
        plural="benchmarkresults",
        singular="benchmarkresult",
        short_names=("results", "br"),
        namespaced=True,
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
        description="BenchmarkResult is what one case of one run measured: every trial, and what they say together.",
    )

    RULES: ClassVar[tuple[Rule, ...]] = (_SEALED,)
    SPEC_RULES: ClassVar[tuple[Rule, ...]] = (_FIXED,)

    spec: ResultSpec
    status: ResultStatus = ResultStatus()


class TrialTrace(Trace):
    """The trace of one side in one trial."""

    trial: int = Field(ge=1, le=1000, description="The trial, by its number in the result.")
    warmup: bool = Field(default=False, description="Whether it is one that is not counted.")


class TraceSpec(Model):
    """Which case of which run this is of. Its result has the same name."""

    benchmark: BenchmarkReference = Field(description="The benchmark that it belongs to.")
    run: int = Field(ge=1, description="The run.")
    case: int = Field(ge=1, description="The case's number in the benchmark's matrix.")


class TraceStatus(Model):
    """What was sampled."""

    trials: int = Field(default=0, ge=0, description="Trials that there are traces of.")
    left_out: int = Field(default=0, ge=0, description="Trials whose traces were more than 256 KiB could hold.")
    traces: tuple[TrialTrace, ...] = Field(default=(), max_length=1024, description="By trial, then by client.")


class BenchmarkTrace(Resource):
    """TCP over time in the trials of one case."""

    KIND: ClassVar[Kind] = Kind(
        kind="BenchmarkTrace",
        plural="benchmarktraces",
        singular="benchmarktrace",
        short_names=("traces",),
        namespaced=True,
        columns=(
            Column("Benchmark", ".spec.benchmark.name"),
            Column("Run", ".spec.run", "integer"),
            Column("Trials", ".status.trials", "integer"),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
        description="BenchmarkTrace is TCP over time in the trials of one case, at most 256 KiB of it: the result of "
        "the same name says what was measured. It is read when a report is drawn, and never watched.",
    )

    spec: TraceSpec
    status: TraceStatus = TraceStatus()


RESULTS: Final = BenchmarkResult.KIND.resource
TRACES: Final = BenchmarkTrace.KIND.resource
