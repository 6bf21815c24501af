"""The rows of one case in a long table as a result: trials as they were, or a mean of which no trial is known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Final

from tierbench.api.contract import Outcome
from tierbench.api.measurements import Failure
from tierbench.api.result import (
    BenchmarkReference,
    BenchmarkResult,
    Counts,
    NodeFacts,
    Note,
    ResultPhase,
    ResultSpec,
    ResultStatus,
    Statistic,
)
from tierbench.kinds.registry import BENCHMARKS
from tierbench.results.columns import PLACES
from tierbench.results.quantities import GivenTrial
from tierbench.results.record import display, summarize
from tierbench.stats.samples import mean_interval

UNKNOWN: Final = "unknown"
"""The class of a side of which a table names none."""
_ENOUGH: Final = 2
_MEAN: Final = "PublishedMean"
_OF_TRIALS: Final = Note(reason=_MEAN, message="A published mean: of its single trials nothing is known.")
_ALONE: Final = Note(
    reason=_MEAN,
    message="A published mean without the number of its trials or their standard deviation: it is in no verdict.",
)


@dataclass(frozen=True)
class Row:
    """A line. `places` are in the order of PLACES; a mean has `trial` 0, and `trials` 0 if not known.

    `failure` is the reason of a trial that failed.
    """

    line: int
    places: tuple[str, ...]
    levels: Mapping[str, str]
    values: Mapping[str, float]
    deviations: Mapping[str, float] = field(default_factory=dict)
    trial: int = 0
    trials: int = 0
    warmup: bool = False
    failure: str = ""
    start_time: str = ""

    def place(self, column: str) -> str:
        """The cell of one of PLACES; empty if there is none."""
        return self.places[PLACES.index(column)]

    @property
    def run_key(self) -> tuple[str, ...]:
        """What tells its run from others."""
        return tuple(self.place(column) for column in ("namespace", "kind", "benchmark", "run"))


def is_mean(published: BenchmarkResult) -> bool:
    """Whether it is a published mean, of whose trials, retries and percentiles nothing is known."""
    return any(fact.reason == _MEAN for fact in published.status.facts)


def is_mean_alone(published: BenchmarkResult) -> bool:
    """Whether it is one without its number of trials or their deviation, from which nothing is concluded."""
    return _ALONE in published.status.facts


def result(rows: Sequence[Row], number: int, origin: str) -> BenchmarkResult:
    """The result of a case. `number` is its own among those of its run, where the table has no numbers."""
    spec = _spec(rows, number)
    status = _of_trials(spec, rows) if rows[0].trial else _of_mean(spec, rows[0])
    prefix = BENCHMARKS[spec.benchmark.kind].PREFIX
    metadata = {
        "name": f"{prefix}-{spec.benchmark.name}-r{spec.run}-c{spec.case:03d}",
        "namespace": rows[0].place("namespace") or None,
        "uid": origin,
    }
    return BenchmarkResult.model_validate({"metadata": metadata, "spec": spec, "status": status})


def _spec(rows: Sequence[Row], number: int) -> ResultSpec:
    first = rows[0]
    return ResultSpec(
        benchmark=BenchmarkReference(kind=first.place("kind"), name=first.place("benchmark")),
        run=int(first.place("run") or 1),
        case=int(first.place("case") or number),
        levels=dict(first.levels),
        server=NodeFacts(node_class=first.place("serverClass") or UNKNOWN, node=first.place("serverNode")),
        client=NodeFacts(
            node_class=first.place("clientClass") or UNKNOWN,
            node=first.place("clientNode"),
            access_network=first.place("clientAccessNetwork"),
        ),
        trials=max(1, sum(not row.warmup for row in rows) if first.trial else first.trials),
        warmup=sum(row.warmup for row in rows),
    )


def _of_trials(spec: ResultSpec, rows: Sequence[Row]) -> ResultStatus:
    trials = sorted((_trial(row) for row in rows), key=lambda trial: (not trial.warmup, trial.trial))
    status = summarize(spec, ResultStatus(trials=tuple(trials)))
    if status.counts.completed:
        return status.model_copy(update={"phase": ResultPhase.MEASURED})
    reason = next((row.failure for row in rows if row.failure), "NoTrial")
    return status.model_copy(update={"phase": ResultPhase.FAILED, "reason": reason})


def _trial(row: Row) -> GivenTrial:
    failure = Failure(reason=row.failure, message="") if row.failure else None
    return GivenTrial(
        trial=row.trial,
        warmup=row.warmup,
        outcome=Outcome.COMPLETED if failure is None else Outcome.FAILED,
        failure=failure,
        start_time=row.start_time,
        duration_nanoseconds=round(row.values.get("durationNanoseconds", 0)),
        given=row.values,
    )


def _of_mean(spec: ResultSpec, row: Row) -> ResultStatus:
    statistics = {
        name: _statistic(mean, row.deviations.get(name), row.trials)
        for name, mean in row.values.items()
        if name != "retries"
    }
    status = ResultStatus(
        phase=ResultPhase.MEASURED,
        counts=Counts(completed=row.trials, retries=round(row.values.get("retries", 0) * row.trials)),
        statistics=statistics,
        facts=(_OF_TRIALS if all(one.count for one in statistics.values()) else _ALONE,),
    )
    return status.model_copy(update={"display": display(spec, status, "").model_copy(update={"p99": ""})})


def _statistic(mean: float, deviation: float | None, trials: int) -> Statistic:
    """A mean alone counts no trials, so that nothing is concluded from it. Of where the trials lay nothing is known:
    the mean stands for it, and is nowhere read."""
    known = deviation is not None and trials >= _ENOUGH
    ends = mean_interval(mean, (deviation or 0) / sqrt(trials), trials - 1) if known else None
    whole = round(mean)
    return Statistic(
        count=trials if known else 0,
        mean=whole,
        standard_deviation=None if deviation is None else round(deviation),
        minimum=whole,
        maximum=whole,
        p50=whole,
        p90=whole,
        p99=whole,
        confidence_low=None if ends is None else round(ends[0]),
        confidence_high=None if ends is None else round(ends[1]),
    )
