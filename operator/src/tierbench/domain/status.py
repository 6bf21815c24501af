"""The statuses of benchmarks and advices: conditions, phase, progress and the remaining time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tierbench.advice.advise import advise
from tierbench.api.advice_answer import PlacementAdviceStatus
from tierbench.api.benchmark import Benchmark, BenchmarkStatus, CaseCounts, CurrentCase, Phase
from tierbench.api.contract import Outcome
from tierbench.api.model import Condition
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.result import BenchmarkResult, ResultPhase
from tierbench.domain import reasons
from tierbench.domain.actions import Event
from tierbench.domain.run import Run
from tierbench.kube.meta import format_time
from tierbench.results.units import show_levels
from tierbench.workloads.plan import Case

_MAXIMUM_MESSAGE: Final = 4096
_MAXIMUM_NAME: Final = 253
_CLIENT_START_SECONDS: Final = 3.0


@dataclass(frozen=True)
class ConditionUpdate:
    """The desired value of one status condition. A status of None is written as Unknown."""

    type: str
    status: bool | None
    reason: str
    message: str


def set_conditions(benchmark: Benchmark, updates: Iterable[ConditionUpdate], now: datetime) -> tuple[Condition, ...]:
    """Returns the conditions of the benchmark with `updates` applied. A transition time changes only with its
    status."""
    known = {condition.type: condition for condition in benchmark.status.conditions}
    for update in updates:
        before = known.get(update.type)
        status = "Unknown" if update.status is None else str(update.status)
        since = before.last_transition_time if before is not None and before.status == status else format_time(now)
        known[update.type] = Condition(
            type=update.type,
            status=status,
            reason=update.reason,
            message=update.message[:_MAXIMUM_MESSAGE],
            last_transition_time=since,
            observed_generation=benchmark.metadata.generation,
        )
    return tuple(known.values())


def build_status(run: Run, phase: Phase, *updates: ConditionUpdate, current: Sequence[Case] = ()) -> BenchmarkStatus:
    """Returns the status of a benchmark during a run, in which the `current` cases are measured."""
    benchmark = run.observed.benchmark
    counts = _count(run)
    return BenchmarkStatus(
        **(benchmark.status.model_extra or {}),
        observed_generation=benchmark.metadata.generation,
        phase=phase,
        progress=f"{counts.ended}/{counts.total}",
        remaining_seconds=remaining_seconds(run),
        cases=counts,
        current=_current(run, current) if current else None,
        run=run.status,
        best=benchmark.status.best,
        answer=benchmark.status.answer,
        conditions=set_conditions(benchmark, updates, run.now),
    )


def _count(run: Run) -> CaseCounts:
    statuses = [result.status for result in run.results]
    return CaseCounts(
        total=len(run.cases),
        ended=len(run.cases) - len(run.due),
        failed=sum(status.phase is ResultPhase.FAILED for status in statuses),
        invalid=sum(status.phase is ResultPhase.MEASURED and status.valid is False for status in statuses),
    )


def describe_cases(*cases: Case) -> str:
    """Returns a short description of one case, or of cases that differ only in their server."""
    servers = dict.fromkeys(case.server.node_class for case in cases)
    return f"{show_levels(cases[0].levels)}, {', '.join(servers)} to {cases[0].client}"


def _current(run: Run, cases: Sequence[Case]) -> CurrentCase:
    results = [result for case in cases if (result := run.result(case)) is not None]
    of_passes = f", pass {run.pass_number} of {run.passes}" if run.passes > 1 else ""
    return CurrentCase(
        name=(describe_cases(*cases) + of_passes)[:_MAXIMUM_NAME],
        result=run.result_name(cases[0]),
        trials=sum(not trial.warmup for result in results for trial in result.status.trials),
        of=run.spec.repetitions * len(cases),
    )


def remaining_seconds(run: Run) -> int | None:
    """Returns an estimate of the seconds left, or None before the first trial.

    Each missing trial takes as long as the trials so far, by weight. Each block adds the start of one client.
    """
    spent = weight = left = 0.0
    for case in run.cases:
        result, of_trial = run.result(case), run.observed.workload.weight(case) / run.spec.repetitions
        trials = () if result is None else result.status.trials
        measured = sum(not trial.warmup for trial in trials)
        if not run.ended(case):
            left += of_trial * (run.spec.repetitions - measured)
        if result is not None and result.status.phase is not ResultPhase.FAILED:
            good = [trial for trial in trials if trial.outcome is Outcome.COMPLETED]
            spent += sum(trial.duration_nanoseconds for trial in good) / 1e9
            weight += of_trial * measured
    if not weight:
        return None
    return round(spent / weight * left + _CLIENT_START_SECONDS * len(run.due_blocks))


def advice_status(
    advice: PlacementAdvice, results: Iterable[BenchmarkResult], classes: Sequence[NodeClass], now: datetime
) -> PlacementAdviceStatus:
    """Returns the status of an advice for these results. A transition time changes only with its status."""
    status = advise(advice.spec, results, now, classes)
    known = {condition.type: condition for condition in advice.status.conditions}
    generation = advice.metadata.generation
    conditions = tuple(_keep_time(condition, known.get(condition.type), generation) for condition in status.conditions)
    return status.model_copy(update={"observed_generation": generation, "conditions": conditions})


def _keep_time(condition: Condition, before: Condition | None, generation: int) -> Condition:
    same = before is not None and before.status == condition.status
    since = before.last_transition_time if before is not None and same else condition.last_transition_time
    return condition.model_copy(update={"last_transition_time": since, "observed_generation": generation})


def advice_events(before: PlacementAdviceStatus, after: PlacementAdviceStatus) -> tuple[Event, ...]:
    """Returns an event if another alternative is best, or none is any more."""
    if before.best == after.best:
        return ()
    return (Event(reasons.BEST_CHANGED, after.answer, warning=not after.best),)
