"""When the next run is due by the schedule. Pure."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from tierbench.api.benchmark import Benchmark, BenchmarkStatus
from tierbench.api.model import format_time, parse_time
from tierbench.api.run_policy import RunPolicy
from tierbench.domain import reasons
from tierbench.domain.actions import Event
from tierbench.domain.conditions import Said, conditions

_LOOK_AGAIN_SECONDS: Final = 300.0


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
    said = Said(reasons.RECURRING, following.time is not None, following.reason, following.message)
    time = None if following.time is None else format_time(following.time)
    return status.model_copy(update={"next_run_time": time, "conditions": conditions(benchmark, [said], now)})


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
