"""Changes of a spec: what they supersede and what they keep, in every phase."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from tests.unit.domain.objects import benchmark, broker_benchmark, network_benchmark, node
from tests.unit.domain.scenarios import condition, every_trial_once, measured_trials, nothing_left, until_printed
from tests.unit.domain.strimzi_world import StrimziWorld
from tests.unit.domain.world import World
from tierbench.api.benchmark import Benchmark, Phase, RunStatus
from tierbench.api.canonical import spec_hash
from tierbench.api.policy import Policy
from tierbench.api.result import ResultPhase
from tierbench.domain import reasons
from tierbench.workloads.workload import ROLE_CLIENT

OTHER: dict[str, Any] = {"fileSizes": ["4Mi"], "servers": {"nodeClassNames": ["jetson"]}}
FIRST = "ft-demo-r1-c001"


def run_of(world: World) -> RunStatus:
    assert world.benchmark.status.run is not None
    return world.benchmark.status.run


def number(world: World) -> int:
    return run_of(world).number


def results_of(world: World, run: int) -> dict[str, Any]:
    return {name: result for name, result in world.results.items() if result.spec.run == run}


def assert_other_measured(world: World, run: int) -> None:
    """Asserts that the run has measured the case of OTHER, and the benchmark is settled."""
    assert (number(world), world.benchmark.status.phase) == (run, Phase.COMPLETE)
    assert condition(world, reasons.COMPLETE)[0] == "True"
    (result,) = results_of(world, run).values()
    assert (result.spec.levels["fileSize"], result.spec.server.node_class) == ("4Mi", "jetson")
    assert [trial.trial for trial in result.recorded.trials] == [1, 2, 3]
    assert not result.superseded
    assert nothing_left(world)


def test_change_during_a_trial_ends_the_run_and_keeps_what_it_measured() -> None:
    world = World()
    until_printed(world, 3)
    world.reconcile()
    before = measured_trials(world)
    world.edit(**OTHER)
    world.run()
    assert_other_measured(world, 2)
    ended = results_of(world, 1)
    assert [trial for trial in measured_trials(world) if "-r1-" in trial[0]] == before
    assert all(result.superseded and result.status.phase is ResultPhase.COMPLETE for result in ended.values())
    assert {result.status.valid for result in ended.values()} == {False}
    assert {result.status.missing.reason for result in ended.values()} == {reasons.SUPERSEDED}
    superseded = [event for event in world.events if event.reason == reasons.SUPERSEDED]
    assert [event.message for event in superseded] == [
        "The spec has changed: run 1 ends, and run 2 measures the current spec."
    ]


SIMULTANEOUS = {"nodeClassNames": ["user"], "nodesPerClass": 2, "modes": ["Simultaneous"]}


@pytest.mark.parametrize(
    ("made", "other"),
    [
        (benchmark, OTHER),
        (broker_benchmark, {"payload": {"sizes": ["4Ki"]}}),
        (partial(network_benchmark, clients=SIMULTANEOUS), {"repetitions": 2}),
    ],
)
@pytest.mark.parametrize("reason", [reasons.SUPERSEDED, reasons.SUSPENDED])
def test_trials_that_were_printed_and_not_read_are_recorded(
    made: Callable[[], Benchmark], other: dict[str, Any], reason: str
) -> None:
    """The operator was down, or reads logs late."""
    world = World(made(), lines_behind=100)
    world.nodes["u2"] = node("u2", "user")
    until_printed(world, 6)
    assert not measured_trials(world)
    if reason == reasons.SUPERSEDED:
        world.edit(**other)
    else:
        world.change_spec(suspend=True)
    while not nothing_left(world):
        world.advance()
    printed = {
        pod.rpartition("-c")[0] + f"-c{int(turn.split(':')[0]):03d}/{turn.split(':')[1]}" for pod, turn in world.printed
    }
    assert printed == {f"{name}/{trial}" for name, trial in measured_trials(world)}


def test_trial_that_a_part_has_not_printed_is_not_recorded() -> None:
    """Only one part of two has printed the second trial."""
    world = World(broker_benchmark(), lines_behind=100)
    until_printed(world, 2)
    pod = next(pod for pod in world.pods.values() if pod.role == ROLE_CLIENT and pod.part == 1)
    world._print_next(pod)
    world.edit(payload={"sizes": ["4Ki"]})
    world.run()
    assert len([trial for trial in measured_trials(world) if "-r1-" in trial[0]]) == 1


def test_unreadable_log_delays_a_change_only_for_a_while() -> None:
    world = World(lines_behind=100)
    until_printed(world, 2)
    world.edit(**OTHER)
    world.unreadable_logs_since = world.now
    world.reconcile()
    assert world.reconcile().requeue_after > 0
    assert world.jobs, "the client was deleted before its log was read"
    world.now += timedelta(seconds=world.benchmark.spec.timeouts.node_not_ready_seconds + 1)
    world.run()
    assert number(world) == 2


def pending(world: World) -> None:
    del world.classes["cloud"]
    world.reconcile()
    assert world.benchmark.status.phase is Phase.PENDING


def between_trials(world: World) -> None:
    while len(measured_trials(world)) < 1:
        world.advance()


def after_a_case(world: World) -> None:
    while not any(one.status.phase is not ResultPhase.RUNNING for one in world.results.values()):
        world.advance()


def server_starting(world: World) -> None:
    while not world.pods:
        world.advance()


def suspended(world: World) -> None:
    until_printed(world, 2)
    world.change_spec(suspend=True)
    world.run()
    assert world.benchmark.status.phase is Phase.SUSPENDED


def complete(world: World) -> None:
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE


def refused(world: World) -> None:
    world.policy = Policy(node_class_names={"default": ("jetson", "user")})
    world.run()
    assert world.benchmark.status.phase is Phase.FAILED


@pytest.mark.parametrize(
    "reach", [pending, server_starting, between_trials, after_a_case, suspended, complete, refused]
)
def test_changed_spec_is_measured_from_every_phase(reach: Callable[[World], None]) -> None:
    world = World()
    reach(world)
    world.edit(**OTHER)
    world.run()
    if reach is suspended:
        assert (world.benchmark.status.phase, nothing_left(world)) == (Phase.SUSPENDED, True)
        world.change_spec(suspend=False)
        world.run()
    assert_other_measured(world, 2)
    assert {one.status.phase is ResultPhase.RUNNING for one in world.results.values()} == {False}
    assert {one.superseded for one in results_of(world, 1).values()} <= {reach not in {complete, refused}}


def test_change_of_the_run_policy_alone_does_not_disturb_the_run() -> None:
    world = World()
    until_printed(world, 2)
    world.change_spec(history=2, schedule="0 0 1 1 *")
    world.reconcile()
    assert run_of(world).observed_generation == 2
    for _ in range(100):
        if world.benchmark.status.phase is Phase.COMPLETE:
            break
        world.advance()
    assert (number(world), measured_trials(world)) == (1, every_trial_once(world))
    assert len(world.printed) == len(every_trial_once(world))


def test_spec_restored_before_its_run_ends_continues_the_run() -> None:
    world = World()
    until_printed(world, 2)
    before = world.benchmark.spec.to_json()
    world.edit(**OTHER)
    while world.jobs:
        world.reconcile()
    world.edit(**before)
    world.run()
    assert (number(world), measured_trials(world)) == (1, every_trial_once(world))


@pytest.mark.parametrize("writes", [2, 3, 4, None])
def test_spec_restored_while_results_are_marked_is_measured_again(writes: int | None) -> None:
    """The first write of a reconcile is the status. The operator is killed after some of the next ones."""
    world = World()
    until_printed(world, 4)
    world.reconcile()
    before = world.benchmark.spec.to_json()
    world.edit(**OTHER)
    while not nothing_left(world):
        world.advance()
    world.reconcile(lambda _: writes)
    assert any(result.superseded for result in world.results.values())
    world.edit(**before)
    world.run()
    assert number(world) == 2
    assert {result.superseded for result in results_of(world, 1).values()} == {True}
    assert [trial for trial in measured_trials(world) if "-r2-" in trial[0]] == every_trial_once(world, 2)


def test_spec_restored_later_is_measured_again() -> None:
    world = World()
    until_printed(world, 2)
    before = world.benchmark.spec.to_json()
    world.edit(**OTHER)
    while not run_of(world).superseded:
        world.advance()
    world.edit(**before)
    world.run()
    assert number(world) == 2
    assert [trial for trial in measured_trials(world) if "-r2-" in trial[0]] == every_trial_once(world, 2)


def test_every_condition_has_the_generation_of_its_spec() -> None:
    world = World()
    world.run()
    for change in ({"runPolicy": {"historyLimit": 2}}, OTHER):
        world.edit(**change)
        world.run()
        status, generation = world.benchmark.status, world.benchmark.metadata.generation
        assert {item.observed_generation for item in status.conditions} == {generation}
        assert (status.observed_generation, run_of(world).observed_generation) == (generation, generation)


def test_outdated_run_does_not_claim_the_new_generation() -> None:
    world = World()
    until_printed(world, 2)
    world.edit(**OTHER)
    world.reconcile()
    status = world.benchmark.status
    assert (status.observed_generation, run_of(world).observed_generation) == (1, 1)
    assert {item.observed_generation for item in status.conditions if item.type == reasons.COMPLETE} == {1}


def test_another_version_of_the_operator_does_not_start_the_run_again() -> None:
    """It may compute another hash for the same spec."""
    world = World()
    world.run()
    run = run_of(world).model_copy(update={"spec_hash": "of-another-version"})
    world.benchmark = world.benchmark.model_copy(
        update={"status": world.benchmark.status.model_copy(update={"run": run, "phase": Phase.PENDING})}
    )
    world.reconcile()
    assert number(world) == 1


def test_superseded_run_with_strimzi_leaves_no_objects() -> None:
    world = StrimziWorld(broker_benchmark(brokers=[{"name": "kafka", "kafka": {"provider": "Strimzi"}}]))
    until_printed(world, 2)
    assert world.objects
    world.edit(brokers=[{"name": "mosquitto", "mosquitto": {}}])
    world.run()
    assert not world.objects
    assert nothing_left(world)
    assert {result.spec.levels["broker"] for result in results_of(world, 2).values()} == {"mosquitto"}


def test_superseded_runs_do_not_push_results_out_of_the_history() -> None:
    world = World(benchmark(runPolicy={"historyLimit": 2}))
    world.run()
    for size in ("3Mi", "5Mi", "6Mi"):
        before = len(world.printed)
        world.edit(fileSizes=[size])
        until_printed(world, before + 2)
        world.reconcile()
    world.edit(**OTHER)
    world.run()
    assert number(world) == 5
    assert {result.spec.run for result in world.results.values()} == {1, 2, 3, 4, 5}
    world.change_spec(rerun="again")
    world.run()
    assert {result.spec.run for result in world.results.values()} == {5, 6}


@pytest.mark.parametrize("name", ["servers", "fileSizes", "both"])
def test_order_of_a_set_does_not_change_the_spec(name: str) -> None:
    made = {"servers": {"nodeClassNames": ["jetson", "cloud"]}, "fileSizes": ["2Mi", "1Mi"]}
    given = made if name == "both" else {name: made[name]}
    assert spec_hash(benchmark(**given).spec) == spec_hash(benchmark().spec)
    world = World()
    until_printed(world, 2)
    world.edit(**given)
    world.run()
    assert (number(world), measured_trials(world)) == (1, every_trial_once(world))
    assert len(world.printed) == len(every_trial_once(world)), "a trial was run twice"


def test_run_of_another_spec_is_compared_case_by_case() -> None:
    world = World()
    world.run()
    world.nanoseconds = 2 * 10**9
    world.edit(fileSizes=["1Mi", "4Mi"])
    world.run()
    assert condition(world, reasons.REGRESSED) == ("True", reasons.WORSE_THAN_BEFORE)
    message = next(item.message for item in world.benchmark.status.conditions if item.type == reasons.REGRESSED)
    assert "1Mi" in message
    assert "4Mi" not in message


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"fileSizes": ["4Mi"]}, "file size is 1Mi and 2Mi in run 1, and 4Mi in this run"),
        ({"retry": {"attempts": 3}}, "attempts is 20 in run 1, and 3 in this run"),
        ({"warmupTrials": 1}, "warmup is 0 in run 1, and 1 in this run"),
        ({"storage": {"hostPath": {"path": "/var/lib/tierbench/b"}}}, "host path is not set in run 1"),
    ],
)
def test_run_of_another_spec_says_why_nothing_can_be_compared(fields: dict[str, Any], why: str) -> None:
    world = World()
    world.run()
    world.nanoseconds = 2 * 10**9
    world.edit(**fields)
    world.run()
    assert condition(world, reasons.REGRESSED) == ("Unknown", reasons.NOT_COMPARABLE)
    message = next(item.message for item in world.benchmark.status.conditions if item.type == reasons.REGRESSED)
    assert why in message
    assert "set spec.runPolicy.baselineRun to 2" in message


def test_run_is_compared_with_the_newest_run_of_the_same_spec() -> None:
    world = World()
    world.run()
    before = world.benchmark.spec.to_json()
    world.edit(fileSizes=["4Mi"])
    world.run()
    world.edit(**before)
    world.run()
    assert condition(world, reasons.REGRESSED) == ("False", reasons.NOT_WORSE)


def test_result_of_another_case_is_kept_and_another_run_begins() -> None:
    """Another version of the operator may number the cases in another way."""
    world = World()
    until_printed(world, 2)
    world.reconcile()
    result = world.results[FIRST]
    other = result.spec.model_copy(update={"levels": {**result.spec.levels, "fileSize": "7Mi"}})
    world.results[FIRST] = result.model_copy(update={"spec": other})
    world.run()
    assert (number(world), world.results[FIRST].spec.levels["fileSize"]) == (2, "7Mi")
    assert world.results[FIRST].superseded
    assert [trial for trial in measured_trials(world) if "-r2-" in trial[0]] == every_trial_once(world, 2)
