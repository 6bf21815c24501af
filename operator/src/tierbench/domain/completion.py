"""Complete, Failed and Suspended: a run ends, nodes are cleared and given back, and the next run is waited for."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from tierbench.advice.answer import answer, best_or_reason
from tierbench.advice.tables import runs
from tierbench.api.benchmark import Benchmark, BenchmarkStatus, Phase
from tierbench.api.run_policy import RunPolicy
from tierbench.domain import reasons
from tierbench.domain.actions import Action, Decision, DeleteBenchmark, DeleteJob, DeleteResult, Event, ReleaseLeases
from tierbench.domain.assessment import assess, begun
from tierbench.domain.observed import ClusterState, Observed, is_unreachable
from tierbench.domain.providers import teardown
from tierbench.domain.quotas import history, outdated, too_many_cases
from tierbench.domain.run import Run
from tierbench.domain.status import ConditionUpdate, build_status, set_conditions
from tierbench.domain.views import Problem
from tierbench.kube.clock import format_time, parse_time

_MAXIMUM_ANSWER: Final = 1024
_LOOK_AGAIN_SECONDS: Final = 300.0


def finish(run: Run) -> Decision:
    """Ends the run: nodes cleared and given back, old runs removed, the outcome said."""
    step = cleanup(run.observed, run.now)
    if step is not None:
        return Decision(build_status(run, Phase.RUNNING), step.actions, requeue_after=step.requeue_after)
    if run.observed.earlier is None and any(result.run != run.status.number for result in run.observed.known_results):
        return Decision(build_status(run, Phase.RUNNING), requeue_after=0, needs_earlier_runs=True)
    run = Run(run.observed, run.status.model_copy(update={"completion_time": format_time(run.now)}), run.now)
    draft = build_status(run, Phase.COMPLETE)
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
        ConditionUpdate(reasons.COMPLETE, complete, reason, message),
        ConditionUpdate(reasons.FAILED, not complete, reason, message),
        ConditionUpdate(reasons.SERVER_READY, False, reason, "The run has ended."),
    )
    held = assess(run)
    status = build_status(run, phase, *said, *held.said).model_copy(update={"remaining_seconds": None, **_answer(run)})
    events = (Event(reason, message, warning=not complete or counts.failed > 0), *held.events, *_shortened(run))
    return Decision(status, tuple(map(DeleteResult, outdated(run, history(run)))), events)


def refuse_run(run: Run) -> Decision | None:
    """Ends a run before it has begun, if it is one that must not be."""
    problem = None if run.assignments else too_many_cases(run)
    return None if problem is None else _fail(run, problem)


def abandon(run: Run) -> Decision | None:
    """Ends a run of which a case can neither be kept as measured nor as failed: no case of it would fare better."""
    refused = [name for name in run.observed.permanently_rejected if name in map(run.result_name, run.cases)]
    if not refused:
        return None
    step = cleanup(run.observed, run.now)
    if step is not None:
        return Decision(build_status(run, Phase.RUNNING), step.actions, requeue_after=step.requeue_after)
    message = (
        f"The API server takes no result {min(refused)}: {run.observed.rejected_results.get(min(refused), '')}. If the "
        "CustomResourceDefinitions are of another version than the operator, upgrade both, then set "
        "spec.runPolicy.rerun."
    )
    return _fail(run, Problem(reasons.RESULT_REFUSED, message))


def _fail(run: Run, problem: Problem) -> Decision:
    run = Run(run.observed, run.status.model_copy(update={"completion_time": format_time(run.now)}), run.now)
    said = (
        ConditionUpdate(reasons.SCHEDULED, False, problem.reason, problem.message),
        ConditionUpdate(reasons.COMPLETE, False, problem.reason, problem.message),
        ConditionUpdate(reasons.FAILED, True, problem.reason, problem.message),
        *(replace(verdict, reason=problem.reason, message=problem.message) for verdict in begun(run)),
    )
    return Decision(
        build_status(run, Phase.FAILED, *said), events=(Event(problem.reason, problem.message, warning=True),)
    )


def _answer(run: Run) -> dict[str, str]:
    results = [result for case in run.cases if (result := run.result(case)) is not None]
    found = runs(results)
    sentences = " ".join(text for each in found for text in answer(each))
    return {"best": "".join(map(best_or_reason, found)), "answer": sentences[:_MAXIMUM_ANSWER]}


def _shortened(run: Run) -> tuple[Event, ...]:
    """That results go which the benchmark would have kept."""
    asked, most = run.spec.run_policy.history, history(run)
    if outdated(run, asked) == outdated(run, most):
        return ()
    message = (
        f"spec.runPolicy.history asks for {asked} runs, and limits.history, a value of the chart, lets {most} be kept: "
        "the results of older ones go. Export those of the next in time, or have it raised."
    )
    return (Event(reasons.HISTORY_LIMITED, message, warning=True),)


def wait_for_next(observed: Observed, now: datetime) -> Decision:
    """Nothing is due but, perhaps, the next run or the end of its time to live."""
    step = cleanup(observed, now)
    if step is not None:
        return Decision(observed.benchmark.status, step.actions, requeue_after=step.requeue_after)
    status, policy = plan_next(observed.benchmark, now), observed.benchmark.spec.run_policy
    wait, events = seconds_to_next(status, now), warnings(observed.benchmark.status, status)
    if policy.ttl_seconds is None or status.run is None or status.run.completion_time is None:
        return Decision(status, events=events, requeue_after=wait)
    end = parse_time(status.run.completion_time) + timedelta(seconds=policy.ttl_seconds)
    if now >= end:
        return Decision(status, (DeleteBenchmark(),))
    return Decision(status, events=events, requeue_after=min(wait, (end - now).total_seconds()))


def suspend(observed: Observed, now: datetime) -> Decision:
    """Stops the client and the server."""
    benchmark = observed.benchmark
    step = cleanup(observed, now)
    message = "spec.runPolicy.suspend is true: set it to false to go on with the next trial."
    said = (
        ConditionUpdate(reasons.SUSPENDED, True, reasons.BY_REQUEST, message),
        ConditionUpdate(reasons.QUEUED, False, reasons.BY_REQUEST, "Suspended."),
        ConditionUpdate(reasons.SERVER_READY, False, reasons.BY_REQUEST, "Suspended."),
    )
    # The phase is what tells that nothing is due: it is written only when the nodes are clear.
    phase = Phase.SUSPENDED if step is None else benchmark.status.phase
    status = benchmark.status.model_copy(
        update={
            "phase": phase,
            "current": None,
            "remaining_seconds": None,
            "conditions": set_conditions(benchmark, said, now),
            "observed_generation": benchmark.metadata.generation,
        }
    )
    if step is not None:
        return Decision(status, step.actions, requeue_after=step.requeue_after)
    return Decision(status, events=(Event(reasons.SUSPENDED, message),))


@dataclass(frozen=True)
class CleanupStep:
    """A step on the way out, and how long to wait before the next."""

    actions: tuple[Action, ...]
    requeue_after: float


def cleanup(here: ClusterState, now: datetime) -> CleanupStep | None:
    """Clears the nodes, waits until they are clear, then gives them back. None when all that is done."""
    jobs = (DeleteJob(job.name) for job in here.jobs if not job.deleting)
    actions = (*jobs, *teardown(here, now))
    if any(provided.objects for provided in here.provider_states.values()):
        return CleanupStep(actions, 1)
    if actions or here.jobs or any(not is_unreachable(here, pod) for pod in here.pods):
        return CleanupStep(actions, 5)
    held = tuple(node for node, lease in sorted(here.leases.items()) if lease.holder == here.holder)
    return CleanupStep((ReleaseLeases(held),), 0) if held else None


@dataclass(frozen=True)
class _Next:
    """When the next run is due, or, if `time` is None, why there is none."""

    time: datetime | None
    reason: str
    message: str


def is_time(benchmark: Benchmark, now: datetime) -> bool:
    """Whether the schedule asks for a run. A changed policy first gets a new time, which is then to come."""
    policy, status = benchmark.spec.run_policy, benchmark.status
    if policy.schedule is None or policy.suspend or status.next_run_time is None:
        return False
    return status.observed_generation == benchmark.metadata.generation and now >= parse_time(status.next_run_time)


def warnings(before: BenchmarkStatus, after: BenchmarkStatus) -> tuple[Event, ...]:
    """An event if the schedule has turned out to be of no use."""
    known = [condition for condition in after.conditions if condition.type == reasons.RECURRING]
    fresh = [condition for condition in known if condition.status == "False" and condition not in before.conditions]
    return tuple(Event(condition.reason, condition.message, warning=True) for condition in fresh)


def plan_next(benchmark: Benchmark, now: datetime) -> BenchmarkStatus:
    """The status of an ended benchmark, with the time of its next run."""
    policy, generation = benchmark.spec.run_policy, benchmark.metadata.generation
    status = benchmark.status.model_copy(update={"observed_generation": generation})
    known = {condition.type: condition for condition in status.conditions}
    if policy.schedule is None:
        rest = tuple(condition for condition in status.conditions if condition.type != reasons.RECURRING)
        return status.model_copy(update={"next_run_time": None, "conditions": rest})
    before = known.get(reasons.RECURRING)
    settled = before is not None and (before.status == "False" or status.next_run_time is not None)
    if settled and before is not None and before.observed_generation == generation:
        return status
    following = _next(policy, policy.schedule, now)
    said = ConditionUpdate(reasons.RECURRING, following.time is not None, following.reason, following.message)
    time = None if following.time is None else format_time(following.time)
    return status.model_copy(update={"next_run_time": time, "conditions": set_conditions(benchmark, [said], now)})


def seconds_to_next(status: BenchmarkStatus, now: datetime) -> float:
    """How long to wait for the next run; not for ever, since clocks are set."""
    if status.next_run_time is None:
        return _LOOK_AGAIN_SECONDS
    return min(_LOOK_AGAIN_SECONDS, max(0.0, (parse_time(status.next_run_time) - now).total_seconds()))


def _next(policy: RunPolicy, schedule: str, now: datetime) -> _Next:
    name = policy.time_zone or "UTC"
    try:
        zone = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        message = f"There is no time zone {name}: write one of the IANA database in spec.runPolicy.timeZone."
        return _Next(None, reasons.UNKNOWN_TIME_ZONE, message)
    try:
        time = next(CronSim(schedule, now.astimezone(zone)), None)
    except CronSimError as error:
        message = f"spec.runPolicy.schedule {schedule!r} names no time ({error}): mend it, as in 30 3 * * 1."
        return _Next(None, reasons.UNUSABLE_SCHEDULE, message)
    if time is None:
        return _Next(
            None, reasons.UNUSABLE_SCHEDULE, f"spec.runPolicy.schedule {schedule!r} names a time that never is."
        )
    message = f"The next run starts at {time:%Y-%m-%d %H:%M} ({name})."
    return _Next(time.astimezone(UTC), reasons.NEXT_RUN_PLANNED, message)
