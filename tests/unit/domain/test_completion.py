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


def world(**policy: Any) -> World:
    """One case of five trials."""
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
    it = world(schedule="30 3 * * *", timeZone="Europe/Berlin")
    finish(it, 1)
    assert it.benchmark.status.next_run_time == "2026-01-01T02:30:00Z"
    assert condition(it, reasons.SCHEDULE_VALID) == ("True", reasons.NEXT_RUN_PLANNED)
    it.now = datetime(2026, 1, 1, 2, 29, 59, tzinfo=UTC)
    decision = it.reconcile()
    assert (number(it), decision.requeue_after) == (1, 1.0)
    it.now += timedelta(seconds=1)
    it.reconcile()
    assert number(it) == 2
    assert it.benchmark.status.next_run_time is None
    finish(it, 2)
    assert it.benchmark.status.next_run_time == "2026-01-02T02:30:00Z"


def test_one_of_several_missed_times_is_made_up_for() -> None:
    it = world(schedule="0 * * * *")
    finish(it, 1)
    it.now = START + timedelta(days=3, minutes=10)
    it.reconcile()
    finish(it, 2)
    assert it.benchmark.status.next_run_time == format_time(START + timedelta(days=3, hours=1))


@pytest.mark.parametrize(("zone", "hour"), [("Europe/Berlin", "01"), ("UTC", "02"), ("America/New_York", "07")])
def test_a_schedule_is_in_its_own_time_zone(zone: str, hour: str) -> None:
    it = world(schedule="0 2 * * *", timeZone=zone)
    finish(it, 1)
    assert str(it.benchmark.status.next_run_time)[11:13] == hour


def test_daylight_saving_time_skips_no_day() -> None:
    it = world(schedule="30 2 * * *", timeZone="Europe/Berlin")
    it.now = datetime(2026, 3, 28, 12, tzinfo=UTC)
    finish(it, 1)
    assert str(it.benchmark.status.next_run_time).startswith("2026-03-29T01:")


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ({"schedule": "61 * * * *"}, reasons.UNUSABLE_SCHEDULE),
        ({"schedule": "0 0 30 2 *"}, reasons.UNUSABLE_SCHEDULE),
        ({"schedule": "0 0 * * *", "timeZone": "Mars/Olympus"}, reasons.UNKNOWN_TIME_ZONE),
    ],
)
def test_an_invalid_schedule_is_reported_once_and_can_be_fixed(policy: dict[str, str], reason: str) -> None:
    it = world(**policy)
    finish(it, 1)
    it.reconcile()
    assert condition(it, reasons.SCHEDULE_VALID) == ("False", reason)
    assert [event.reason for event in it.events].count(reason) == 1
    it.change_spec(schedule="0 * * * *", time_zone=None)
    it.reconcile()
    assert condition(it, reasons.SCHEDULE_VALID) == ("True", reasons.NEXT_RUN_PLANNED)
    it.change_spec(schedule=None)
    it.reconcile()
    assert it.benchmark.status.next_run_time is None
    assert reasons.SCHEDULE_VALID not in {item.type for item in it.benchmark.status.conditions}
    assert not it.due


def test_nothing_starts_by_schedule_while_suspended() -> None:
    it = world(schedule="0 * * * *")
    finish(it, 1)
    it.change_spec(suspend=True)
    it.reconcile()
    it.now += timedelta(hours=5)
    it.reconcile()
    assert (number(it), it.benchmark.status.phase) == (1, Phase.COMPLETE)
    it.change_spec(suspend=False)
    it.reconcile()
    assert number(it) == 1
    it.now += timedelta(hours=1)
    it.reconcile()
    assert number(it) == 2


def again(it: World, nanoseconds: int) -> None:
    it.nanoseconds = nanoseconds
    it.change_spec(rerun=f"{number(it) + 1}")
    finish(it, number(it) + 1)


def test_a_run_is_compared_with_the_one_before() -> None:
    it = world()
    finish(it, 1)
    assert condition(it, reasons.REGRESSED) == ("False", reasons.NO_EARLIER_RUN)
    again(it, 1_040_000_000)
    assert condition(it, reasons.REGRESSED) == ("False", reasons.NOT_WORSE)
    again(it, 2_000_000_000)
    assert condition(it, reasons.REGRESSED) == ("True", reasons.WORSE_THAN_BEFORE)
    assert "2.00 s instead of 1.02 s in runs 1 and 2, 96% worse." in message(it, reasons.REGRESSED)
    assert [event.reason for event in it.events if event.warning] == [reasons.WORSE_THAN_BEFORE]
    again(it, 1_000_000_000)
    assert condition(it, reasons.REGRESSED) == ("False", reasons.NOT_WORSE)


def test_the_end_of_a_run_pauses_after_each_case() -> None:
    """With 1,000 cases and two earlier runs it took 3.5 s, in which no Lease was renewed and no probe answered."""
    sizes = [f"{number}Mi" for number in range(1, 11)]
    it = World(benchmark=benchmark(fileSizes=sizes, repetitions=1, warmupTrials=0))
    finish(it, 1)
    it.change_spec(rerun="again")
    pauses = [0]
    while number(it) < 2 or it.benchmark.status.phase not in ENDED:
        pauses.append(sum(1 for _ in decide_in_steps(it.observe(), it.now)))
        it.advance()
    assert max(pauses) > 2 * len(sizes)
    assert pauses.count(0) == len(pauses) - 1, "only the end of a run takes long"


def replace_server_node(it: World) -> str:
    it.nodes["c2"] = replace(it.nodes.pop("c1"), name="c2")
    return "run 1 used c1, this run uses c2."


def replace_client_image(it: World) -> str:
    it.engine = "2"
    return "run 1 used tierbench-client 1, this run uses tierbench-client 2."


@pytest.mark.parametrize("change", [replace_server_node, replace_client_image])
def test_runs_in_different_environments_are_not_compared(change: Callable[[World], str]) -> None:
    it = world()
    finish(it, 1)
    words = change(it)
    again(it, 2_000_000_000)
    assert condition(it, reasons.REGRESSED) == ("Unknown", reasons.NOT_COMPARABLE)
    assert words in message(it, reasons.REGRESSED)
    again(it, 3_000_000_000)
    assert condition(it, reasons.REGRESSED) == ("True", reasons.WORSE_THAN_BEFORE)


def test_a_change_of_the_environment_does_not_hide_a_regression_after_it() -> None:
    it = world(baselineRun=1)
    finish(it, 1)
    replace_server_node(it)
    again(it, 1_000_000_000)
    again(it, 2_000_000_000)
    assert condition(it, reasons.REGRESSED) == ("True", reasons.WORSE_THAN_BEFORE)


def test_the_verdicts_of_a_run_in_progress_are_reset() -> None:
    it = world(constraints={"maxMeanMilliseconds": 1100})
    finish(it, 1)
    again(it, 1_200_000_000)
    assert condition(it, reasons.PASSED) == ("False", reasons.CONSTRAINTS_BROKEN)
    it.change_spec(rerun="once more")
    it.reconcile()
    assert condition(it, reasons.REGRESSED) == ("False", reasons.RUNNING)
    assert condition(it, reasons.PASSED) == ("False", reasons.RUNNING)


def test_a_slow_decline_shows_against_the_baseline_which_is_kept() -> None:
    it = world(baselineRun=1, historyLimit=2)
    finish(it, 1)
    for percent in (120, 140, 160):
        again(it, percent * 10**7)
    assert condition(it, reasons.REGRESSED) == ("True", reasons.WORSE_THAN_BEFORE)
    assert {result.spec.run for result in it.results.values()} == {1, 3, 4}


def test_a_missing_baseline_is_reported() -> None:
    it = world(baselineRun=7)
    finish(it, 1)
    assert condition(it, reasons.REGRESSED) == ("False", reasons.BASELINE_NOT_FOUND)
    assert reasons.BASELINE_NOT_FOUND in {event.reason for event in it.events if event.warning}


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
    it = world(constraints=limits)
    finish(it, 1)
    status = "Unknown" if reason == reasons.CONSTRAINTS_UNKNOWN else str(reason == reasons.CONSTRAINTS_MET)
    assert condition(it, reasons.PASSED) == (status, reason)
    assert reason in {event.reason for event in it.events}


def test_a_failed_case_breaks_the_constraints() -> None:
    it = world(constraints={"maxRetries": 0})
    del it.nodes["c1"]
    finish(it, 1)
    assert condition(it, reasons.PASSED) == ("False", reasons.CONSTRAINTS_BROKEN)
    assert condition(it, reasons.REGRESSED) == ("False", reasons.NO_EARLIER_RUN)
