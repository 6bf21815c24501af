"""decide(): the whole behaviour of the operator towards one benchmark, as a pure function."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from tierbench.api.benchmark import Phase, RunStatus
from tierbench.domain import reasons
from tierbench.domain.actions import Decision, DeleteResult, Event
from tierbench.domain.completion import abandon, finish, is_time, refuse_run, suspend, wait_for_next
from tierbench.domain.measuring import measure, refine
from tierbench.domain.observed import Observed
from tierbench.domain.placement import choose_nodes, hold_nodes
from tierbench.domain.preflight import preflight
from tierbench.domain.run import Run
from tierbench.domain.servers import refuse_impossible, refuse_rest, serve
from tierbench.domain.status import ConditionUpdate, set_conditions
from tierbench.kube.clock import format_time

_NAMED: Final = 5


def needs_reconcile(observed_generation: int, generation: int, phase: Phase, *, later: bool) -> bool:
    """Whether a benchmark needs the operator at all: nothing is read or written for one that does not.

    `later` says that its policy asks for something after the end of a run: the next one, or the end of its time.
    """
    settled = phase in {Phase.COMPLETE, Phase.FAILED, Phase.SUSPENDED} and observed_generation == generation
    return not settled or (later and phase is not Phase.SUSPENDED)


def decide(observed: Observed, now: datetime) -> Decision:
    """The next step of a benchmark. Called again after every change, and at the latest after `requeue_after`."""
    return _with_definitions(observed, _decide(observed, now), now)


def _decide(observed: Observed, now: datetime) -> Decision:
    status = _run_to_do(observed, now)
    if status is None:
        return wait_for_next(observed, now)
    if observed.benchmark.spec.run_policy.suspend:
        return suspend(observed, now)
    run = Run(observed, status, now)
    if run.misfits:
        return _discard(run)
    begun = abandon(run) or refuse_run(run) or choose_nodes(run) or hold_nodes(run)
    prepared = begun or refuse_impossible(run) or refuse_rest(run) or preflight(run)
    return prepared or _measure_next(run) or refine(run) or finish(run)


def _run_to_do(observed: Observed, now: datetime) -> RunStatus | None:
    """The run under way, or a new one if one is due, or None."""
    last, policy = observed.benchmark.status.run, observed.benchmark.spec.run_policy
    if last is None:
        return RunStatus(number=observed.last_orphaned_run + 1, rerun=policy.rerun, start_time=format_time(now))
    if last.completion_time is None:
        return last
    if (policy.rerun is not None and policy.rerun != last.rerun) or is_time(observed.benchmark, now):
        return RunStatus(number=last.number + 1, rerun=policy.rerun, start_time=format_time(now))
    return None


def _measure_next(run: Run) -> Decision | None:
    if not run.due:
        return None
    block = run.due_blocks[0]
    servers = serve(run, block)
    return servers if isinstance(servers, Decision) else measure(run, block, servers)


def _with_definitions(observed: Observed, decision: Decision, now: datetime) -> Decision:
    """Says beside all else whether what is served is of another version."""
    definitions = observed.definitions
    before = any(item.type == reasons.DEFINITIONS_DIFFER for item in decision.status.conditions)
    if not definitions.reason and not before:
        return decision
    reason = definitions.reason or reasons.DEFINITIONS_ALIKE
    said = ConditionUpdate(reasons.DEFINITIONS_DIFFER, bool(definitions.reason), reason, definitions.message)
    benchmark = observed.benchmark.model_copy(update={"status": decision.status})
    status = decision.status.model_copy(update={"conditions": set_conditions(benchmark, [said], now)})
    return replace(decision, status=status)


def _discard(run: Run) -> Decision:
    """Removes results that bear the name of a case of this run, and are of something else."""
    message = f"{', '.join(run.misfits[:_NAMED])}: of other cases than this run's, and not counted."
    event = Event(reasons.FOREIGN_OBJECT, message, warning=True)
    actions = tuple(DeleteResult(name) for name in run.misfits)
    return Decision(run.observed.benchmark.status, actions, (event,), requeue_after=0)
