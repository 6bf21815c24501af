"""The first steps of a run: choose nodes, have them alone, and mark the cases that no node can take."""

from datetime import timedelta

from tierbench.api.benchmark import NodeAssignment, Phase
from tierbench.api.result import ResultStatus
from tierbench.api.timestamps import parse_time
from tierbench.domain import reasons
from tierbench.domain.actions import AcquireLeases, Action, Decision, DeleteJob, Event, SaveResult
from tierbench.domain.conditions import Said
from tierbench.domain.node_classes import assign
from tierbench.domain.outcome import begun
from tierbench.domain.report import case_words, report
from tierbench.domain.run import Run
from tierbench.domain.views import Problem
from tierbench.plan import Case
from tierbench.results.record import fail

LEASE_MARGIN = timedelta(seconds=60)
_LOOK_AGAIN_SECONDS = 5.0
_NOT_SUSPENDED = Said(reasons.SUSPENDED, False, reasons.NOT_SUSPENDED, "spec.runPolicy.suspend is false.")


def choose_nodes(run: Run) -> Decision | None:
    """Chooses nodes for every class, once a run; waits a while for classes and nodes that are not there yet."""
    if run.assignments:
        return None
    chosen = tuple(_assign(run, name) for name in run.node_classes)
    lacking = [assignment for assignment in chosen if assignment.reason is not None]
    waited = run.now - parse_time(run.status.start_time)
    if lacking and waited < timedelta(seconds=run.spec.timeouts.scheduling_seconds):
        said = Said(reasons.SCHEDULED, False, lacking[0].reason or "", lacking[0].message or "")
        return Decision(report(run, Phase.PENDING, said, *_run_begins(run)), wait_seconds=_LOOK_AGAIN_SECONDS)
    started = Run(run.observed, run.status.model_copy(update={"assignments": chosen}), run.now)
    message = f"Run {run.status.number} of {len(run.cases)} cases on {', '.join(started.needed_nodes) or 'no node'}"
    said = Said(reasons.SCHEDULED, True, reasons.NODES_CHOSEN, message)
    if lacking:
        said = Said(reasons.SCHEDULED, False, lacking[0].reason or "", lacking[0].message or "")
    events = [Event(reasons.RUN_STARTED, message)]
    events += [Event(item.reason or "", item.message or "", warning=True) for item in lacking]
    return Decision(report(started, Phase.PENDING, said, *_run_begins(run)), events=tuple(events), wait_seconds=0)


def _run_begins(run: Run) -> tuple[Said, ...]:
    message = "The run is under way."
    return (
        _NOT_SUSPENDED,
        Said(reasons.COMPLETE, False, reasons.RUNNING, message),
        Said(reasons.FAILED, False, reasons.RUNNING, message),
        *begun(run),
        *(
            [Said(reasons.NETWORK_MEASURED, False, reasons.RUNNING, message)]
            if run.observed.workload.preflight()
            else []
        ),
    )


def _assign(run: Run, name: str) -> NodeAssignment:
    needed = run.spec.servers.nodes_per_class if name in run.spec.servers.node_classes else 1
    return assign(name, run.observed.classes.get(name), run.observed.nodes.values(), needed)


def hold_nodes(run: Run) -> Decision | None:
    """Has every needed node for this benchmark alone, or waits in the queue and says for whom."""
    observed = run.observed
    if not run.due or _holds_all(run):
        return None
    others = [
        lease
        for node in run.needed_nodes
        if (lease := observed.leases.get(node))
        and lease.holder not in {"", observed.holder}
        and lease.expires > run.now
    ]
    if not others and not observed.ahead:
        until = run.now + timedelta(seconds=run.spec.timeouts.server_ready_seconds) + LEASE_MARGIN
        actions: tuple[Action, ...] = (AcquireLeases(run.needed_nodes, until),)
        said = Said(reasons.QUEUED, False, reasons.NODES_HELD, f"Has {', '.join(run.needed_nodes)} for itself.")
        return Decision(report(run, Phase.RUNNING, said, _NOT_SUSPENDED), actions, wait_seconds=0)
    if others:
        who = "; ".join(f"{lease.node} is in use by {_who(lease.holder)}" for lease in others)
        said = Said(reasons.QUEUED, True, reasons.NODES_BUSY, f"{who}. Goes on by itself when they are free.")
    else:
        message = f"{', '.join(observed.ahead)} waits for the same nodes for longer. Goes on by itself after it."
        said = Said(reasons.QUEUED, True, reasons.OLDER_BENCHMARK_WAITS, message)
    queued_before = any(
        item.type == reasons.QUEUED and item.status == "True" for item in observed.benchmark.status.conditions
    )
    events = () if queued_before else (Event(reasons.QUEUED, said.message),)
    # A client whose lease was lost (its operator was away for longer than it lasted) must not measure any further.
    stop = tuple(DeleteJob(job.name) for job in observed.jobs if not job.deleting)
    return Decision(report(run, Phase.QUEUED, said, _NOT_SUSPENDED), stop, events)


def _holds_all(run: Run) -> bool:
    leases = run.observed.leases
    return all(
        (lease := leases.get(node)) is not None and lease.holder == run.observed.holder and lease.expires > run.now
        for node in run.needed_nodes
    )


def _who(holder: str) -> str:
    return "/".join(holder.split("/")[:2])


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


def refusal_event(case: Case, problem: Problem) -> Event:
    """The same for `kubectl describe`."""
    return Event(reasons.CASE_FAILED, f"{case_words(case)}: {problem.reason}: {problem.message}", warning=True)
