"""Runs with a Kafka by Strimzi in a simulated cluster, complete and failed."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.domain.objects import START, node
from tests.unit.domain.strimzi_world import VERSIONS, StrimziWorld, strimzi_benchmark
from tests.unit.domain.world import World
from tierbench.api.benchmark import Phase
from tierbench.api.result import ResultPhase
from tierbench.domain import reasons
from tierbench.domain.decision import Create, ProviderState
from tierbench.domain.views import Problem

MOSQUITTO = {"name": "mosquitto", "mosquitto": {}}
STRIMZI = {"name": "kafka", "kafka": {"provider": "Strimzi"}}
KINDS = ["Kafka", "KafkaNodePool", "KafkaTopic", "KafkaUser"]


def trials(world: World) -> list[tuple[str, int]]:
    return sorted((name, trial.trial) for name, item in world.results.items() for trial in item.recorded.trials)


def every_trial_once(cases: int = 2) -> list[tuple[str, int]]:
    return [(f"bb-demo-r1-c{case:03d}", trial) for case in range(1, cases + 1) for trial in (1, 2, 3)]


def assert_nothing_left(world: StrimziWorld) -> None:
    assert not (world.pods or world.jobs or world.services or world.secrets or world.leases or world.objects)


def step_until(world: StrimziWorld, reached: Callable[[StrimziWorld], bool]) -> None:
    for _ in range(300):
        if reached(world):
            return
        world.advance()
    raise AssertionError(world.benchmark.status)


def is_measuring(world: StrimziWorld) -> bool:
    return bool(world.printed)


def all_answer(world: StrimziWorld) -> bool:
    kinds = {kind for (kind, _), item in world.objects.items() if item.ready}
    return kinds == {"Kafka", "KafkaTopic", "KafkaUser"}


def has_broker(world: StrimziWorld) -> bool:
    return any(pod.role == "strimzi" for pod in world.pods.values())


def failures(world: World) -> set[str]:
    return {str(item.status.reason) for item in world.results.values()}


def test_a_run_completes_with_one_kafka_at_a_time() -> None:
    world = StrimziWorld()
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE
    assert trials(world) == every_trial_once()
    assert sorted(kind for kind, _ in world.created) == sorted(4 * KINDS)
    assert len({name for _, name in world.created}) == 8, "a name was used for two servers"
    for first in range(0, 12, 4):
        before = world.created[first : first + 4]
        assert sorted(world.removed[first : first + 4]) == sorted(before), "the next one came before this one was gone"
    assert_nothing_left(world)


def test_versions_are_kept_with_the_result() -> None:
    world = StrimziWorld()
    world.run()
    service = next(iter(world.results.values())).spec.service
    assert service is not None
    assert VERSIONS.items() <= service.settings.items()
    assert {"heap", "storage", "log.segment.bytes"} <= set(service.settings)


def test_no_trial_starts_before_all_objects_are_ready() -> None:
    """Each of the Kafka, its user, its topic and the pod of the broker is not ready in turn."""
    for kind in ("Kafka", "KafkaUser", "KafkaTopic"):
        world = StrimziWorld()
        step_until(world, all_answer)
        key = next(key for key in world.objects if key[0] == kind)
        world.objects[key] = replace(world.objects[key], ready=False)
        decision = world.reconcile()
        assert not any(isinstance(action, Create) for action in decision.actions), kind
        assert kind in _server_ready(world)
    world = StrimziWorld()
    step_until(world, all_answer)
    world.pods[world.broker().name] = replace(world.broker(), ready=False)
    assert world.broker().name in _server_ready(world)


def _server_ready(world: World) -> str:
    world.reconcile()
    return next(item.message for item in world.benchmark.status.conditions if item.type == reasons.SERVER_READY)


@pytest.mark.parametrize("finalizers", [False, True])
def test_topics_are_deleted_first_and_pools_last(finalizers: bool) -> None:
    world = StrimziWorld(finalizers=finalizers)
    world.run()
    kinds = [kind for kind, _ in world.removed[:4]]
    assert kinds[0] == "KafkaTopic"
    assert kinds[-1] == "KafkaNodePool"
    assert_nothing_left(world)


def test_the_finalizers_of_a_topic_without_operator_are_removed() -> None:
    """A user deletes the Kafka. Without its operator the topic, and with it the namespace, could not be deleted."""
    world = StrimziWorld(finalizers=True)
    step_until(world, is_measuring)
    for key in [key for key in world.objects if key[0] == "Kafka"]:
        del world.objects[key]
    world.watching = False
    world.change_spec(suspend=True)
    world.run()
    assert world.benchmark.status.phase is Phase.SUSPENDED
    assert_nothing_left(world)


def test_a_run_waits_for_a_terminating_kafka() -> None:
    world = StrimziWorld(lingering=timedelta(minutes=2))
    world.run()
    assert trials(world) == every_trial_once()
    assert [kind for kind, _ in world.removed[:4]][-1] == "KafkaNodePool"
    assert_nothing_left(world)


def test_a_run_without_strimzi_fails() -> None:
    world = StrimziWorld(strimzi=ProviderState())
    world.run()
    assert world.benchmark.status.phase is Phase.FAILED
    assert failures(world) == {reasons.STRIMZI_NOT_FOUND}
    assert world.created == []
    assert_nothing_left(world)


def test_a_strimzi_that_is_too_old_fails_the_cases() -> None:
    world = StrimziWorld(strimzi=ProviderState(installed=True))
    world.run()
    assert failures(world) == {reasons.STRIMZI_TOO_OLD}
    assert world.created == []


def test_a_strimzi_that_does_not_watch_the_namespace_fails_the_cases() -> None:
    world = StrimziWorld(watching=False)
    world.run()
    assert failures(world) == {reasons.STRIMZI_NOT_WATCHING}
    assert "default" in str(next(iter(world.results.values())).status.message)
    assert world.now - START >= timedelta(minutes=3), "a Strimzi that is still starting needs time to answer"
    assert_nothing_left(world)


def test_an_architecture_without_image_fails_only_its_cases() -> None:
    world = StrimziWorld()
    world.nodes["j1"] = replace(node("j1", "jetson"), architecture="arm")
    world.run()
    phases = [(item.status.phase, item.status.reason) for _, item in sorted(world.results.items())]
    assert phases == [(ResultPhase.COMPLETE, ""), (ResultPhase.FAILED, reasons.NO_IMAGE_FOR_ARCHITECTURE)]


@pytest.mark.parametrize(("transient", "seconds"), [(False, 5), (True, 60)])
def test_a_rejection_by_strimzi_fails_the_cases(transient: bool, seconds: int) -> None:
    """A permanent problem fails the case at once, a transient one after the scheduling timeout."""
    world = StrimziWorld()
    step_until(world, has_broker)
    key = next(key for key in world.objects if key[0] == "Kafka")
    rejection = Problem(reasons.STRIMZI_REFUSED, "Kafka x: InvalidResourceException: no such option", transient)
    world.objects[key] = replace(world.objects[key], ready=False, rejection=rejection, rejected_since=world.now)
    since = world.now
    step_until(world, lambda world: bool(world.results))
    assert timedelta(seconds=seconds - 5) <= world.now - since <= timedelta(seconds=seconds + 5)
    assert failures(world) == {reasons.STRIMZI_REFUSED}
    world.run()
    assert_nothing_left(world)


@pytest.mark.parametrize(
    ("problem", "seconds"),
    [
        (Problem(reasons.OUT_OF_MEMORY, "container kafka ran out of memory"), 0),
        (Problem(reasons.UNSCHEDULABLE, "0/3 nodes are available", transient=True), 60),
    ],
)
def test_a_problem_of_the_brokers_pod_is_reported(problem: Problem, seconds: int) -> None:
    world = StrimziWorld()
    step_until(world, has_broker)
    world.pods[world.broker().name] = replace(world.broker(), ready=False, problem=problem)
    name, since = world.broker().name, world.now
    step_until(world, lambda world: bool(world.results))
    assert world.now - since >= timedelta(seconds=seconds)
    assert failures(world) == {problem.reason}
    assert name in str(next(iter(world.results.values())).status.message)


def test_a_run_waits_for_a_broker_killed_during_a_trial() -> None:
    world = StrimziWorld()
    step_until(world, is_measuring)
    world.pods[world.broker().name] = replace(world.broker(), ready=False)
    world.run()
    assert trials(world) == every_trial_once()
    assert world.benchmark.status.cases.failed == 0


def test_a_deleted_object_is_created_again() -> None:
    world = StrimziWorld()
    step_until(world, is_measuring)
    del world.objects[next(key for key in world.objects if key[0] == "KafkaTopic")]
    world.run()
    assert trials(world) == every_trial_once()
    assert_nothing_left(world)


def test_a_broker_on_another_node_is_not_ready() -> None:
    world = StrimziWorld()
    step_until(world, has_broker)
    world.pods[world.broker().name] = replace(world.broker(), ready=True, node="u1")
    for _ in range(20):
        world.reconcile()
        world.step()
    assert world.printed == []


def test_mosquitto_waits_until_the_kafka_is_gone() -> None:
    world = StrimziWorld(
        benchmark=strimzi_benchmark(brokers=[STRIMZI, MOSQUITTO], servers={"nodeClassNames": ["cloud"]})
    )
    while world.due:
        world.advance()
        servers = {pod.slot for pod in world.pods.values() if pod.role in {"server", "strimzi"} and not pod.deleting}
        assert len(servers) <= 1, world.pods
    assert trials(world) == every_trial_once()
    assert_nothing_left(world)


def test_the_preflight_runs_a_standalone_server() -> None:
    """Its iperf3 has the slot of a Kafka by Strimzi, but is none."""
    world = StrimziWorld(benchmark=strimzi_benchmark(preflight={}))
    world.run()
    assert trials(world) == every_trial_once()
    run = world.benchmark.status.run
    assert run is not None
    assert [item.download is not None for item in run.networks] == [True, True]
    assert_nothing_left(world)
