"""A benchmark from its creation to its end, in a simulated cluster."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tests.unit.domain.objects import OWNER, START, benchmark, broker_benchmark, node, seal
from tests.unit.domain.scenarios import condition, every_trial_once, measured_trials, nothing_left
from tests.unit.domain.world import World
from tierbench.api.benchmark import Benchmark, Phase
from tierbench.api.result import ResultPhase
from tierbench.domain import reasons
from tierbench.domain.decide import decide
from tierbench.domain.decision import FailedRequest
from tierbench.domain.queueing import AdmissionQueue, Wait
from tierbench.domain.views import LeaseView, Problem, Termination
from tierbench.results.quantities import is_censored
from tierbench.workloads.workload import ROLE_CLIENT, ROLE_SERVER


def test_a_run_measures_every_trial_once() -> None:
    world = World()
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE
    assert world.benchmark.status.progress == "4/4"
    assert measured_trials(world) == every_trial_once(world)
    assert all(result.status.phase is ResultPhase.COMPLETE for result in world.results.values())
    assert condition(world, reasons.COMPLETE) == ("True", reasons.ALL_CASES_MEASURED)
    assert nothing_left(world)


def test_a_settled_benchmark_is_not_reconciled() -> None:
    world = World()
    world.run()
    assert not world.due
    world.change_spec(rerun="again")
    assert world.due


def test_a_suspended_run_keeps_its_trials_and_continues_with_the_next_one() -> None:
    world = World()
    while len(world.printed) < 2:
        world.advance()
    world.reconcile()
    world.change_spec(suspend=True)
    world.run()
    assert world.benchmark.status.phase is Phase.SUSPENDED
    assert nothing_left(world)
    assert len(measured_trials(world)) == 2
    world.change_spec(suspend=False)
    world.run()
    assert measured_trials(world) == every_trial_once(world)
    assert len(world.printed) == 12
    assert condition(world, reasons.SUSPENDED)[0] == "False"


def test_suspend_after_the_end_changes_nothing() -> None:
    world = World()
    world.run()
    world.change_spec(suspend=True)
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE


def test_rerun_starts_a_numbered_run_and_history_is_limited() -> None:
    world = World(benchmark=benchmark(runPolicy={"historyLimit": 2}))
    world.run()
    for number in (2, 3):
        world.change_spec(rerun=f"run {number}")
        world.run()
        assert world.benchmark.status.run is not None
        assert world.benchmark.status.run.number == number
    assert {result.spec.run for result in world.results.values()} == {2, 3}
    assert condition(world, reasons.COMPLETE)[0] == "True"


def test_ttl_deletes_the_benchmark_after_its_end() -> None:
    world = World(benchmark=benchmark(runPolicy={"ttlSecondsAfterFinished": 600}))
    for _ in range(500):
        decision = world.reconcile()
        if world.benchmark.status.phase is Phase.COMPLETE:
            break
        if decision.requeue_after > 0:
            world.step()
    waited = 0.0
    while not world.deleted:
        wait = world.reconcile().requeue_after
        if not world.deleted:
            assert wait > 0
            waited += wait
            world.now += timedelta(seconds=wait)
    assert 590 <= waited <= 600


def test_a_benchmark_waits_for_a_missing_class() -> None:
    world = World()
    jetson = world.classes.pop("jetson")
    decision = world.reconcile()
    assert 0 < decision.requeue_after <= 5
    assert condition(world, reasons.SCHEDULED) == ("False", reasons.NODE_CLASS_NOT_FOUND)
    world.classes["jetson"] = jetson
    world.run()
    assert measured_trials(world) == every_trial_once(world)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda world: world.classes.pop("jetson"), reasons.NODE_CLASS_NOT_FOUND),
        (lambda world: world.nodes.pop("j1"), reasons.NO_SUCH_NODE),
        (lambda world: world.nodes.update(j1=node("j1", "jetson", ready=False)), reasons.NO_READY_NODE),
    ],
)
def test_a_class_without_nodes_fails_only_its_cases(spoil: Callable[[World], object], reason: str) -> None:
    world = World()
    spoil(world)
    world.run()
    failed = {result.spec.server.node_class for result in world.results.values() if result.status.reason == reason}
    assert failed == {"jetson"}
    assert world.benchmark.status.cases.failed == 2
    assert condition(world, reasons.COMPLETE) == ("True", reasons.SOME_CASES_FAILED)
    assert world.now - START < timedelta(seconds=120)


def test_a_case_without_a_separate_client_node_fails() -> None:
    world = World(benchmark=benchmark(clients={"nodeClassNames": ["cloud"]}))
    world.run()
    reasons_by_class = {result.spec.server.node_class: result.status.reason for result in world.results.values()}
    assert reasons_by_class == {"cloud": reasons.NO_SEPARATE_CLIENT_NODE, "jetson": ""}


def test_a_run_that_measures_nothing_fails() -> None:
    world = World(nodes={})
    world.run()
    assert world.benchmark.status.phase is Phase.FAILED
    assert condition(world, reasons.FAILED) == ("True", reasons.NO_CASE_MEASURED)


@pytest.mark.parametrize(
    ("holder", "who"), [("default/bench", "default/bench"), ("other/bench", "a benchmark of another namespace")]
)
def test_a_queued_benchmark_names_the_holder_only_within_its_namespace(holder: str, who: str) -> None:
    world = World()
    world.leases["u1"] = LeaseView("u1", f"{holder}/uid-2", START, START + timedelta(hours=1))
    world.reconcile()
    world.reconcile()
    assert world.benchmark.status.phase is Phase.QUEUED
    queued = next(item for item in world.benchmark.status.conditions if item.type == reasons.QUEUED)
    assert queued.status == "True"
    assert f"u1 is in use by {who}" in queued.message
    assert not world.pods
    events = len(world.events)
    world.reconcile()
    assert len(world.events) == events, "the same wait is reported once"
    del world.leases["u1"]
    world.run()
    assert measured_trials(world) == every_trial_once(world)


@pytest.mark.parametrize(
    ("namespace", "message"),
    [
        (
            "default",
            "Waiting for default/older, which is ahead in the queue: its run became due before this one.",
        ),
        ("other", "Waiting for a benchmark of another namespace, which is ahead in the queue: namespaces take turns."),
    ],
)
def test_a_queued_benchmark_names_the_one_ahead_only_within_its_namespace(namespace: str, message: str) -> None:
    world = World()
    world.reconcile()
    decision = decide(replace(world.observe(), queue=queue_of(namespace, "older", "c1")), world.now)
    queued = next(item for item in decision.status.conditions if item.type == reasons.QUEUED)
    assert (queued.status, queued.reason, queued.message) == ("True", reasons.WAITS_FOR_TURN, message)
    assert [event.message for event in decision.events] == [message]


def queue_of(namespace: str, name: str, *items: str) -> AdmissionQueue:
    """Returns a queue with one benchmark, whose run became due early."""
    queue = AdmissionQueue()
    queue.enqueue((OWNER.kind, namespace, name), Wait(START - timedelta(hours=1), frozenset(items)))
    return queue


def test_a_benchmark_waits_for_its_namespace_only_if_the_one_ahead_does() -> None:
    """Otherwise it would block benchmarks of the namespace that need other nodes."""
    world, turn = World(), "namespace/default"
    world.reconcile()
    for items, waits in (({"c1"}, False), ({"c1", turn}, True)):
        decision = decide(replace(world.observe(), queue=queue_of("default", "older", *items)), world.now)
        assert decision.waits_for is not None
        assert (turn in decision.waits_for.items) is waits
        assert {"c1", "u1"} <= decision.waits_for.items


def test_a_benchmark_that_acquires_its_nodes_queues_until_it_holds_them() -> None:
    """It keeps its place if another operator takes one of them first."""
    world = World()
    world.reconcile()
    acquiring = decide(world.observe(), world.now)
    assert acquiring.status.phase is Phase.RUNNING
    assert acquiring.waits_for == Wait(START, frozenset({"c1", "j1", "u1"}))
    world.reconcile()
    assert world.reconcile().waits_for is None


def test_a_run_is_due_again_when_it_is_resumed() -> None:
    """Otherwise a namespace could suspend benchmarks to keep early places in the queue."""
    world, later = World(), START + timedelta(hours=1)
    world.leases["u1"] = LeaseView("u1", "other/bench/uid-2", START, START + timedelta(hours=9))
    world.reconcile()
    assert due(world) == START
    world.change_spec(suspend=True)
    world.reconcile()
    world.now = later
    world.change_spec(suspend=False)
    assert due(world) == later
    world.now += timedelta(hours=1)
    assert due(world) == later


def due(world: World) -> datetime:
    decision = world.reconcile()
    assert decision.waits_for is not None
    return decision.waits_for.due


def test_a_server_that_cannot_start_fails_only_its_cases() -> None:
    world = World()
    problem = Problem("InsufficientStorage", "needs 5Gi, 1Gi is free")
    for _ in range(500):
        if not world.due:
            break
        world.advance()
        name = "ft-demo-r1-s1"
        if name in world.pods and not world.pods[name].deleting:
            world.pods[name] = replace(world.pods[name], ready=False, problem=problem)
    outcome = {name: result.status.reason for name, result in world.results.items()}
    assert list(outcome.values()).count("InsufficientStorage") == 2
    assert world.benchmark.status.cases.failed == 2
    assert nothing_left(world)


def test_a_permanent_failure_of_a_client_fails_its_case_at_once() -> None:
    world = World()
    failed_pods = 0
    for _ in range(500):
        if not world.due:
            break
        world.advance()
        for pod in list(world.pods.values()):
            if pod.role == ROLE_CLIENT and pod.case == 1 and pod.terminated is None:
                failed_pods += 1
                world.logs[pod.uid] = ""
                message = seal("", {"reason": "AgentUnreachable", "message": "no answer"})
                world.pods[pod.name] = replace(pod, terminated=Termination(1, "Error", message))
    assert failed_pods == 1
    assert world.results["ft-demo-r1-c001"].status.reason == "AgentUnreachable"
    assert world.results["ft-demo-r1-c002"].status.phase is ResultPhase.COMPLETE


def test_a_client_lost_three_times_ends_the_case_with_its_trials() -> None:
    world = World()
    for _ in range(900):
        if not world.due:
            break
        world.advance()
        for pod in list(world.pods.values()):
            if (
                pod.role == ROLE_CLIENT
                and pod.case == 1
                and "\n" not in world.logs.get(pod.uid, "")
                and pod.attempt > 1
            ):
                world.kill_pod(pod.name)
            elif pod.role == ROLE_CLIENT and pod.case == 1 and pod.attempt == 1 and world.logs.get(pod.uid):
                world.reconcile()
                world.kill_pod(pod.name)
    first = world.results["ft-demo-r1-c001"].status
    assert first.phase is ResultPhase.COMPLETE
    assert [trial.trial for trial in world.results["ft-demo-r1-c001"].recorded.trials] == [1]
    assert first.valid is False
    assert first.missing is not None
    assert (first.missing.trials, first.missing.reason) == (2, "ClientLost")


def test_a_case_that_times_out_is_censored() -> None:
    world = World()
    for _ in range(900):
        if not world.due:
            break
        world.advance()
        for pod in list(world.pods.values()):
            if pod.role == ROLE_CLIENT and pod.case == 1 and world.logs.get(pod.uid):
                world.reconcile()
                world.kill_pod(pod.name)
                world.jobs[pod.name] = replace(world.jobs[pod.name], timed_out=True)
    cut_off, whole = world.results["ft-demo-r1-c001"], world.results["ft-demo-r1-c002"]
    assert cut_off.status.missing is not None
    assert cut_off.status.missing.reason == "TimedOut"
    assert [is_censored(cut_off), is_censored(whole)] == [True, False]


def test_a_server_node_that_is_lost_fails_its_cases_after_the_timeout() -> None:
    world = World()
    while not any(pod.role == ROLE_SERVER and pod.ready for pod in world.pods.values()):
        world.advance()
    world.nodes["c1"] = replace(world.nodes["c1"], ready=False, unready_since=world.now)
    world.run()
    failed = [result for result in world.results.values() if result.status.reason == reasons.NODE_NOT_READY]
    assert {result.spec.server.node_class for result in failed} <= {"cloud"}
    jetson = [result for result in world.results.values() if result.spec.server.node_class == "jetson"]
    assert all(result.status.phase is ResultPhase.COMPLETE for result in jetson)


def test_a_create_that_is_rejected_for_long_fails_only_its_cases() -> None:
    world = World()
    world.reconcile()
    world.reconcile()
    world.rejected_create = FailedRequest(world.now, 'pods "x" is forbidden: violates PodSecurity "baseline"')
    world.now += timedelta(seconds=59)
    world.reconcile()
    assert not world.results
    world.now += timedelta(seconds=2)
    world.reconcile()
    world.rejected_create = None
    world.run()
    failed = [name for name, result in world.results.items() if result.status.phase is ResultPhase.FAILED]
    assert failed == ["ft-demo-r1-c001", "ft-demo-r1-c002"]
    assert world.results[failed[0]].status.reason == reasons.REFUSED
    assert "violates PodSecurity" in world.results[failed[0]].status.message
    assert condition(world, reasons.COMPLETE) == ("True", reasons.SOME_CASES_FAILED)
    assert nothing_left(world)


@pytest.mark.parametrize("make", [benchmark, broker_benchmark], ids=["one part", "two parts"])
def test_a_client_whose_pod_is_rejected_fails_within_two_minutes(make: Callable[[], Benchmark]) -> None:
    """The Job controller creates the pod, so the operator does not see the rejection in a response."""
    world = World(make())
    world.forbidden = 'pods "x" is forbidden: exceeded quota: tenant'
    world.run()
    assert {result.status.reason for result in world.results.values()} == {reasons.REFUSED}
    assert all("exceeded quota" in result.status.message for result in world.results.values())
    assert world.now - START < timedelta(minutes=2)
    assert nothing_left(world)
