"""The status of a benchmark, written from what is observed."""

from collections.abc import Sequence
from typing import Final

from tierbench.api.benchmark import BenchmarkStatus, CaseCounts, CurrentCase, Phase
from tierbench.api.contract import Outcome
from tierbench.api.result import ResultPhase
from tierbench.domain.conditions import Said, conditions
from tierbench.domain.run import Run
from tierbench.results.levels import levels_in_short
from tierbench.workloads.plan import Case

_MAXIMUM_NAME: Final = 253
_START_SECONDS: Final = 3.0


def report(run: Run, phase: Phase, *said: Said, current: Sequence[Case] = ()) -> BenchmarkStatus:
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
        conditions=conditions(benchmark, said, run.now),
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
