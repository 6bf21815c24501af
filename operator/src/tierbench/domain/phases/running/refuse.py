"""Marks cases that cannot be measured: they are results, too."""

from datetime import timedelta
from typing import Final

from tierbench.api.benchmark import Phase
from tierbench.api.result import ResultStatus
from tierbench.domain import reasons
from tierbench.domain.actions import Decision, Event, SaveResult
from tierbench.domain.observed import Refusal
from tierbench.domain.run import Run
from tierbench.domain.status import case_words, report
from tierbench.domain.views import Problem
from tierbench.results.record import fail
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


def refuse(run: Run, case: Case, problem: Problem) -> SaveResult:
    """Marks a case as failed; trials that it has are kept."""
    result = run.result(case)
    spec = run.result_spec(case) if result is None else result.spec
    status = ResultStatus() if result is None else result.status
    return SaveResult(run.result_name(case), spec, fail(spec, status, run.now, problem.reason, problem.message))


def lasting(run: Run, refusal: Refusal | None) -> Problem | None:
    """What the API server has not let be created for too long, as a quota or a policy of the namespace forbids it."""
    patience = timedelta(seconds=run.spec.timeouts.scheduling_seconds)
    if refusal is None or run.now - refusal.since <= patience:
        return None
    return Problem(reasons.REFUSED, f"{refusal.message}. {_HINT}")


def refusal_event(case: Case, problem: Problem) -> Event:
    """The same for `kubectl describe`."""
    return Event(reasons.CASE_FAILED, f"{case_words(case)}: {problem.reason}: {problem.message}", warning=True)
