"""Complete, or Failed if nothing could be measured: a run ends, and the next is waited for."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from tierbench.advice.answer import answer, best
from tierbench.advice.matrix import runs
from tierbench.api.benchmark import Phase
from tierbench.api.model import format_time, parse_time
from tierbench.domain import reasons
from tierbench.domain.actions import Decision, DeleteBenchmark, DeleteResult, Event
from tierbench.domain.assessment import assess, begun
from tierbench.domain.conditions import Said
from tierbench.domain.leave import leave
from tierbench.domain.limits import history, outdated, too_many_cases
from tierbench.domain.observed import Observed
from tierbench.domain.run import Run
from tierbench.domain.schedule import plan_next, seconds_to_next, warnings
from tierbench.domain.status import report
from tierbench.domain.views import Problem

_MAXIMUM_ANSWER: Final = 1024


def finish(run: Run) -> Decision:
    """Ends the run: nodes cleared and given back, old runs removed, the outcome said."""
    leaving = leave(run.observed, run.now)
    if leaving is not None:
        return Decision(report(run, Phase.RUNNING), leaving.actions, wait_seconds=leaving.wait_seconds)
    if run.observed.earlier is None and any(result.run != run.status.number for result in run.observed.kept):
        return Decision(report(run, Phase.RUNNING), wait_seconds=0, reads_earlier=True)
    run = Run(run.observed, run.status.model_copy(update={"completion_time": format_time(run.now)}), run.now)
    draft = report(run, Phase.COMPLETE)
    counts = draft.cases
    measured = counts.total - counts.failed
    message = (
        f"{measured} of {counts.total} cases measured, {counts.invalid} of them not valid, {counts.failed} failed."
    )
    if measured:
        reason = reasons.SOME_CASES_FAILED if counts.failed else reasons.ALL_CASES_MEASURED
        phase, complete = Phase.COMPLETE, True
    else:
        phase, complete, reason = Phase.FAILED, False, reasons.NO_CASE_MEASURED
        message += " See the events, and the reasons in `kubectl get results -o yaml`."
    said = (
        Said(reasons.COMPLETE, complete, reason, message),
        Said(reasons.FAILED, not complete, reason, message),
        Said(reasons.SERVER_READY, False, reason, "The run has ended."),
    )
    held = assess(run)
    status = report(run, phase, *said, *held.said).model_copy(update={"remaining_seconds": None, **_answer(run)})
    events = (Event(reason, message, warning=not complete or counts.failed > 0), *held.events, *_shortened(run))
    return Decision(status, tuple(map(DeleteResult, outdated(run, history(run)))), events)


def refuse_run(run: Run) -> Decision | None:
    """Ends a run before it has begun, if it is one that must not be."""
    problem = None if run.assignments else too_many_cases(run)
    return None if problem is None else _fail(run, problem)


def abandon(run: Run) -> Decision | None:
    """Ends a run of which a case can neither be kept as measured nor as failed: no case of it would fare better."""
    refused = [name for name in run.observed.unwritable if name in map(run.result_name, run.cases)]
    if not refused:
        return None
    leaving = leave(run.observed, run.now)
    if leaving is not None:
        return Decision(report(run, Phase.RUNNING), leaving.actions, wait_seconds=leaving.wait_seconds)
    message = (
        f"The API server takes no result {min(refused)}: {run.observed.refused_results.get(min(refused), '')}. If the "
        "CustomResourceDefinitions are of another version than the operator, upgrade both, then set "
        "spec.runPolicy.rerun."
    )
    return _fail(run, Problem(reasons.RESULT_REFUSED, message))


def _fail(run: Run, problem: Problem) -> Decision:
    run = Run(run.observed, run.status.model_copy(update={"completion_time": format_time(run.now)}), run.now)
    said = (
        Said(reasons.SCHEDULED, False, problem.reason, problem.message),
        Said(reasons.COMPLETE, False, problem.reason, problem.message),
        Said(reasons.FAILED, True, problem.reason, problem.message),
        *(replace(verdict, reason=problem.reason, message=problem.message) for verdict in begun(run)),
    )
    return Decision(report(run, Phase.FAILED, *said), events=(Event(problem.reason, problem.message, warning=True),))


def _answer(run: Run) -> dict[str, str]:
    results = [result for case in run.cases if (result := run.result(case)) is not None]
    found = runs(results)
    sentences = " ".join(text for each in found for text in answer(each))
    return {"best": "".join(map(best, found)), "answer": sentences[:_MAXIMUM_ANSWER]}


def _shortened(run: Run) -> tuple[Event, ...]:
    """That results go which the benchmark would have kept."""
    asked, most = run.spec.run_policy.history, history(run)
    if outdated(run, asked) == outdated(run, most):
        return ()
    message = (
        f"spec.runPolicy.history asks for {asked} runs, and limits.history, a value of the chart, lets {most} be kept: "
        "the results of older ones go. Export those of the next in time, or have it raised."
    )
    return (Event(reasons.HISTORY_LIMITED, message, warning=True),)


def wait_for_next(observed: Observed, now: datetime) -> Decision:
    """Nothing is due but, perhaps, the next run or the end of its time to live."""
    leaving = leave(observed, now)
    if leaving is not None:
        return Decision(observed.benchmark.status, leaving.actions, wait_seconds=leaving.wait_seconds)
    status, policy = plan_next(observed.benchmark, now), observed.benchmark.spec.run_policy
    wait, events = seconds_to_next(status, now), warnings(observed.benchmark.status, status)
    if policy.ttl_seconds is None or status.run is None or status.run.completion_time is None:
        return Decision(status, events=events, wait_seconds=wait)
    end = parse_time(status.run.completion_time) + timedelta(seconds=policy.ttl_seconds)
    if now >= end:
        return Decision(status, (DeleteBenchmark(),))
    return Decision(status, events=events, wait_seconds=min(wait, (end - now).total_seconds()))
