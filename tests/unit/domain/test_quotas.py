"""The administrator's limits: each problem names its chart value, and no measured trial is lost."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.domain.objects import START, benchmark, broker_benchmark
from tests.unit.domain.scenarios import condition, every_trial_once, measured_trials, nothing_left
from tests.unit.domain.world import World
from tierbench.api.benchmark import Phase
from tierbench.api.contract import Outcome
from tierbench.api.policy import Quotas
from tierbench.api.result import ResultPhase
from tierbench.api.run_policy import MAXIMUM_REPETITIONS
from tierbench.domain import reasons
from tierbench.domain.decision import Observed
from tierbench.domain.results import StoredRun
from tierbench.domain.run import Run
from tierbench.domain.views import LeaseView


def make_world(made: Any = None, **limits: Any) -> World:
    return World(made or benchmark(), quotas=Quotas.model_validate(limits))


def outcomes(world: World) -> dict[str, str]:
    return {name: result.status.reason for name, result in sorted(world.results.items())}


@pytest.mark.parametrize(
    ("limits", "reason", "message"),
    [
        ({"cases": 3}, reasons.TOO_MANY_CASES, "The run has 4 cases, but limits.cases allows 3."),
        (
            {"trials": 11},
            reasons.TOO_MANY_TRIALS,
            "4 cases with 3 repetitions are 12 trials, but limits.trials allows 11. Set spec.repetitions to 2 or less,",
        ),
        ({"trials": 3}, reasons.TOO_MANY_TRIALS, "but limits.trials allows 3. Name fewer levels,"),
    ],
)
def test_a_run_that_is_too_large_fails_before_anything_is_created(
    limits: dict[str, int], reason: str, message: str
) -> None:
    world = make_world(**limits)
    world.run()
    assert world.benchmark.status.phase is Phase.FAILED
    assert condition(world, reasons.FAILED) == ("True", reason)
    assert not world.results
    assert not world.leases
    (event,) = world.events
    assert (event.reason, message in event.message) == (reason, True)
    world.quotas = Quotas(cases=4, trials=12)
    world.change_spec(rerun="again")
    world.run()
    assert condition(world, reasons.COMPLETE) == ("True", reasons.ALL_CASES_MEASURED)


def test_the_largest_run_that_the_api_server_accepts_is_allowed() -> None:
    assert Quotas().cases * MAXIMUM_REPETITIONS <= Quotas().trials


def test_a_lower_limit_of_cases_does_not_end_a_run_in_progress() -> None:
    world = make_world()
    for _ in range(20):
        world.advance()
    world.quotas = Quotas(cases=1)
    world.run()
    assert measured_trials(world) == every_trial_once(world)


def test_the_limit_of_history_applies_and_is_reported() -> None:
    world = make_world(history=1)
    world.run()
    assert reasons.HISTORY_LIMITED not in [event.reason for event in world.events]
    world.change_spec(rerun="again")
    world.run()
    assert {result.spec.run for result in world.results.values()} == {2}
    (event,) = [event for event in world.events if event.reason == reasons.HISTORY_LIMITED]
    assert event.warning
    assert "limits.history" in event.message


def test_results_beyond_the_limit_fail_cases_and_lose_no_trial() -> None:
    world = make_world(resultBytes="1")
    world.run()
    assert list(outcomes(world).values()) == ["", "TooManyBytes", "", "TooManyBytes"]
    first = world.results["ft-demo-r1-c001"]
    assert len(first.recorded.trials) == 3
    assert first.status.stored_bytes > 1000
    assert "limits.resultBytes" in world.results["ft-demo-r1-c002"].status.message
    assert nothing_left(world)


def test_runs_that_are_deleted_at_the_end_do_not_count() -> None:
    world = make_world()
    world.run()
    stored = sum(result.status.stored_bytes for result in world.results.values())
    world.quotas = Quotas(result_bytes=str(stored))
    world.change_spec(rerun="again", history_limit=1)
    world.run()
    assert list(outcomes(world).values()) == [""] * 4
    assert {result.spec.run for result in world.results.values()} == {2}


def test_earlier_runs_count_and_are_kept() -> None:
    world = make_world()
    world.run()
    world.quotas = Quotas(result_bytes="1k")
    world.change_spec(rerun="again")
    world.run()
    assert [reason for name, reason in outcomes(world).items() if "-r2-" in name] == ["TooManyBytes"] * 4
    assert [reason for name, reason in outcomes(world).items() if "-r1-" in name] == [""] * 4


@pytest.mark.parametrize("seconds", [600, 650, 700])
def test_a_run_that_holds_nodes_too_long_ends_with_its_trials(seconds: int) -> None:
    """The Job and the Leases end with the time that is left, even if the client may take longer."""

    class Slow(World):
        def step(self) -> None:
            super().step()
            self.now += timedelta(seconds=100)
            for name, job in list(self.jobs.items()):
                pod, limit = self.pods.get(name), self.manifests[name]["spec"]["activeDeadlineSeconds"]
                if pod is not None and not job.finished and self.now - pod.created >= timedelta(seconds=limit):
                    self.reconcile()
                    if name in self.jobs:  # the operator may have ended it
                        self.kill_pod(name)
                        self.jobs[name] = replace(self.jobs[name], timed_out=True)

    world = Slow(benchmark(), quotas=Quotas(lease_seconds=seconds))
    world.run()
    early = [result.status.missing for result in world.results.values() if result.status.missing is not None]
    assert {*outcomes(world).values(), *(missing.reason for missing in early)} == {"", reasons.LEASE_LIMIT_EXCEEDED}
    assert all(manifest["spec"]["activeDeadlineSeconds"] <= seconds for manifest in world.manifests.values())
    good = [trial for result in world.results.values() for trial in result.recorded.trials]
    assert len(good) == len(set(world.printed))
    assert all(trial.outcome is Outcome.COMPLETED for trial in good)
    assert world.now - START < timedelta(seconds=seconds + 600)
    assert nothing_left(world)


def test_the_limit_also_ends_the_wait_for_a_server() -> None:
    class Unready(World):
        def step(self) -> None:
            super().step()
            self.now += timedelta(seconds=100)
            self.pods = {name: replace(pod, ready=False) for name, pod in self.pods.items()}

    world = Unready(benchmark(timeouts={"serverReadySeconds": 86400}), quotas=Quotas(lease_seconds=600))
    world.run()
    assert set(outcomes(world).values()) == {reasons.LEASE_LIMIT_EXCEEDED}
    assert world.now - START < timedelta(seconds=1000)


def test_a_limit_exceeded_between_two_passes_keeps_the_trials() -> None:
    brokers = [{"name": name, "mosquitto": {"persistence": name == "b"}} for name in "ab"]
    world = World(broker_benchmark(brokers=brokers))
    for _ in range(400):
        if any(result.recorded.trials for result in world.results.values()) and not world.jobs:
            break
        world.advance()
    world.quotas = Quotas(result_bytes="1")
    world.run()
    statuses = [result.status for result in world.results.values()]
    assert ResultPhase.COMPLETE in [status.phase for status in statuses]
    assert {status.missing.reason for status in statuses if status.missing} == {reasons.TOO_MANY_BYTES}


def hold_node(world: World, name: str, seconds: int, namespace: str = "default") -> None:
    since = START + timedelta(seconds=seconds)
    lease = LeaseView(f"node-of-{name}", f"{namespace}/{name}/uid-{name}", since, START + timedelta(hours=9))
    world.leases[lease.node] = lease


def test_the_running_benchmarks_of_a_namespace_are_limited() -> None:
    world = make_world(benchmarksAtOnce=2)
    hold_node(world, "a", -5)
    hold_node(world, "elsewhere", -5, "other")
    hold_node(world, "b", -5)
    world.reconcile()
    waiting = world.reconcile()
    assert world.benchmark.status.phase is Phase.QUEUED
    assert condition(world, reasons.QUEUED) == ("True", reasons.TOO_MANY_BENCHMARKS)
    assert waiting.waits_for is not None
    assert waiting.waits_for.items == {"namespace/default"}, "it queues at no node"
    assert "limits.benchmarksAtOnce" in world.events[-1].message
    del world.leases["node-of-a"]
    world.run()
    assert measured_trials(world) == every_trial_once(world)


@pytest.mark.parametrize(("seconds", "stays"), [(-5, False), (5, True)])
def test_the_first_of_two_benchmarks_to_acquire_nodes_keeps_them(seconds: int, stays: bool) -> None:
    world = make_world(benchmarksAtOnce=1)
    world.reconcile()
    world.reconcile()
    assert world.leases
    hold_node(world, "other", seconds)
    world.reconcile()
    assert ("c1" in world.leases) == stays
    assert (world.benchmark.status.phase is Phase.RUNNING) == stays
    assert bool(world.pods) == stays


def test_a_measuring_benchmark_is_not_queued_again() -> None:
    world = make_world(benchmarksAtOnce=2)
    hold_node(world, "other", -5)
    for _ in range(10):
        world.advance()
    world.quotas = Quotas(benchmarks_at_once=1)
    world.run()
    assert measured_trials(world) == every_trial_once(world)


def test_the_preparation_gets_the_free_disk_space() -> None:
    world = make_world(freeDisk="5Gi")
    world.reconcile()
    observed = world.observe()
    run = Run(observed, observed.benchmark.status.run, world.now)  # type: ignore[arg-type]
    instances: list[Any] = [run.instance(placement) for placement in observed.workload.server_placements()]
    assert [instance.free_bytes for instance in instances] == [5 * 2**30] * 2


def test_resource_limits_of_a_namespace_are_kept_in_the_result() -> None:
    """The user did not set them, and they limit the measurement."""

    class Limited(World):
        def step(self) -> None:
            super().step()
            for name, pod in self.pods.items():
                self.pods[name] = replace(pod, limits={"memory": "64Mi"})

    world = Limited()
    world.run()
    kept = [result.spec.service.settings for result in world.results.values() if result.spec.service]
    assert kept == [{"limits.memory": "64Mi"}] * 4


class Full(World):
    """A world whose benchmarks have stored as much as the limit allows."""

    stored = 10
    deletable: tuple[StoredRun, ...] = ()

    def observe(self) -> Observed:
        return replace(super().observe(), stored_bytes=self.stored, deletable_runs=self.deletable)


def test_no_run_starts_while_the_storage_is_full() -> None:
    world = Full(quotas=Quotas(stored_bytes="10"))
    for _ in range(5):
        world.advance()
    assert condition(world, reasons.QUEUED) == ("True", reasons.STORAGE_FULL)
    assert not world.leases
    world.stored = 9
    world.run()
    assert measured_trials(world) == every_trial_once(world)


def test_a_run_that_waits_for_storage_says_what_to_delete() -> None:
    world = Full(quotas=Quotas(stored_bytes="10"))
    for _ in range(5):
        world.advance()
    assert "In namespace default, all results are of newest runs or of baselines." in queued_message(world)
    world.deletable = tuple(StoredRun("FileTransferBenchmark", "files", number, 10 * number) for number in (4, 3, 2, 1))
    world.advance()
    message = queued_message(world)
    for words in (
        "take 10 bytes; limits.storedBytes is 10. Delete results, or ask an administrator to raise limits.storedBytes",
        "run 4 of FileTransferBenchmark files (40 bytes), run 3 of FileTransferBenchmark files (30 bytes), run 2",
        "`kubectl delete benchmarkresults --namespace default --selector "
        "tierbench.io/kind=FileTransferBenchmark,tierbench.io/benchmark=files,tierbench.io/run=4`",
    ):
        assert words in message
    assert "run 1 of" not in message


def queued_message(world: World) -> str:
    return next(item.message for item in world.benchmark.status.conditions if item.type == reasons.QUEUED)


def test_a_run_in_progress_ends_with_its_trials_when_the_storage_is_full() -> None:
    world = Full(quotas=Quotas(stored_bytes="10"))
    world.stored = 9
    while not any(result.recorded.trials for result in world.results.values()):
        world.advance()
    world.stored = 10
    world.run()
    assert list(outcomes(world).values()) == ["", reasons.STORAGE_FULL, "", reasons.STORAGE_FULL]
    assert "limits.storedBytes" in world.results["ft-demo-r1-c002"].status.message
    assert nothing_left(world)
