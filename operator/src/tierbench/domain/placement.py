"""Pending and Queued: a run chooses its nodes, then waits until it holds the Leases of all of them."""

from datetime import timedelta
from typing import Final

from tierbench.api.benchmark import NodeAssignment, Phase
from tierbench.domain import reasons
from tierbench.domain.actions import AcquireLeases, Action, Decision, DeleteJob, Event, ReleaseLeases
from tierbench.domain.assessment import verdicts_in_progress
from tierbench.domain.node_classes import assign
from tierbench.domain.quotas import runs_to_delete, seconds_left, storage_full, too_many_at_once
from tierbench.domain.run import Run
from tierbench.domain.status import ConditionUpdate, build_status
from tierbench.domain.views import Problem
from tierbench.kube.meta import parse_time

_NOT_SUSPENDED: Final = ConditionUpdate(
    reasons.SUSPENDED, False, reasons.NOT_SUSPENDED, "spec.runPolicy.suspend is false."
)
_RETRY_SECONDS: Final = 5.0
_LEASE_MARGIN: Final = timedelta(seconds=60)
_FIRST_SECONDS: Final = 30.0  # no event tells the first in the queue that a Lease has expired
_BEHIND_SECONDS: Final = 600.0  # the benchmarks ahead wake the others


def choose_nodes(run: Run) -> Decision | None:
    """Chooses nodes for every class, once per run. Until `timeouts.schedulingSeconds`, it waits for missing classes,
    nodes and images, and for the policy to admit the benchmark."""
    if run.assignments:
        return None
    chosen = tuple(_assign(run, name) for name in run.node_classes)
    problems = [] if run.policy_problem is None else [run.policy_problem]
    problems += [Problem(item.reason, item.message or "") for item in chosen if item.reason is not None]
    problems += dict.fromkeys(run.image_problems.values())
    waited = run.now - parse_time(run.status.start_time)
    if problems and waited < timedelta(seconds=run.spec.timeouts.scheduling_seconds):
        scheduled = ConditionUpdate(reasons.SCHEDULED, False, problems[0].reason, problems[0].message)
        status = build_status(run, Phase.PENDING, scheduled, *_run_started(run))
        return Decision(status, requeue_after=_RETRY_SECONDS)
    started = run.with_status(assignments=chosen)
    nodes = f"on nodes {', '.join(started.needed_nodes)}" if started.needed_nodes else "without a usable node"
    message = f"Run {run.status.number} started: {len(run.cases)} cases {nodes}."
    scheduled = ConditionUpdate(reasons.SCHEDULED, True, reasons.NODES_CHOSEN, message)
    if problems:
        scheduled = ConditionUpdate(reasons.SCHEDULED, False, problems[0].reason, problems[0].message)
    events = [Event(reasons.RUN_STARTED, message)]
    events += [Event(item.reason, item.message, warning=True) for item in problems]
    status = build_status(started, Phase.PENDING, scheduled, *_run_started(run))
    return Decision(status, events=tuple(events), requeue_after=0)


def _run_started(run: Run) -> tuple[ConditionUpdate, ...]:
    """Resets the conditions of the previous run."""
    message = "The run is in progress."
    updates = [
        _NOT_SUSPENDED,
        ConditionUpdate(reasons.COMPLETE, False, reasons.RUNNING, message),
        ConditionUpdate(reasons.FAILED, False, reasons.RUNNING, message),
        *verdicts_in_progress(run),
    ]
    if run.observed.workload.preflight():
        updates.append(ConditionUpdate(reasons.NETWORK_MEASURED, False, reasons.RUNNING, message))
    return tuple(updates)


def _assign(run: Run, name: str) -> NodeAssignment:
    needed = run.spec.servers.nodes_per_class if name in run.spec.servers.node_classes else 1
    return assign(name, run.observed.classes.get(name), run.observed.nodes.values(), needed)


def renew_leases(run: Run, seconds: int) -> AcquireLeases:
    """Holds all nodes of the run for this many seconds, at most as long as it may, plus a margin."""
    return AcquireLeases(run.needed_nodes, run.now + timedelta(seconds=min(seconds, seconds_left(run))) + _LEASE_MARGIN)


def acquire_nodes(run: Run) -> Decision | None:
    """Acquires the Leases of all needed nodes, or queues for them. Returns None once the run holds all of them."""
    observed, nodes = run.observed, run.needed_nodes
    if not run.due or not nodes:
        return None
    crowded, turn = too_many_at_once(run), f"namespace/{observed.owner.namespace}"
    if _holds_all(run):
        if crowded is None or observed.pods or observed.jobs:
            return None
        return _queue(run, crowded.reason, crowded.message, (turn,), ReleaseLeases(nodes))
    if crowded is not None:
        return _queue(run, crowded.reason, crowded.message, (turn,))
    blocker = observed.blocked_by
    if blocker is not None:
        message = f"Waiting for {_name(run, blocker.benchmark)}, which is ahead in the queue for the same nodes."
        waits_for = (turn, *nodes) if turn in blocker.shared else nodes
        return _queue(run, reasons.OLDER_BENCHMARK_WAITS, message, waits_for, seconds=_BEHIND_SECONDS)
    full = storage_full(run)
    if full is not None:
        return _queue(run, full.reason, f"{full.message} {runs_to_delete(run)}", nodes)
    others = [
        lease
        for node in nodes
        if (lease := observed.leases.get(node))
        and lease.holder not in {"", observed.holder}
        and lease.expires > run.now
    ]
    if others:
        used = "; ".join(f"{lease.node} is in use by {_name(run, lease.holder)}" for lease in others)
        return _queue(run, reasons.NODES_BUSY, f"{used}. The run continues when these nodes are free.", nodes)
    queued = ConditionUpdate(reasons.QUEUED, False, reasons.NODES_HELD, f"Reserved nodes {', '.join(nodes)}.")
    status = build_status(run, Phase.RUNNING, queued, _NOT_SUSPENDED)
    return Decision(status, (renew_leases(run, run.spec.timeouts.server_ready_seconds),), requeue_after=0)


def _queue(
    run: Run, reason: str, message: str, waits_for: tuple[str, ...], *actions: Action, seconds: float = _FIRST_SECONDS
) -> Decision:
    observed = run.observed
    queued_before = any(
        item.type == reasons.QUEUED and item.status == "True" for item in observed.benchmark.status.conditions
    )
    events = () if queued_before else (Event(reasons.QUEUED, message),)
    # A client whose Leases expired while no operator ran must not measure any further.
    stop = tuple(DeleteJob(job.name) for job in observed.jobs if not job.deleting)
    status = build_status(run, Phase.QUEUED, ConditionUpdate(reasons.QUEUED, True, reason, message), _NOT_SUSPENDED)
    return Decision(status, (*stop, *actions), events, requeue_after=seconds, waits_for=waits_for)


def _holds_all(run: Run) -> bool:
    leases = run.observed.leases
    return all(
        (lease := leases.get(node)) is not None and lease.holder == run.observed.holder and lease.expires > run.now
        for node in run.needed_nodes
    )


def _name(run: Run, holder: str) -> str:
    """Returns the name of another benchmark, unless it is in a namespace that this tenant may not know."""
    namespace, name = holder.split("/")[:2]
    return f"{namespace}/{name}" if namespace == run.observed.owner.namespace else "a benchmark of another namespace"
