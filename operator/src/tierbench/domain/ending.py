"""The end of a run, for good or for now: nothing is left on the nodes before they are given back."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tierbench.advice.matrix import runs
from tierbench.advice.words import answer_of_run
from tierbench.api.benchmark import Phase
from tierbench.api.timestamps import format_time
from tierbench.domain import reasons
from tierbench.domain.actions import Action, Decision, DeleteJob, DeleteResult, DeleteServer, Event, ReleaseLeases
from tierbench.domain.conditions import Said, conditions
from tierbench.domain.observed import Observed, Surroundings, out_of_reach
from tierbench.domain.outcome import outcome
from tierbench.domain.report import report
from tierbench.domain.run import Run
from tierbench.domain.strimzi_server import retire
from tierbench.workloads.names import ROLE_SERVER

_MAXIMUM_ANSWER: Final = 1024


@dataclass(frozen=True)
class Leaving:
    """A step on the way out, and how long to wait before the next."""

    actions: tuple[Action, ...]
    wait_seconds: float


def leave(here: Surroundings, now: datetime) -> Leaving | None:
    """Clears the nodes, waits until they are clear, then gives them back. None when all that is done."""
    actions = (*_clear(here), *retire(here, now))
    if here.strimzi.objects:
        return Leaving(actions, 1)
    if actions or here.jobs or any(not out_of_reach(here, pod) for pod in here.pods):
        return Leaving(actions, 5)
    held = tuple(node for node, lease in sorted(here.leases.items()) if lease.holder == here.holder)
    return Leaving((ReleaseLeases(held),), 0) if held else None


def _clear(here: Surroundings) -> tuple[Action, ...]:
    """Removes what still runs; empty when nothing is left."""
    pods = {pod.name for pod in here.pods if pod.role == ROLE_SERVER and not pod.deleting}
    servers = sorted(pods | {name.removesuffix("-agent") for name in here.services})
    jobs = [job.name for job in here.jobs if not job.deleting]
    return (*(DeleteJob(name) for name in jobs), *(DeleteServer(name) for name in servers))


def suspend(observed: Observed, now: datetime) -> Decision:
    """Stops the client and the server; what was measured is kept, and the nodes are given back."""
    benchmark = observed.benchmark
    leaving = leave(observed, now)
    message = "spec.runPolicy.suspend is true: set it to false to go on with the next trial."
    said = (
        Said(reasons.SUSPENDED, True, reasons.BY_REQUEST, message),
        Said(reasons.QUEUED, False, reasons.BY_REQUEST, "Suspended."),
        Said(reasons.SERVER_READY, False, reasons.BY_REQUEST, "Suspended."),
    )
    # The phase is what tells that nothing is due: it is written only when the nodes are clear.
    phase = Phase.SUSPENDED if leaving is None else benchmark.status.phase
    status = benchmark.status.model_copy(
        update={
            "phase": phase,
            "current": None,
            "remaining_seconds": None,
            "conditions": conditions(benchmark, said, now),
            "observed_generation": benchmark.metadata.generation,
        }
    )
    if leaving is not None:
        return Decision(status, leaving.actions, wait_seconds=leaving.wait_seconds)
    return Decision(status, events=(Event(reasons.SUSPENDED, message),))


def finish(run: Run) -> Decision:
    """Ends the run: nodes cleared and given back, old runs removed, the outcome said."""
    leaving = leave(run.observed, run.now)
    if leaving is not None:
        return Decision(report(run, Phase.RUNNING), leaving.actions, wait_seconds=leaving.wait_seconds)
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
    held = outcome(run)
    status = report(run, phase, *said, *held.said).model_copy(
        update={"remaining_seconds": None, "answer": _answer(run)}
    )
    events = (Event(reason, message, warning=not complete or counts.failed > 0), *held.events)
    return Decision(status, _prune(run), events)


def _answer(run: Run) -> str:
    results = [result for case in run.cases if (result := run.result(case)) is not None]
    return " ".join(answer_of_run(found) for found in runs(results))[:_MAXIMUM_ANSWER]


def _prune(run: Run) -> tuple[Action, ...]:
    policy, results = run.spec.run_policy, run.observed.results
    oldest_kept = run.status.number - policy.history + 1
    return tuple(
        DeleteResult(name)
        for name, result in sorted(results.items())
        if result.spec.run < oldest_kept and result.spec.run != policy.baseline_run
    )
