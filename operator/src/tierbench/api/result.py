"""BenchmarkResult: the statistics of one case of one run. A BenchmarkRecord has its trials."""

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import Field

from tierbench.api.contract import Engine
from tierbench.api.link import Link
from tierbench.api.measurements import NodeNetwork
from tierbench.api.model import Column, Count, Kind, Model, Nanoseconds, OpenModel, Reason, Resource, Rule, Time
from tierbench.api.record import BenchmarkRecord, BenchmarkReference, RecordSpec, RecordStatus
from tierbench.api.run_policy import Trim

Level = Annotated[str, Field(max_length=63)]

LABEL_SUPERSEDED: Final = "tierbench.io/superseded"
"""The label of the results of a run whose spec changed before the run had ended."""


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
        description="Number of the case in its run, the same in every run of the same spec. The cases of refinements "
        "have the numbers after those of the spec.",
    )
    levels: dict[str, Level] = Field(
        json_schema_extra={"maxProperties": 24}, description="The level of each factor, by the factor's name."
    )
    settings: dict[str, Level] = Field(
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
    link: Link | None = Field(default=None, description="The link of the client, as the spec declares it.")
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
    warmup_trials: int = Field(default=0, ge=0, description="Number of warm-up trials.")
    trim: Trim | None = Field(default=None, description="The trials that are left out of the statistics.")

    def to_json(self) -> dict[str, Any]:
        """Returns the object without fields that have their default, because many results are stored."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)


class ResultPhase(StrEnum):
    """Whether a result can still change."""

    RUNNING = "Running"
    COMPLETE = "Complete"
    FAILED = "Failed"


class Statistic(Model):
    """A quantity over the good trials of a case, in the unit at the end of its name.

    Only quantities that advice compares have a median and an interval.
    """

    count: Count = Field(description="Number of trials of this statistic.")
    mean: int = Field(description="Arithmetic mean.")
    standard_deviation: Count | None = Field(
        default=None, description="Standard deviation of the sample (n - 1). Absent with one trial."
    )
    p50: int | None = Field(default=None, description="Median.")
    confidence_low: int | None = Field(
        default=None,
        description="Lower end of the 95% confidence interval of the mean (Student's t). Absent with one trial.",
    )
    confidence_high: int | None = Field(
        default=None, description="Upper end of the 95% confidence interval of the mean."
    )


class Percentile(Model):
    """A percentile with its 95% confidence interval. An end is absent if there are too few values for it."""

    count: Count = Field(description="Number of values.")
    value: Count = Field(description="The percentile in nanoseconds.")
    confidence_low: Count | None = Field(default=None, description="Lower end of the interval.")
    confidence_high: Count | None = Field(default=None, description="Upper end of the interval.")
    standard_error: Count | None = Field(
        default=None, description="Standard error over trials. Absent if there are too few."
    )


class CoarseHistogram(Model):
    """A distribution of times in buckets that double.

    Bucket e contains the values v with 2^(e-1) s < v <= 2^e s.
    """

    sum_nanoseconds: Nanoseconds = Field(description="Sum of the values.")
    exponents: tuple[int, ...] = Field(
        default=(), max_length=64, description="The buckets e that are not empty, ascending."
    )
    counts: tuple[Count, ...] = Field(default=(), max_length=64, description="Number of values in each bucket.")


class MessageCounts(Model):
    """Counts of messages over all counted trials. sent = received + lost.

    If several subscribers receive every message, it counts once for each of them: received + lost = sent × subscribers.
    Without subscribers, the fields about receiving are absent.
    """

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


class Counts(Model):
    """Events over all counted trials."""

    completed: Count = Field(default=0, description="Good trials: those that ended with everything that was asked for.")
    failed: Count = Field(default=0, description="Failed trials. No statistic contains them.")
    timed_out: Count = Field(default=0, description="Failed trials that took too long and were stopped.")
    good_nanoseconds: Count = Field(default=0, description="Sum of the durations of the good trials.")
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


class ResultStatus(OpenModel):
    """The measurements. They cannot change after the phase is Complete or Failed."""

    phase: ResultPhase = Field(default=ResultPhase.RUNNING, description="Running, Complete or Failed.")
    reason: str = Field(default="", max_length=63, description="Why the case failed, as one CamelCase word.")
    message: str = Field(default="", max_length=1024, description="Details for a person, and what to do next.")
    completion_time: Time | None = Field(default=None, description="When the case ended.")
    passes_done: int = Field(
        default=0, ge=0, description="Number of passes whose trials are complete, while the phase is Running."
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
    percentiles: dict[str, Percentile] = Field(
        default_factory=dict,
        json_schema_extra={"maxProperties": 3},
        description="The percentiles P50, P90 and P99 of the time that the kind of benchmark compares, over everything "
        "that the good trials measured: messages or echo requests if trials have many, otherwise trials.",
    )
    histograms: dict[str, CoarseHistogram] = Field(
        default_factory=dict,
        json_schema_extra={"maxProperties": 2},
        description="The distributions of times over the good trials, by quantity.",
    )
    totals: dict[str, Count] = Field(
        default_factory=dict,
        json_schema_extra={"maxProperties": 16},
        description="Sums over the good trials that metrics need and no statistic has, by name.",
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
    stored_bytes: Count = Field(default=0, description="Size of this object and its record as JSON.")

    def to_json(self) -> dict[str, Any]:
        """Returns the object without what is empty, because many results are stored."""
        return {name: value for name, value in super().to_json().items() if value or value is False}


_SEALED = Rule(
    "!has(oldSelf.status) || !has(oldSelf.status.phase) || oldSelf.status.phase == 'Running'"
    " || (has(self.status) && self.status == oldSelf.status)",
    "a result that is Complete or Failed cannot be changed: delete it, or start a new run with spec.runPolicy.rerun",
)
_FIXED = Rule("self == oldSelf", "the spec of a result cannot be changed: it says which case was measured")


class BenchmarkResult(Resource):
    """The measurements of one case of one run."""

    KIND: ClassVar[Kind] = Kind(
        kind="BenchmarkResult",
        short_names=("tbr",),
        categories=("results",),
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
        description="BenchmarkResult contains the statistics of one case of one run. The BenchmarkRecord of the same "
        "name contains every trial.",
    )
    ATOMIC: ClassVar[bool] = True

    RULES: ClassVar[tuple[Rule, ...]] = (_SEALED,)
    SPEC_RULES: ClassVar[tuple[Rule, ...]] = (_FIXED,)

    spec: ResultSpec
    status: ResultStatus = ResultStatus()
    record: BenchmarkRecord | None = Field(default=None, exclude=True)
    """The record of the same name, if it was read, too. It is no part of the object."""

    def with_record(self, status: RecordStatus) -> Self:
        """Returns the result together with what its record contains."""
        reference = RecordSpec(benchmark=self.spec.benchmark, run=self.spec.run, case=self.spec.case)
        record = BenchmarkRecord(metadata=self.metadata, spec=reference, status=status)
        return self.model_copy(update={"record": record})

    @property
    def superseded(self) -> bool:
        """Whether the spec of the benchmark changed before the run had ended."""
        return self.metadata.labels.get(LABEL_SUPERSEDED) == "true"

    @property
    def recorded(self) -> RecordStatus:
        """What the record contains. It is empty if the record was not read."""
        return RecordStatus() if self.record is None else self.record.status


RESULTS: Final = BenchmarkResult.KIND.resource
