"""decide(): what the operator does with one benchmark, as a pure function of what it observes and the time.

Complete, Failed and Suspended are here, too: a run ends, its nodes are cleaned up and released, and the next run is
scheduled.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from tierbench.advice.answer import answer, best_or_reason, has_alternatives, run_level_verdicts
from tierbench.advice.posterior import LevelVerdict
from tierbench.advice.selection import relabelled_run
from tierbench.advice.tables import runs
from tierbench.api.benchmark import Benchmark, BenchmarkStatus, Phase, RunStatus
from tierbench.api.run_policy import RunPolicy
from tierbench.domain import reasons
from tierbench.domain.decision import (
    Decision,
    DeleteBenchmark,
    DeleteResult,
    Event,
    Observed,
    Steps,
)
from tierbench.domain.ending import (
    cleanup,
    end_clients,
    has_to_end,
    is_outdated,
    new_run,
    supersede,
    with_observed_generation,
)
from tierbench.domain.measuring import measure_block, refine
from tierbench.domain.outages import with_outages
from tierbench.domain.placement import acquire_nodes, choose_nodes, kept_runs, outdated_results, too_much_to_measure
from tierbench.domain.preflight import preflight
from tierbench.domain.run import Run
from tierbench.domain.servers import end_remaining_cases, ensure_servers, fail_unplaceable_cases
from tierbench.domain.status import ConditionUpdate, assess, build_status, set_conditions, verdicts_in_progress
from tierbench.domain.views import Problem
from tierbench.kube.meta import format_time, parse_time

_LISTED: Final = 5
_MAXIMUM_ANSWER: Final = 1024
_SCHEDULE_SECONDS: Final = 300.0  # clocks may be set
_DEFINITIONS_MATCH: Final = "The CustomResourceDefinitions match the operator."
_ABNORMAL: Final = frozenset({reasons.RECONCILING, reasons.STALLED})
_CAUSES: Final = {
    Phase.PENDING: (reasons.SCHEDULED, "False"),
    Phase.QUEUED: (reasons.QUEUED, "True"),
    Phase.FAILED: (reasons.FAILED, "True"),
}
"""The condition that explains a phase."""


def needs_reconcile(observed_generation: int, generation: int, phase: Phase, *, later: bool) -> bool:
    """Whether a benchmark has to be reconciled. `later` says that its run policy asks for something after the end of a
    run: a scheduled run, or the deletion of the benchmark."""
    settled = phase in {Phase.COMPLETE, Phase.FAILED, Phase.SUSPENDED} and observed_generation == generation
    return not settled or (later and phase is not Phase.SUSPENDED)


def decide(observed: Observed, now: datetime) -> Decision:
    """Returns the next step of a benchmark. The operator calls it after every event of the benchmark and its objects,
    and at the latest after `requeue_after` of the last decision."""
    steps = decide_in_steps(observed, now)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            decision: Decision = end.value
            return decision


def decide_in_steps(observed: Observed, now: datetime) -> Steps[Decision]:
    """Decides as `decide` does, and pauses many times at the end of a run, which takes seconds with many cases."""
    decision = yield from _decide(observed, now)
    return replace(decision, status=_with_health(observed.benchmark, decision.status, now))


def _decide(observed: Observed, now: datetime) -> Steps[Decision]:
    observed = with_observed_generation(observed)
    last = observed.benchmark.status.run
    if last is not None and last.completion_time is None and has_to_end(observed, last):
        return supersede(observed, last, "The spec has changed", now)
    status = _current_run(observed, now)
    if status is None:
        return _wait_for_next_run(observed, now)
    if observed.benchmark.spec.run_policy.suspend:
        return _suspend(observed, status, now)
    run = Run(observed, with_outages(status, observed.nodes, now), now)
    if run.mismatched_results:
        return supersede(observed, status, _mismatch(run), now)
    started = _abort_run(run) or _reject_run(run) or choose_nodes(run) or acquire_nodes(run)
    prepared = started or fail_unplaceable_cases(run) or end_remaining_cases(run) or preflight(run)
    return prepared or _measure_next(run) or refine(run) or (yield from _finish_run(run))


def _current_run(observed: Observed, now: datetime) -> RunStatus | None:
    """Returns the run in progress, a new one if it is due, or None."""
    benchmark = observed.benchmark
    last = benchmark.status.run
    if last is None:
        return new_run(benchmark, observed.last_orphaned_run + 1, now)
    if last.completion_time is None:
        return last
    asked = benchmark.spec.run_policy.rerun not in {None, last.rerun}
    if asked or last.superseded or is_outdated(benchmark) or _is_schedule_due(benchmark, now):
        return new_run(benchmark, last.number + 1, now)
    return None


def _mismatch(run: Run) -> str:
    """Returns which results have the name of a result of this run, and belong to another case."""
    names = run.mismatched_results
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"BenchmarkResults {', '.join(names[:_LISTED])}{more} are of other cases than the spec has under these names"


def _measure_next(run: Run) -> Decision | None:
    if not run.due:
        return None
    block = run.due_blocks[0]
    servers = ensure_servers(run, block)
    return servers if isinstance(servers, Decision) else measure_block(run, block, servers)


def _finish_run(run: Run) -> Steps[Decision]:
    """Ends a run whose cases have all ended: cleans up, deletes the results of old runs, and writes the outcome."""
    cleanup = _cleanup_run(run)
    if cleanup is not None:
        return cleanup
    if run.observed.earlier is None and any(one.run != run.status.number for one in run.observed.known_results):
        return Decision(build_status(run, Phase.RUNNING), requeue_after=0, needs_earlier_runs=True)
    run = run.with_status(completion_time=format_time(run.now))
    counts = build_status(run, Phase.COMPLETE).cases
    measured = counts.total - counts.failed
    message = (
        f"{measured} of {counts.total} cases measured, {counts.invalid} of them not valid, {counts.failed} failed."
    )
    if measured:
        reason = reasons.SOME_CASES_FAILED if counts.failed else reasons.ALL_CASES_MEASURED
        phase, complete = Phase.COMPLETE, True
    else:
        phase, complete, reason = Phase.FAILED, False, reasons.NO_CASE_MEASURED
        message += " See the events of the benchmark, and the reasons in `kubectl get results -o yaml`."
    outcome = (
        ConditionUpdate(reasons.COMPLETE, complete, reason, message),
        ConditionUpdate(reasons.FAILED, not complete, reason, message),
        ConditionUpdate(reasons.SERVER_READY, False, reason, "The run has ended."),
    )
    assessment = yield from assess(run)
    found = yield from _answer(run)
    status = build_status(run, phase, *outcome, *assessment.updates)
    status = status.model_copy(update={"remaining_seconds": None, **found})
    event = Event(reason, message, warning=not complete or counts.failed > 0)
    outdated = outdated_results(run, kept_runs(run))
    return Decision(status, tuple(map(DeleteResult, outdated)), (event, *assessment.events, *_history_events(run)))


def _reject_run(run: Run) -> Decision | None:
    """Fails a run that has more cases or trials than allowed, before it starts."""
    problem = None if run.assignments else too_much_to_measure(run)
    return None if problem is None else _fail_run(run, problem)


def _abort_run(run: Run) -> Decision | None:
    """Fails a run if the API server accepts one of its results neither as measured nor as failed.

    It would not accept the other results of the run either.
    """
    rejected = [name for name in run.observed.permanently_rejected if name in map(run.result_name, run.cases)]
    if not rejected:
        return None
    cleanup = _cleanup_run(run)
    if cleanup is not None:
        return cleanup
    name = min(rejected)
    message = (
        f"The API server rejects BenchmarkResult {name}: {run.observed.rejected_results.get(name, '')}. If the "
        "CustomResourceDefinitions and the operator are of different versions, upgrade both. Then set "
        "spec.runPolicy.rerun."
    )
    return _fail_run(run, Problem(reasons.RESULT_REFUSED, message))


def _cleanup_run(run: Run) -> Decision | None:
    step = cleanup(run.observed, run.now)
    return None if step is None else Decision(build_status(run, Phase.RUNNING), step.actions, (), step.requeue_after)


def _fail_run(run: Run, problem: Problem) -> Decision:
    run = run.with_status(completion_time=format_time(run.now))
    updates = (
        ConditionUpdate(reasons.SCHEDULED, False, problem.reason, problem.message),
        ConditionUpdate(reasons.COMPLETE, False, problem.reason, problem.message),
        ConditionUpdate(reasons.FAILED, True, problem.reason, problem.message),
        *(replace(update, reason=problem.reason, message=problem.message) for update in verdicts_in_progress(run)),
    )
    event = Event(problem.reason, problem.message, warning=True)
    return Decision(build_status(run, Phase.FAILED, *updates), events=(event,))


def _answer(run: Run) -> Steps[dict[str, str]]:
    best, sentences = "", list[str]()
    for each in runs(run.results):
        verdicts: list[tuple[LevelVerdict, ...]] = []
        yield
        for of_table in run_level_verdicts(relabelled_run(each)) if has_alternatives(each) else ():
            verdicts.append(of_table)
            yield
        best += best_or_reason(each, verdicts)
        sentences += answer(each, verdicts)
    return {"best": best, "answer": " ".join(sentences)[:_MAXIMUM_ANSWER]}


def _history_events(run: Run) -> tuple[Event, ...]:
    """Returns a warning if results are deleted that `runPolicy.historyLimit` would keep."""
    asked, kept = run.spec.run_policy.history_limit, kept_runs(run)
    if outdated_results(run, asked) == outdated_results(run, kept):
        return ()
    message = (
        f"spec.runPolicy.historyLimit is {asked} runs, but limits.history allows {kept}, so the results of older runs "
        "are deleted. Export results in time, or ask an administrator to raise limits.history in the chart."
    )
    return (Event(reasons.HISTORY_LIMITED, message, warning=True),)


def _suspend(observed: Observed, run: RunStatus, now: datetime) -> Decision:
    """Saves what clients have printed, stops them and their servers, and releases the nodes."""
    benchmark = observed.benchmark
    step = cleanup(observed, now)
    message = "spec.runPolicy.suspend is true. Set it to false to continue with the next trial."
    updates = (
        ConditionUpdate(reasons.SUSPENDED, True, reasons.BY_REQUEST, message),
        ConditionUpdate(reasons.QUEUED, False, reasons.BY_REQUEST, "Suspended."),
        ConditionUpdate(reasons.SERVER_READY, False, reasons.BY_REQUEST, "Suspended."),
    )
    # A suspended benchmark is not reconciled any more, so the phase changes only after the cleanup.
    phase = Phase.SUSPENDED if step is None else benchmark.status.phase
    status = benchmark.status.model_copy(
        update={
            "phase": phase,
            "current": None,
            "remaining_seconds": None,
            "conditions": set_conditions(benchmark, updates, now),
            "observed_generation": benchmark.metadata.generation,
        }
    )
    if step is not None:
        return end_clients(observed, run, status, step, now)
    return Decision(status, events=(Event(reasons.SUSPENDED, message),))


def _wait_for_next_run(observed: Observed, now: datetime) -> Decision:
    """Schedules the next run of an ended benchmark, or deletes the benchmark when its time to live is over."""
    step = cleanup(observed, now)
    if step is not None:
        return Decision(observed.benchmark.status, step.actions, requeue_after=step.requeue_after)
    status, policy = _schedule_next_run(observed.benchmark, now), observed.benchmark.spec.run_policy
    wait, events = _seconds_to_next_run(status, now), _schedule_events(observed.benchmark.status, status)
    if policy.ttl_seconds_after_finished is None or status.run is None or status.run.completion_time is None:
        return Decision(status, events=events, requeue_after=wait)
    end = parse_time(status.run.completion_time) + timedelta(seconds=policy.ttl_seconds_after_finished)
    if now >= end:
        return Decision(status, (DeleteBenchmark(),))
    return Decision(status, events=events, requeue_after=min(wait, (end - now).total_seconds()))


def _is_schedule_due(benchmark: Benchmark, now: datetime) -> bool:
    """Whether the schedule asks for a run now. A changed run policy gets a new time in the future first."""
    policy, status = benchmark.spec.run_policy, benchmark.status
    if policy.schedule is None or policy.suspend or status.next_run_time is None:
        return False
    return status.observed_generation == benchmark.metadata.generation and now >= parse_time(status.next_run_time)


def _schedule_next_run(benchmark: Benchmark, now: datetime) -> BenchmarkStatus:
    policy, generation = benchmark.spec.run_policy, benchmark.metadata.generation
    status = benchmark.status.model_copy(update={"observed_generation": generation})
    before = next((condition for condition in status.conditions if condition.type == reasons.SCHEDULE_VALID), None)
    if policy.schedule is None:
        others = tuple(condition for condition in status.conditions if condition.type != reasons.SCHEDULE_VALID)
        return status.model_copy(update={"next_run_time": None, "conditions": others})
    is_planned = before is not None and (before.status == "False" or status.next_run_time is not None)
    if before is not None and is_planned and before.observed_generation == generation:
        return status
    time, recurring = _next_run(policy, policy.schedule, now)
    conditions = set_conditions(benchmark, [recurring], now)
    next_run_time = None if time is None else format_time(time)
    return status.model_copy(update={"next_run_time": next_run_time, "conditions": conditions})


def _next_run(policy: RunPolicy, schedule: str, now: datetime) -> tuple[datetime | None, ConditionUpdate]:
    """Returns when the next run starts, or None, and the condition ScheduleValid."""
    name = policy.time_zone or "UTC"
    try:
        zone = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        message = f'spec.runPolicy.timeZone "{name}" is not in the IANA time zone database. Example: "Europe/Berlin".'
        return None, ConditionUpdate(reasons.SCHEDULE_VALID, False, reasons.UNKNOWN_TIME_ZONE, message)
    try:
        time = next(CronSim(schedule, now.astimezone(zone)), None)
        problem = "never matches a date"
    except CronSimError as error:
        time, problem = None, f"is not a valid cron schedule: {error}"
    if time is None:
        message = f'spec.runPolicy.schedule "{schedule}" {problem}. Example: "30 3 * * 1".'
        return None, ConditionUpdate(reasons.SCHEDULE_VALID, False, reasons.UNUSABLE_SCHEDULE, message)
    message = f"The next run starts at {time:%Y-%m-%d %H:%M} ({name})."
    return time.astimezone(UTC), ConditionUpdate(reasons.SCHEDULE_VALID, True, reasons.NEXT_RUN_PLANNED, message)


def _schedule_events(before: BenchmarkStatus, after: BenchmarkStatus) -> tuple[Event, ...]:
    """Returns a warning if the schedule has become invalid."""
    recurring = [condition for condition in after.conditions if condition.type == reasons.SCHEDULE_VALID]
    invalid = [one for one in recurring if one.status == "False" and one not in before.conditions]
    return tuple(Event(condition.reason, condition.message, warning=True) for condition in invalid)


def _seconds_to_next_run(status: BenchmarkStatus, now: datetime) -> float:
    if status.next_run_time is None:
        return _SCHEDULE_SECONDS
    return min(_SCHEDULE_SECONDS, max(0.0, (parse_time(status.next_run_time) - now).total_seconds()))


def _with_health(before: Benchmark, status: BenchmarkStatus, now: datetime) -> BenchmarkStatus:
    """Returns a status with the conditions that follow from the rest of it.

    Reconciling and Stalled are there only while they are True, as kstatus expects. A status of the current spec has its
    generation in all conditions.
    """
    benchmark = before.model_copy(update={"status": status})
    updates = tuple(_updates(status))
    there = {update.type for update in updates}
    conditions = tuple(
        condition
        for condition in set_conditions(benchmark, updates, now)
        if condition.type not in _ABNORMAL or condition.type in there
    )
    generation = before.metadata.generation
    if status.observed_generation == generation and not is_outdated(benchmark):
        stamp = {"observed_generation": generation}
        conditions = tuple(condition.model_copy(update=stamp) for condition in conditions)
    return status.model_copy(update={"conditions": conditions})


def _updates(status: BenchmarkStatus) -> Iterator[ConditionUpdate]:
    known = {(condition.type, condition.status): condition for condition in status.conditions}
    if (reasons.DEFINITIONS_DIFFER, "True") in known:
        yield ConditionUpdate(reasons.DEFINITIONS_DIFFER, False, reasons.DEFINITIONS_ALIKE, _DEFINITIONS_MATCH)
    cause = known.get(_CAUSES.get(status.phase, ("", "")))
    because = (reasons.RUNNING, "The run is in progress.") if cause is None else (cause.reason, cause.message)
    if status.phase is Phase.FAILED:
        yield ConditionUpdate(reasons.STALLED, True, *because)
    elif status.phase not in {Phase.COMPLETE, Phase.SUSPENDED}:
        yield ConditionUpdate(reasons.RECONCILING, True, *because)
