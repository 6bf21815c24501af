"""decide(): what the operator does with one benchmark, as a pure function of what it observes and the time."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from tierbench.api.benchmark import Phase, RunStatus
from tierbench.domain import reasons
from tierbench.domain.actions import Decision, DeleteResult, Event
from tierbench.domain.completion import (
    abort_run,
    finish_run,
    is_schedule_due,
    reject_run,
    suspend,
    wait_for_next_run,
)
from tierbench.domain.measuring import measure_block, refine
from tierbench.domain.observed import Observed
from tierbench.domain.placement import acquire_nodes, choose_nodes
from tierbench.domain.preflight import preflight
from tierbench.domain.run import Run
from tierbench.domain.servers import end_remaining_cases, ensure_servers, fail_unplaceable_cases
from tierbench.domain.status import ConditionUpdate, set_conditions
from tierbench.kube.meta import format_time

_LISTED: Final = 5
_DEFINITIONS_MATCH: Final = "The CustomResourceDefinitions match the operator."


def needs_reconcile(observed_generation: int, generation: int, phase: Phase, *, later: bool) -> bool:
    """Whether a benchmark has to be reconciled. `later` says that its run policy asks for something after the end of a
    run: a scheduled run, or the deletion of the benchmark."""
    settled = phase in {Phase.COMPLETE, Phase.FAILED, Phase.SUSPENDED} and observed_generation == generation
    return not settled or (later and phase is not Phase.SUSPENDED)


def decide(observed: Observed, now: datetime) -> Decision:
    """Returns the next step of a benchmark. The operator calls it after every event of the benchmark and its objects,
    and at the latest after `requeue_after` of the last decision."""
    return _with_matching_definitions(observed, _decide(observed, now), now)


def _decide(observed: Observed, now: datetime) -> Decision:
    status = _current_run(observed, now)
    if status is None:
        return wait_for_next_run(observed, now)
    if observed.benchmark.spec.run_policy.suspend:
        return suspend(observed, now)
    run = Run(observed, status, now)
    if run.mismatched_results:
        return _delete_mismatched(run)
    started = abort_run(run) or reject_run(run) or choose_nodes(run) or acquire_nodes(run)
    prepared = started or fail_unplaceable_cases(run) or end_remaining_cases(run) or preflight(run)
    return prepared or _measure_next(run) or refine(run) or finish_run(run)


def _current_run(observed: Observed, now: datetime) -> RunStatus | None:
    """Returns the run in progress, a new one if it is due, or None."""
    last, policy = observed.benchmark.status.run, observed.benchmark.spec.run_policy
    if last is None:
        return RunStatus(number=observed.last_orphaned_run + 1, rerun=policy.rerun, start_time=format_time(now))
    if last.completion_time is None:
        return last
    if (policy.rerun is not None and policy.rerun != last.rerun) or is_schedule_due(observed.benchmark, now):
        return RunStatus(number=last.number + 1, rerun=policy.rerun, start_time=format_time(now))
    return None


def _measure_next(run: Run) -> Decision | None:
    if not run.due:
        return None
    block = run.due_blocks[0]
    servers = ensure_servers(run, block)
    return servers if isinstance(servers, Decision) else measure_block(run, block, servers)


def _with_matching_definitions(observed: Observed, decision: Decision, now: datetime) -> Decision:
    """Sets DefinitionsDiffer to False if it was True: the operator decides only while definitions match."""
    conditions = decision.status.conditions
    if not any(item.type == reasons.DEFINITIONS_DIFFER and item.status == "True" for item in conditions):
        return decision
    update = ConditionUpdate(reasons.DEFINITIONS_DIFFER, False, reasons.DEFINITIONS_ALIKE, _DEFINITIONS_MATCH)
    benchmark = observed.benchmark.model_copy(update={"status": decision.status})
    status = decision.status.model_copy(update={"conditions": set_conditions(benchmark, [update], now)})
    return replace(decision, status=status)


def _delete_mismatched(run: Run) -> Decision:
    """Deletes results that have the name of a result of this run, and belong to another case."""
    names = run.mismatched_results
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    message = (
        f"Deleting BenchmarkResults {', '.join(names[:_LISTED])}{more}: they have names of this run, but belong to "
        "other cases."
    )
    event = Event(reasons.FOREIGN_OBJECT, message, warning=True)
    return Decision(run.observed.benchmark.status, tuple(map(DeleteResult, names)), (event,), requeue_after=0)
