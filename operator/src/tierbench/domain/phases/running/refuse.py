"""Marks cases that cannot be measured: they are results, too."""

from datetime import timedelta
from typing import Final

from tierbench.api.benchmark import Phase
from tierbench.api.contract import Outcome
from tierbench.api.result import Note, ResultStatus
from tierbench.domain import reasons
from tierbench.domain.actions import Decision, Event, SaveResult
from tierbench.domain.limits import storage_full, too_large, too_long
from tierbench.domain.observed import Refusal
from tierbench.domain.run import Run
from tierbench.domain.status import case_words, report
from tierbench.domain.views import Problem
from tierbench.results.record import conclude, fail
from tierbench.results.sizes import sized
from tierbench.workloads.plan import Case

_HINT: Final = (
    "See the quotas and the pod-security labels of the namespace: give what they ask for in spec.servers.resources and "
    "spec.clients.resources, or ask for other storage or access."
)


def refuse_impossible(run: Run) -> Decision | None:
    """Marks every case that lacks a node for its server or its client."""
    refused = [(case, node) for case in run.due if isinstance(node := run.client_nodes(case), Problem)]
    if not refused:
        return None
    actions = tuple(refuse(run, case, problem) for case, problem in refused)
    events = tuple(
        Event(problem.reason, problem.message, warning=True) for problem in dict.fromkeys(p for _, p in refused)
    )
    return Decision(report(run, Phase.RUNNING), actions, events, wait_seconds=0)


def refuse_rest(run: Run) -> Decision | None:
    """Ends every case that is left once the run has taken what it may, unless a client still measures: that one is
    ended by its own deadline."""
    problem = too_long(run) or too_large(run) or storage_full(run)
    if problem is None or not run.due or not all(job.deleting for job in run.observed.jobs):
        return None
    actions = tuple(end_early(run, case, problem) for case in run.due)
    event = Event(problem.reason, f"{len(run.due)} cases: {problem.message}", warning=True)
    return Decision(report(run, Phase.RUNNING), actions, (event,), wait_seconds=0)


def end_early(run: Run, case: Case, problem: Problem) -> SaveResult:
    """Ends a case between two of its clients: Measured with a note if a trial was good, else Failed."""
    result = run.result(case)
    trials = () if result is None else result.status.trials
    if result is None or not any(trial.outcome is Outcome.COMPLETED and not trial.warmup for trial in trials):
        return refuse(run, case, problem)
    why = Note(reason=problem.reason, message=problem.message[:512])
    return SaveResult(run.result_name(case), result.spec, conclude(result.spec, result.status, run.now, None, why))


def refuse(run: Run, case: Case, problem: Problem) -> SaveResult:
    """Marks a case as failed; trials that it has are kept."""
    result = run.result(case)
    spec = run.result_spec(case) if result is None else result.spec
    status = ResultStatus() if result is None else result.status
    failed = fail(spec, status, run.now, problem.reason, problem.message)
    return SaveResult(run.result_name(case), spec, sized(failed) if result is None else failed)


def lasting(run: Run, refusal: Refusal | None) -> Problem | None:
    """What the API server has not let be created for too long, as a quota or a policy of the namespace forbids it."""
    patience = timedelta(seconds=run.spec.timeouts.scheduling_seconds)
    if refusal is None or run.now - refusal.since <= patience:
        return None
    return Problem(reasons.REFUSED, f"{refusal.message}. {_HINT}")


def refusal_event(case: Case, problem: Problem) -> Event:
    """The same for `kubectl describe`."""
    return Event(reasons.CASE_FAILED, f"{case_words(case)}: {problem.reason}: {problem.message}", warning=True)
