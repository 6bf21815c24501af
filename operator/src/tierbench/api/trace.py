"""BenchmarkTrace: TCP over time in the trials of one case, too large for its result."""

from typing import ClassVar, Final

from pydantic import Field

from tierbench.api.contract import Trace
from tierbench.api.model import Column, Kind, Model, Resource
from tierbench.api.result import BenchmarkReference

MAXIMUM_BYTES: Final = 256 * 1024


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
