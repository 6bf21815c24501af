"""The statuses of benchmarks and advices: conditions, phase, progress."""

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
from tierbench.domain.actions import Event
from tierbench.domain.run import Run
from tierbench.kube.clock import format_time
from tierbench.results.levels import levels_in_short
from tierbench.workloads.plan import Case

_MOST_CHARACTERS: Final = 4096
_MAXIMUM_NAME: Final = 253
_START_SECONDS: Final = 3.0
BEST_CHANGED: Final = "BestChanged"


@dataclass(frozen=True)
class ConditionUpdate:
    """What is to be said of one condition; a status of None is Unknown."""

    type: str
    status: bool | None
    reason: str
    message: str


def set_conditions(benchmark: Benchmark, said: Iterable[ConditionUpdate], now: datetime) -> tuple[Condition, ...]:
    """The conditions as they were, with `said` in place; a transition time changes only with its status."""
    known = {condition.type: condition for condition in benchmark.status.conditions}
    for item in said:
        before = known.get(item.type)
        status = "Unknown" if item.status is None else str(item.status)
        since = before.last_transition_time if before is not None and before.status == status else format_time(now)
        known[item.type] = Condition(
            type=item.type,
            status=status,
            reason=item.reason,
            message=item.message[:_MOST_CHARACTERS],
            last_transition_time=since,
            observed_generation=benchmark.metadata.generation,
        )
    return tuple(known.values())


def build_status(run: Run, phase: Phase, *said: ConditionUpdate, current: Sequence[Case] = ()) -> BenchmarkStatus:
    """The whole status of a benchmark with a run under way."""
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
        evictions=benchmark.status.evictions,
        best=benchmark.status.best,
        answer=benchmark.status.answer,
        conditions=set_conditions(benchmark, said, run.now),
    )


def _count(run: Run) -> CaseCounts:
    statuses = [result.status for case in run.cases if (result := run.result(case)) is not None]
    return CaseCounts(
        total=len(run.cases),
        ended=len(run.cases) - len(run.due),
        failed=sum(status.phase is ResultPhase.FAILED for status in statuses),
        invalid=sum(status.phase is ResultPhase.MEASURED and status.valid is False for status in statuses),
    )


def case_words(case: Case) -> str:
    """A case in a few words."""
    return cases_words([case])


def cases_words(cases: Sequence[Case]) -> str:
    """Cases that differ in nothing but their server, likewise."""
    servers = dict.fromkeys(case.server.node_class for case in cases)
    return f"{levels_in_short(cases[0].levels)}, {', '.join(servers)} to {cases[0].client}"


def _current(run: Run, cases: Sequence[Case]) -> CurrentCase:
    results = [result for case in cases if (result := run.result(case)) is not None]
    return CurrentCase(
        name=(cases_words(cases) + _pass_words(run))[:_MAXIMUM_NAME],
        result=run.result_name(cases[0]),
        trials=sum(not trial.warmup for result in results for trial in result.status.trials),
        of=run.spec.repetitions * len(cases),
    )


def _pass_words(run: Run) -> str:
    return f", pass {run.pass_number} of {run.passes}" if run.passes > 1 else ""


def remaining_seconds(run: Run) -> int | None:
    """Time left: what the trials so far took for their weight, and the start of a client for each block to come."""
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
    return round(spent / weight * left + _START_SECONDS * len(run.due_blocks))


def advice_status(
    advice: PlacementAdvice, results: Iterable[BenchmarkResult], classes: Sequence[NodeClass], now: datetime
) -> PlacementAdviceStatus:
    """The status that the results ask for; a transition time changes only with its condition's status."""
    fresh = advise(advice.spec, results, now, classes)
    known = {condition.type: condition for condition in advice.status.conditions}
    generation = advice.metadata.generation
    settled = tuple(_settled(condition, known.get(condition.type), generation) for condition in fresh.conditions)
    return fresh.model_copy(update={"observed_generation": generation, "conditions": settled})


def _settled(condition: Condition, before: Condition | None, generation: int) -> Condition:
    same = before is not None and before.status == condition.status
    since = before.last_transition_time if before is not None and same else condition.last_transition_time
    return condition.model_copy(update={"last_transition_time": since, "observed_generation": generation})


def advice_events(before: PlacementAdviceStatus, after: PlacementAdviceStatus) -> tuple[Event, ...]:
    """Events for what has changed: something else is best, or nothing any more."""
    if before.best == after.best:
        return ()
    return (Event(BEST_CHANGED, after.answer, warning=not after.best),)
