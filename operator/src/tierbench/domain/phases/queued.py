"""Queued: until a benchmark has all of its nodes alone it waits for others, and says for whom."""

from datetime import timedelta
from typing import Final

from tierbench.api.benchmark import Phase
from tierbench.domain import reasons
from tierbench.domain.actions import AcquireLeases, Action, Decision, DeleteJob, Event, ReleaseLeases
from tierbench.domain.conditions import Said
from tierbench.domain.limits import crowd, seconds_left, storage_full
from tierbench.domain.phases.pending import NOT_SUSPENDED
from tierbench.domain.run import Run
from tierbench.domain.status import report

_MARGIN: Final = timedelta(seconds=60)
# Whoever is first looks for Leases that have run out; whoever is behind is woken by those before.
_FIRST_SECONDS: Final = 30.0
_BEHIND_SECONDS: Final = 600.0


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
    if observed.ahead is not None:
        message = f"Waits behind {_who(run, observed.ahead.who)} for the same nodes. Goes on by itself after it."
        still = (turn,) if turn in observed.ahead.shared else ()
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
        said = Said(reasons.QUEUED, False, reasons.NODES_HELD, f"Has {', '.join(run.needed_nodes)} for itself.")
        return Decision(report(run, Phase.RUNNING, said, NOT_SUSPENDED), (leases,), wait_seconds=0)
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
    status = report(run, Phase.QUEUED, Said(reasons.QUEUED, True, reason, message), NOT_SUSPENDED)
    return Decision(status, (*stop, *actions), events, wait_seconds=seconds, waits_for=waits_for)


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
