"""Pending and Queued: a run chooses its nodes, within the administrator's quotas, and holds them for itself alone."""

from datetime import timedelta
from typing import Final

from tierbench.api.benchmark import NodeAssignment, Phase
from tierbench.domain import reasons
from tierbench.domain.actions import AcquireLeases, Action, Decision, DeleteJob, Event, ReleaseLeases
from tierbench.domain.assessment import begun
from tierbench.domain.node_classes import assign
from tierbench.domain.quotas import crowd, seconds_left, storage_full
from tierbench.domain.run import Run
from tierbench.domain.status import ConditionUpdate, build_status
from tierbench.domain.views import Problem
from tierbench.kube.clock import parse_time

_LOOK_AGAIN_SECONDS = 5.0
NOT_SUSPENDED = ConditionUpdate(reasons.SUSPENDED, False, reasons.NOT_SUSPENDED, "spec.runPolicy.suspend is false.")
_MARGIN: Final = timedelta(seconds=60)
# Whoever is first looks for Leases that have run out; whoever is behind is woken by those before.
_FIRST_SECONDS: Final = 30.0
_BEHIND_SECONDS: Final = 600.0


def choose_nodes(run: Run) -> Decision | None:
    """Chooses nodes for every class, once a run; waits a while for what is not there yet: classes, nodes, images, and
    the administrator's leave."""
    if run.assignments:
        return None
    chosen = tuple(_assign(run, name) for name in run.node_classes)
    lacking = [] if run.refused is None else [run.refused]
    lacking += [Problem(item.reason, item.message or "") for item in chosen if item.reason is not None]
    lacking += dict.fromkeys(run.unlisted_images.values())
    waited = run.now - parse_time(run.status.start_time)
    if lacking and waited < timedelta(seconds=run.spec.timeouts.scheduling_seconds):
        said = ConditionUpdate(reasons.SCHEDULED, False, lacking[0].reason, lacking[0].message)
        return Decision(build_status(run, Phase.PENDING, said, *_run_begins(run)), requeue_after=_LOOK_AGAIN_SECONDS)
    started = Run(run.observed, run.status.model_copy(update={"assignments": chosen}), run.now)
    message = f"Run {run.status.number} of {len(run.cases)} cases on {', '.join(started.needed_nodes) or 'no node'}"
    said = ConditionUpdate(reasons.SCHEDULED, True, reasons.NODES_CHOSEN, message)
    if lacking:
        said = ConditionUpdate(reasons.SCHEDULED, False, lacking[0].reason, lacking[0].message)
    events = [Event(reasons.RUN_STARTED, message)]
    events += [Event(item.reason, item.message, warning=True) for item in lacking]
    return Decision(
        build_status(started, Phase.PENDING, said, *_run_begins(run)), events=tuple(events), requeue_after=0
    )


def _run_begins(run: Run) -> tuple[ConditionUpdate, ...]:
    message = "The run is under way."
    return (
        NOT_SUSPENDED,
        ConditionUpdate(reasons.COMPLETE, False, reasons.RUNNING, message),
        ConditionUpdate(reasons.FAILED, False, reasons.RUNNING, message),
        *begun(run),
        *(
            [ConditionUpdate(reasons.NETWORK_MEASURED, False, reasons.RUNNING, message)]
            if run.observed.workload.preflight()
            else []
        ),
    )


def _assign(run: Run, name: str) -> NodeAssignment:
    needed = run.spec.servers.nodes_per_class if name in run.spec.servers.node_classes else 1
    return assign(name, run.observed.classes.get(name), run.observed.nodes.values(), needed)


def hold(run: Run, seconds: int) -> AcquireLeases:
    """The Leases of all nodes of the run, for so long, or as long as it may, and a margin."""
    return AcquireLeases(run.needed_nodes, run.now + timedelta(seconds=min(seconds, seconds_left(run))) + _MARGIN)


def hold_nodes(run: Run) -> Decision | None:
    """Has every needed node for this benchmark alone, or waits in the queue and says for whom."""
    observed = run.observed
    if not run.due or not run.needed_nodes:
        return None
    crowded, turn = crowd(run), f"namespace/{observed.owner.namespace}"
    if _holds_all(run):
        if crowded is None or observed.pods or observed.jobs:
            return None
        return _wait(run, crowded.reason, crowded.message, (turn,), ReleaseLeases(run.needed_nodes))
    if crowded is not None:
        return _wait(run, crowded.reason, crowded.message, (turn,))
    if observed.blocked_by is not None:
        message = (
            f"Waits behind {_who(run, observed.blocked_by.benchmark)} for the same nodes. Goes on by itself after it."
        )
        still = (turn,) if turn in observed.blocked_by.shared else ()
        return _wait(run, reasons.OLDER_BENCHMARK_WAITS, message, (*still, *run.needed_nodes), seconds=_BEHIND_SECONDS)
    full = storage_full(run)
    if full is not None:
        return _wait(run, full.reason, full.message, run.needed_nodes)
    others = [
        lease
        for node in run.needed_nodes
        if (lease := observed.leases.get(node))
        and lease.holder not in {"", observed.holder}
        and lease.expires > run.now
    ]
    if not others:
        leases = hold(run, run.spec.timeouts.server_ready_seconds)
        said = ConditionUpdate(
            reasons.QUEUED, False, reasons.NODES_HELD, f"Has {', '.join(run.needed_nodes)} for itself."
        )
        return Decision(build_status(run, Phase.RUNNING, said, NOT_SUSPENDED), (leases,), requeue_after=0)
    who = "; ".join(f"{lease.node} is in use by {_who(run, lease.holder)}" for lease in others)
    message = f"{who}. Goes on by itself when they are free."
    return _wait(run, reasons.NODES_BUSY, message, run.needed_nodes)


def _wait(
    run: Run, reason: str, message: str, waits_for: tuple[str, ...], *actions: Action, seconds: float = _FIRST_SECONDS
) -> Decision:
    observed = run.observed
    queued_before = any(
        item.type == reasons.QUEUED and item.status == "True" for item in observed.benchmark.status.conditions
    )
    events = () if queued_before else (Event(reasons.QUEUED, message),)
    # A client whose lease was lost (its operator was away for longer than it lasted) must not measure any further.
    stop = tuple(DeleteJob(job.name) for job in observed.jobs if not job.deleting)
    status = build_status(run, Phase.QUEUED, ConditionUpdate(reasons.QUEUED, True, reason, message), NOT_SUSPENDED)
    return Decision(status, (*stop, *actions), events, requeue_after=seconds, waits_for=waits_for)


def _holds_all(run: Run) -> bool:
    leases = run.observed.leases
    return all(
        (lease := leases.get(node)) is not None and lease.holder == run.observed.holder and lease.expires > run.now
        for node in run.needed_nodes
    )


def _who(run: Run, holder: str) -> str:
    """A benchmark by its name, unless that is another tenant's to know."""
    namespace, name = holder.split("/")[:2]
    return f"{namespace}/{name}" if namespace == run.observed.owner.namespace else "a benchmark of another namespace"
