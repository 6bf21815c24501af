"""Runs that a schedule starts, and the assessment of a run by constraints, earlier runs and the baseline."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.domain.objects import START, benchmark
from tests.unit.domain.scenarios import condition
from tests.unit.domain.world import World
from tierbench.api.benchmark import Phase
from tierbench.domain import reasons
from tierbench.domain.decide import decide_in_steps
from tierbench.kube.meta import format_time

ENDED = (Phase.COMPLETE, Phase.FAILED)


def make_world(**policy: Any) -> World:
    """Returns a world with one case of five trials."""
    return World(
        benchmark=benchmark(servers={"nodeClassNames": ["cloud"]}, fileSizes=["1Mi"], repetitions=5, runPolicy=policy)
    )


def finish(world: World, run: int) -> None:
    """Reconciles until this run has ended and the next one is scheduled."""
    for _ in range(500):
        wait = world.reconcile().requeue_after
        ended = number(world) == run and world.benchmark.status.phase in ENDED
        if ended and wait > 0 and not world.leases:
            world.reconcile()
            return
        if wait > 0:
            world.step()
    raise AssertionError(f"run {run} has not ended: {world.benchmark.status}")


def message(world: World, kind: str) -> str:
    return next(item.message for item in world.benchmark.status.conditions if item.type == kind)


def number(world: World) -> int:
    run = world.benchmark.status.run
    return 0 if run is None else run.number


def test_the_first_run_starts_at_once_and_the_next_at_its_time() -> None:
    world = make_world(schedule="30 3 * * *", timeZone="Europe/Berlin")
    finish(world, 1)
    assert world.benchmark.status.next_run_time == "2026-01-01T02:30:00Z"
    assert condition(world, reasons.SCHEDULE_VALID) == ("True", reasons.NEXT_RUN_PLANNED)
    world.now = datetime(2026, 1, 1, 2, 29, 59, tzinfo=UTC)
    decision = world.reconcile()
    assert (number(world), decision.requeue_after) == (1, 1.0)
    world.now += timedelta(seconds=1)
    world.reconcile()
    assert number(world) == 2
    assert world.benchmark.status.next_run_time is None
    finish(world, 2)
    assert world.benchmark.status.next_run_time == "2026-01-02T02:30:00Z"


def test_several_missed_times_start_only_one_run() -> None:
    world = make_world(schedule="0 * * * *")
    finish(world, 1)
    world.now = START + timedelta(days=3, minutes=10)
    world.reconcile()
    finish(world, 2)
    assert world.benchmark.status.next_run_time == format_time(START + timedelta(days=3, hours=1))


@pytest.mark.parametrize(("zone", "hour"), [("Europe/Berlin", "01"), ("UTC", "02"), ("America/New_York", "07")])
def test_a_schedule_uses_its_time_zone(zone: str, hour: str) -> None:
    world = make_world(schedule="0 2 * * *", timeZone=zone)
    finish(world, 1)
    assert str(world.benchmark.status.next_run_time)[11:13] == hour


def test_daylight_saving_time_skips_no_day() -> None:
    world = make_world(schedule="30 2 * * *", timeZone="Europe/Berlin")
    world.now = datetime(2026, 3, 28, 12, tzinfo=UTC)
    finish(world, 1)
    assert str(world.benchmark.status.next_run_time).startswith("2026-03-29T01:")


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ({"schedule": "61 * * * *"}, reasons.UNUSABLE_SCHEDULE),
        ({"schedule": "0 0 30 2 *"}, reasons.UNUSABLE_SCHEDULE),
        ({"schedule": "0 0 * * *", "timeZone": "Mars/Olympus"}, reasons.UNKNOWN_TIME_ZONE),
    ],
)
def test_an_invalid_schedule_is_reported_once_and_can_be_fixed(policy: dict[str, str], reason: str) -> None:
    world = make_world(**policy)
    finish(world, 1)
    world.reconcile()
    assert condition(world, reasons.SCHEDULE_VALID) == ("False", reason)
    assert [event.reason for event in world.events].count(reason) == 1
    world.change_spec(schedule="0 * * * *", time_zone=None)
    world.reconcile()
    assert condition(world, reasons.SCHEDULE_VALID) == ("True", reasons.NEXT_RUN_PLANNED)
    world.change_spec(schedule=None)
    world.reconcile()
    assert world.benchmark.status.next_run_time is None
    assert reasons.SCHEDULE_VALID not in {item.type for item in world.benchmark.status.conditions}
    assert not world.due


def test_a_suspended_benchmark_starts_no_scheduled_run() -> None:
    world = make_world(schedule="0 * * * *")
    finish(world, 1)
    world.change_spec(suspend=True)
    world.reconcile()
    world.now += timedelta(hours=5)
    world.reconcile()
    assert (number(world), world.benchmark.status.phase) == (1, Phase.COMPLETE)
    world.change_spec(suspend=False)
    world.reconcile()
    assert number(world) == 1
    world.now += timedelta(hours=1)
    world.reconcile()
    assert number(world) == 2


def rerun(world: World, nanoseconds: int) -> None:
    world.nanoseconds = nanoseconds
    world.change_spec(rerun=f"{number(world) + 1}")
    finish(world, number(world) + 1)


def test_a_run_is_compared_with_the_one_before() -> None:
    world = make_world()
    finish(world, 1)
    assert condition(world, reasons.REGRESSED) == ("False", reasons.NO_EARLIER_RUN)
    rerun(world, 1_040_000_000)
    assert condition(world, reasons.REGRESSED) == ("False", reasons.NOT_WORSE)
    rerun(world, 2_000_000_000)
    assert condition(world, reasons.REGRESSED) == ("True", reasons.WORSE_THAN_BEFORE)
    assert "2.00 s instead of 1.02 s in runs 1 and 2, 96% worse." in message(world, reasons.REGRESSED)
    assert [event.reason for event in world.events if event.warning] == [reasons.WORSE_THAN_BEFORE]
    rerun(world, 1_000_000_000)
    assert condition(world, reasons.REGRESSED) == ("False", reasons.NOT_WORSE)


def test_the_end_of_a_run_pauses_after_each_case() -> None:
    """Without pauses, 1,000 cases take 3.5 s, in which no Lease is renewed and no probe is answered."""
    sizes = [f"{number}Mi" for number in range(1, 11)]
    world = World(benchmark=benchmark(fileSizes=sizes, repetitions=1, warmupTrials=0))
    finish(world, 1)
    world.change_spec(rerun="again")
    pauses = [0]
    while number(world) < 2 or world.benchmark.status.phase not in ENDED:
        pauses.append(sum(1 for _ in decide_in_steps(world.observe(), world.now)))
        world.advance()
    assert max(pauses) > 2 * len(sizes)
    assert pauses.count(0) == len(pauses) - 1, "only the end of a run takes long"


def replace_server_node(world: World) -> str:
    world.nodes["c2"] = replace(world.nodes.pop("c1"), name="c2")
    return "run 1 used c1, this run uses c2."


def replace_client_image(world: World) -> str:
    world.engine = "2"
    return "run 1 used tierbench-client 1, this run uses tierbench-client 2."


@pytest.mark.parametrize("change", [replace_server_node, replace_client_image])
def test_runs_in_different_environments_are_not_compared(change: Callable[[World], str]) -> None:
    world = make_world()
    finish(world, 1)
    words = change(world)
    rerun(world, 2_000_000_000)
    assert condition(world, reasons.REGRESSED) == ("Unknown", reasons.NOT_COMPARABLE)
    assert words in message(world, reasons.REGRESSED)
    rerun(world, 3_000_000_000)
    assert condition(world, reasons.REGRESSED) == ("True", reasons.WORSE_THAN_BEFORE)


def test_a_change_of_the_environment_does_not_hide_a_regression_after_it() -> None:
    world = make_world(baselineRun=1)
    finish(world, 1)
    replace_server_node(world)
    rerun(world, 1_000_000_000)
    rerun(world, 2_000_000_000)
    assert condition(world, reasons.REGRESSED) == ("True", reasons.WORSE_THAN_BEFORE)


def test_the_verdicts_of_a_run_in_progress_are_reset() -> None:
    world = make_world(constraints={"maxMeanMilliseconds": 1100})
    finish(world, 1)
    rerun(world, 1_200_000_000)
    assert condition(world, reasons.PASSED) == ("False", reasons.CONSTRAINTS_BROKEN)
    world.change_spec(rerun="once more")
    world.reconcile()
    assert condition(world, reasons.REGRESSED) == ("False", reasons.RUNNING)
    assert condition(world, reasons.PASSED) == ("False", reasons.RUNNING)


def test_a_slow_decline_shows_against_the_baseline_and_its_run_is_kept() -> None:
    world = make_world(baselineRun=1, historyLimit=2)
    finish(world, 1)
    for percent in (120, 140, 160):
        rerun(world, percent * 10**7)
    assert condition(world, reasons.REGRESSED) == ("True", reasons.WORSE_THAN_BEFORE)
    assert {result.spec.run for result in world.results.values()} == {1, 3, 4}


def test_a_missing_baseline_is_reported() -> None:
    world = make_world(baselineRun=7)
    finish(world, 1)
    assert condition(world, reasons.REGRESSED) == ("False", reasons.BASELINE_NOT_FOUND)
    assert reasons.BASELINE_NOT_FOUND in {event.reason for event in world.events if event.warning}


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"maxMeanMilliseconds": 1000, "maxRetries": 0}, reasons.CONSTRAINTS_MET),
        ({"maxMeanMilliseconds": 999}, reasons.CONSTRAINTS_BROKEN),
        ({"minBytesPerSecond": "1Gi"}, reasons.CONSTRAINTS_BROKEN),
        ({"minMessagesPerSecond": 1}, reasons.CONSTRAINTS_UNKNOWN),
        ({"maxP99Milliseconds": 1001}, reasons.CONSTRAINTS_UNKNOWN),
        ({"maxP99Milliseconds": 900}, reasons.CONSTRAINTS_BROKEN),
    ],
)
def test_constraints_give_a_verdict(limits: dict[str, Any], reason: str) -> None:
    world = make_world(constraints=limits)
    finish(world, 1)
    status = "Unknown" if reason == reasons.CONSTRAINTS_UNKNOWN else str(reason == reasons.CONSTRAINTS_MET)
    assert condition(world, reasons.PASSED) == (status, reason)
    assert reason in {event.reason for event in world.events}


def test_a_failed_case_breaks_the_constraints() -> None:
    world = make_world(constraints={"maxRetries": 0})
    del world.nodes["c1"]
    finish(world, 1)
    assert condition(world, reasons.PASSED) == ("False", reasons.CONSTRAINTS_BROKEN)
    assert condition(world, reasons.REGRESSED) == ("False", reasons.NO_EARLIER_RUN)
