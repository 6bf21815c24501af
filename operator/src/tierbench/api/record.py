"""BenchmarkRecord: the trials of one case of one run, their distributions, and TCP over time."""

from enum import StrEnum
from typing import Any, ClassVar, Final

from pydantic import Field, field_serializer, field_validator
from pydantic_core import PydanticCustomError

from tierbench.api.contract import Distributions, Engine, PairShares, Trace, TrialFields
from tierbench.api.model import Column, Count, Kind, Model, OpenModel, PartsPerMillion, Resource, Rule, Time
from tierbench.kinds.registry import BENCHMARKS

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


class Spread(Model):
    """A trial's distribution as a few numbers in nanoseconds."""

    mean: Count = Field(description="Arithmetic mean.")
    p50: Count = Field(description="Median.")
    p90: Count = Field(description="90th percentile.")
    p99: Count = Field(description="99th percentile.")


class CollectedBy(StrEnum):
    """How a trial came from its client to the operator."""

    LOGS = "Logs"
    PUSH = "Push"
    STATUS = "Status"


class ResultTrial(TrialFields, OpenModel):
    """A trial in a result."""

    attempt: int = Field(
        default=1, ge=1, description="The client of the case in its pass that ran the trial, counted from 1."
    )
    interrupted: bool = Field(
        default=False,
        description="Whether a node was not Ready during the trial, which was then measured again. No statistic "
        "contains it.",
    )
    collected_by: CollectedBy = Field(
        default=CollectedBy.LOGS,
        description="How the trial came to the operator: by the log of its client, by a push of the client, or by the "
        "status of its pod.",
    )
    round_trip: Spread | None = Field(
        default=None, description="Round trips in the trial: of messages through a broker, or of echo requests."
    )
    round_trip_under_load: Spread | None = Field(
        default=None, description="Round trips of echo requests during the load."
    )
    acknowledge: Spread | None = Field(
        default=None, description="Times to the acknowledgement by the broker, if the delivery has one."
    )
    pair_fairness_parts_per_million: PartsPerMillion | None = Field(
        default=None, description="Jain's index of the rates of the pairs, if there are several."
    )


class TrialTrace(Trace):
    """The trace of one sender in one trial."""

    trial: int = Field(ge=1, le=1000, description="Number of the trial in the result.")
    warmup: bool = Field(default=False, description="Whether this is a warm-up trial.")


class RecordSpec(Model):
    """The case and run that a record is about. Its result has the same name."""

    benchmark: BenchmarkReference = Field(description="The benchmark that the record belongs to.")
    run: int = Field(ge=1, description="Number of the run.")
    case: int = Field(ge=1, description="Number of the case.")


class RecordEnd(Model):
    """How the case ended. The result follows from this and the trials."""

    time: Time = Field(description="When the case ended.")
    engine: Engine | None = Field(default=None, description="The program that made the load.")
    reason: str = Field(default="", max_length=63, description="Why the case ended early, as one CamelCase word.")
    message: str = Field(default="", max_length=1024, description="Details for a person, and what to do next.")
    failed: bool = Field(default=False, description="Whether the case has failed, even if it has good trials.")


class RecordStatus(OpenModel):
    """Everything that was measured. It cannot change after the case has ended."""

    trials: tuple[ResultTrial, ...] = Field(
        default=(), max_length=95, description="All trials by number, including warm-up trials and interrupted ones."
    )
    distributions: Distributions = Field(
        default=Distributions(), description="Distributions, merged over the good trials."
    )
    pair_shares: PairShares | None = Field(
        default=None, description="Broker: the messages of each pair, summed over the good trials."
    )
    traces: tuple[TrialTrace, ...] = Field(
        default=(), max_length=1024, description="TCP over time, by trial, then by client. At most 256 KiB."
    )
    traces_left_out: tuple[int, ...] = Field(
        default=(), max_length=35, description="Numbers of the trials whose traces did not fit into 256 KiB."
    )
    ended: RecordEnd | None = Field(default=None, description="How the case ended. Absent while it is measured.")

    @field_serializer("trials")
    def _without_defaults(self, trials: tuple[ResultTrial, ...]) -> list[dict[str, Any]]:
        """Leaves out fields that have their default, so that 35 trials need at most 32 KiB."""
        return [
            trial.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True) for trial in trials
        ]


_SEALED: Final = Rule(
    "!has(oldSelf.status) || !has(oldSelf.status.ended) || (has(self.status) && self.status == oldSelf.status)",
    "a record whose case has ended cannot be changed: delete its result, or start a new run with spec.runPolicy.rerun",
)
_FIXED: Final = Rule("self == oldSelf", "the spec of a record cannot be changed: it says which case was measured")


class BenchmarkRecord(Resource):
    """The trials of one case of one run."""

    KIND: ClassVar[Kind] = Kind(
        kind="BenchmarkRecord",
        short_names=("tbrec",),
        categories=("records",),
        columns=(
            Column("Benchmark", ".spec.benchmark.name"),
            Column("Run", ".spec.run", "integer"),
            Column("Case", ".spec.case", "integer"),
            Column("Ended", ".status.ended.time", "date"),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
        description="BenchmarkRecord contains every trial of one case of one run, with its distributions and up to 256 "
        "KiB of TCP over time. The BenchmarkResult of the same name owns it and contains the statistics.",
    )
    ATOMIC: ClassVar[bool] = True

    RULES: ClassVar[tuple[Rule, ...]] = (_SEALED,)
    SPEC_RULES: ClassVar[tuple[Rule, ...]] = (_FIXED,)

    spec: RecordSpec
    status: RecordStatus = RecordStatus()


RECORDS: Final = BenchmarkRecord.KIND.resource
