"""One client measures servers on separate nodes in turn, trial by trial."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.unit.domain.objects import MEASURED, benchmark, broker_benchmark, network_benchmark, node, seal, trial_line
from tests.unit.domain.scenarios import (
    DriftingWorld,
    end_client,
    every_trial_once,
    measured_trials,
    nothing_left,
    ratio,
    run_with,
    shared_node,
    until_printed,
)
from tests.unit.domain.world import World
from tierbench.api.benchmark import Benchmark, ClientPlacement, Phase
from tierbench.api.contract import MAXIMUM_TRIALS
from tierbench.api.result import Alternation, ResultPhase
from tierbench.api.run_policy import Order, OrderType
from tierbench.domain import reasons
from tierbench.domain.run import Run
from tierbench.domain.views import PodView, Problem, Termination
from tierbench.results import client_output
from tierbench.workloads.plan import Block, Case, ServerPlacement, plan_blocks, schedule_trials
from tierbench.workloads.workload import ROLE_CLIENT, ROLE_SERVER

TOGETHER = {(("cloud", 0), ("jetson", 0))}
ALONE = {(("cloud", 0),), (("jetson", 0),)}


def server_groups(world: World) -> set[tuple[tuple[str, int], ...]]:
    while not world.benchmark.status.run or not world.benchmark.status.run.assignments:
        world.reconcile()
    run = Run(world.observe(), world.benchmark.status.run, world.now)
    return {tuple((placement.node_class, placement.ordinal) for placement in servers) for servers in run.server_groups}


@pytest.mark.parametrize("given", [benchmark(), network_benchmark(), broker_benchmark()], ids=lambda one: one.KIND.kind)
def test_one_client_per_level_alternates_between_the_servers(given: Benchmark) -> None:
    world = World(given)
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE
    clients: dict[str, list[str]] = {}
    for pod, turn in world.printed:
        clients.setdefault(pod, []).append(turn)
    assert {name.rpartition("-r1-")[2].removesuffix("-p2") for name in clients} == {"c001-a1", "c002-a1"}
    for name, turns in clients.items():
        cases = {"1", "3"} if "c001" in name else {"2", "4"}
        for repetition in (1, 2, 3):
            turns_of_repetition = turns[2 * repetition - 2 : 2 * repetition]
            assert {tuple(turn.split(":")) for turn in turns_of_repetition} == {
                (case, str(repetition)) for case in cases
            }
    assert all(result.status.phase is ResultPhase.COMPLETE for result in world.results.values())
    assert nothing_left(world)


def test_a_missing_class_does_not_affect_other_classes() -> None:
    world = World(benchmark())
    world.classes.pop("cloud")
    world.run()
    ends = {(result.spec.server.node_class, result.status.reason or "") for result in world.results.values()}
    assert ends == {("cloud", reasons.NODE_CLASS_NOT_FOUND), ("jetson", "")}


def test_each_result_names_the_cases_that_it_alternates_with() -> None:
    world = World(benchmark(order={"seed": 42}))
    world.run()
    found = {name[-1]: result.spec.alternation for name, result in world.results.items()}
    odd, even = Alternation(cases=(1, 3), seed=42), Alternation(cases=(2, 4), seed=42)
    assert found == {"1": odd, "2": even, "3": odd, "4": even}


def block_of(number: int) -> Block:
    cases = tuple(
        Case(place, ServerPlacement(f"class{place}", 0), ClientPlacement("user"), {}) for place in range(1, number + 1)
    )
    return Block(tuple(case.server for case in cases), cases, range(1, 31), 1, last=True)


def test_the_order_within_a_repetition_is_random_and_reproducible_by_its_seed() -> None:
    block = block_of(3)
    first = schedule_trials(block, 30, 7, 1)
    assert first == schedule_trials(block, 30, 7, 1)
    assert first not in (schedule_trials(block, 30, 8, 1), schedule_trials(block, 30, 7, 2))
    rounds = [tuple(turn.case for turn in first[start : start + 3]) for start in range(0, 90, 3)]
    assert all(sorted(found) == [1, 2, 3] for found in rounds)
    assert len(set(rounds)) > 1
    assert [turn.trial for turn in first[::3]] == list(range(1, 31))


def test_random_order_shuffles_blocks_and_a_block_fits_into_a_log() -> None:
    server_placements = tuple(ServerPlacement(f"class{place}", 0) for place in range(20))
    levels = [(placement, {"fileSize": str(size)}) for placement in server_placements for size in range(5)]
    cases = [
        Case(number, placement, ClientPlacement("user"), level)
        for number, (placement, level) in enumerate(levels, start=1)
    ]
    blocks = plan_blocks(cases, [server_placements], Order(type=OrderType.RANDOM, seed=1), 10, 1)
    assert sorted(case.number for block in blocks for case in block.cases) == list(range(1, 101))
    assert max(len(block.cases) for block in blocks) == MAXIMUM_TRIALS // 10
    warm = plan_blocks(cases, [server_placements], Order(), 10, 1, warmup=5)
    assert max(len(block.cases) for block in warm) == MAXIMUM_TRIALS // 15
    first = plan_blocks(cases, [server_placements], Order(), 10, 1)
    assert [block.cases[0].number for block in first] == [1, 2, 3, 4, 5]
    assert list(blocks) != list(first)
    assert sorted(block.cases[0].number for block in blocks) == sorted(block.cases[0].number for block in first)


@pytest.mark.parametrize(
    ("spec", "prepare", "expected"),
    [
        ({}, lambda _: None, TOGETHER),
        ({}, shared_node, ALONE),
        ({"clients": {"nodeClassNames": ["jetson"]}, "colocation": "Allowed"}, lambda _: None, ALONE),
        ({"colocation": "Allowed"}, lambda _: None, TOGETHER),
    ],
)
def test_servers_with_nodes_of_their_own_are_up_at_the_same_time(
    spec: dict[str, Any], prepare: Callable[[World], None], expected: set[tuple[tuple[str, int], ...]]
) -> None:
    world = World(benchmark(**spec))
    prepare(world)
    assert server_groups(world) == expected


def test_brokers_take_turns_and_each_runs_on_all_nodes_at_once() -> None:
    brokers = [{"name": "one", "mosquitto": {}}, {"name": "two", "mosquitto": {}}]
    world = World(broker_benchmark(brokers=brokers, payload={"sizes": ["100"]}))
    up: set[tuple[str, ...]] = set()
    run_with(world, lambda _: up.add(tuple(sorted(p.name for p in world.pods.values() if p.role == ROLE_SERVER))))
    assert world.benchmark.status.progress == "4/4"
    assert {("bb-demo-r1-s1", "bb-demo-r1-s3"), ("bb-demo-r1-s2", "bb-demo-r1-s4")} <= up
    assert nothing_left(world)


def test_the_servers_of_a_group_start_at_the_same_time() -> None:
    world = World()
    until_printed(world, 1)
    servers = [pod for pod in world.pods.values() if pod.role == ROLE_SERVER]
    assert [pod.name for pod in servers] == ["ft-demo-r1-s1", "ft-demo-r1-s2"]
    assert len({pod.created for pod in servers}) == 1
    current = world.benchmark.status.current
    assert current is not None
    assert (current.name, current.total_trials) == ("1Mi, cloud, jetson to user", 6)


def test_a_new_client_runs_the_missing_trials_of_all_cases() -> None:
    world = World()
    until_printed(world, 3)
    world.reconcile()
    (client,) = (pod for pod in world.pods.values() if pod.role == ROLE_CLIENT)
    before = [turn for _, turn in world.printed]
    world.kill_pod(client.name)
    world.run()
    second = [turn for name, turn in world.printed if name == "ft-demo-r1-c001-a2"]
    whole = schedule_trials(block_of(2), 3, 0, 1)
    assert len(before) + len(second) == len(whole)
    assert not set(before) & set(second)
    assert measured_trials(world) == every_trial_once(world)
    assert world.results["ft-demo-r1-c001"].status.counts.interruptions == 1


def test_a_failure_of_one_case_ends_only_that_case() -> None:
    world = World()
    failure = {"reason": "AgentUnreachable", "message": "no answer", "case": 3}
    blamed: list[str] = []

    def disturb(pod: PodView) -> None:
        if pod.role == ROLE_CLIENT and pod.case == 1 and pod.attempt == 1 and not pod.terminated and world.printed:
            blamed.append(pod.name)
            end_client(world, pod, 1, failure)

    run_with(world, disturb)
    assert blamed == ["ft-demo-r1-c001-a1"]
    reason = {name[-1]: result.status.reason for name, result in world.results.items()}
    assert {number for number, found in reason.items() if found} <= {"3"}
    assert measured_trials(world) != every_trial_once(world)
    assert [trial.trial for trial in world.results["ft-demo-r1-c001"].recorded.trials] == [1, 2, 3]
    assert nothing_left(world)


def test_failures_of_single_cases_use_up_no_attempt_of_the_others() -> None:
    """A case ends after three failed clients. Clients that another case ended do not count."""
    names = ["cloud", "jetson", "third", "fourth", "fifth"]
    world = World(benchmark(servers={"nodeClassNames": names}, fileSizes=["1Mi"]))
    for name in names[2:]:
        world.nodes[name] = node(name, name)
        world.classes[name] = world.classes["cloud"].model_copy(
            update={"spec": world.classes["cloud"].spec.model_validate({"nodeSelector": {"matchLabels": {"hw": name}}})}
        )

    def disturb(pod: PodView) -> None:
        if pod.role == ROLE_CLIENT and pod.attempt <= 4 and not pod.terminated:
            failure = {"reason": "BrokerUnreachable", "message": "gone", "case": pod.attempt + 1}
            end_client(world, pod, 1, failure, log="")

    run_with(world, disturb)
    failed = [name[-1] for name, result in world.results.items() if result.status.phase is ResultPhase.FAILED]
    assert sorted(failed) == ["2", "3", "4", "5"]
    first = world.results["ft-demo-r1-c001"]
    assert (first.status.phase, len(first.recorded.trials)) == (ResultPhase.COMPLETE, 3)


def test_a_slow_server_exceeds_its_own_deadline_and_the_event_says_so() -> None:
    world = World()

    def disturb(pod: PodView) -> None:
        if pod.role == ROLE_CLIENT and pod.case == 1 and pod.attempt == 1 and not pod.terminated:
            log = trial_line(1, case=1) + trial_line(1, case=3)
            late = trial_line(2, case=3, outcome="Failed", nanoseconds=50 * 10**9).replace(
                "AttemptsExhausted", "TimedOut"
            )
            failure = {"reason": "TimedOut", "message": "the trials took longer than 50 s together", "case": 3}
            end_client(world, pod, 1, failure, log=log + late)

    run_with(world, disturb)
    slow = world.results["ft-demo-r1-c003"].status
    records = (world.results[f"ft-demo-r1-c00{number}"].recorded for number in (3, 1))
    late, quick = records
    assert [(trial.trial, trial.failure and trial.failure.reason) for trial in late.trials] == [
        (1, None),
        (2, "TimedOut"),
    ]
    assert (slow.phase, slow.valid, slow.counts.failed) == (ResultPhase.COMPLETE, False, 1)
    assert [trial.trial for trial in quick.trials] == [1, 2, 3]
    failed = next(event for event in world.events if event.reason == reasons.CASE_FAILED)
    assert "jetson to user: TimedOut" in failed.message
    assert "spec.timeouts.trialSeconds" in failed.message


def test_a_server_that_dies_within_a_block_fails_only_its_cases() -> None:
    world = World()
    until_printed(world, 2)
    problem = Problem("OutOfMemory", "container nginx ran out of memory")

    def disturb(pod: PodView) -> None:
        if pod.name == "ft-demo-r1-s2" and not pod.deleting:
            world.pods[pod.name] = replace(pod, problem=problem)

    run_with(world, disturb)
    failed = {name[-1]: result.status.reason for name, result in world.results.items() if result.status.reason}
    assert failed == {"3": "OutOfMemory", "4": "OutOfMemory"}
    quick = [pair for pair in measured_trials(world) if pair[0][-1] in "12"]
    assert quick == [pair for pair in every_trial_once(world) if pair[0][-1] in "12"]
    assert nothing_left(world)


def test_the_next_client_ignores_a_pod_that_outlives_its_job() -> None:
    """No trial is recorded. The old pod ends before the Job controller creates the pod of the new Job."""
    world = World()
    while not any(pod.role == ROLE_CLIENT for pod in world.pods.values()):
        world.advance()
    server = world.pods["ft-demo-r1-s2"]
    world.pods[server.name] = replace(server, problem=Problem("OutOfMemory", "container nginx ran out of memory"))
    world.reconcile()
    assert not world.jobs
    while not world.jobs:
        world.reconcile()
    (job,) = world.jobs.values()
    (old,) = (pod for pod in world.pods.values() if pod.role == ROLE_CLIENT)
    failure = {"reason": "Interrupted", "message": "it was terminated"}
    world.pods[old.name] = replace(old, terminated=Termination(1, "Error", seal("", failure)))
    while not world.reconcile().requeue_after:
        pass
    assert set(world.jobs) == {job.name}, "two clients measure at the same time"
    world.run()
    assert nothing_left(world)


def test_lines_of_cases_that_the_client_does_not_measure_are_ignored() -> None:
    world = World()
    forged = trial_line(1, case=2, nanoseconds=1) + trial_line(1, case=99)
    clients = set[str]()

    def disturb(pod: PodView) -> None:
        if pod.role == ROLE_CLIENT and pod.case == 1 and pod.uid not in clients:
            clients.add(pod.uid)
            world.logs[pod.uid] = forged + world.logs.get(pod.uid, "")

    run_with(world, disturb)
    assert all(trial.duration_nanoseconds > 1 for trial in world.results["ft-demo-r1-c002"].recorded.trials)


def test_drift_of_all_trials_shows_no_difference_between_classes() -> None:
    """Both classes are equal."""
    assert ratio(DriftingWorld(benchmark(repetitions=10))) == pytest.approx(1, abs=0.003)


@dataclass
class TalkativeWorld(World):
    """A world whose clients print 8 KiB with each trial."""

    def measured_by(self, command: str, case: int) -> dict[str, Any] | None:
        """Adds a trace that fills the log."""
        return {**MEASURED["network"], "traces": [{"side": "Client", "data": "x" * 2**13}]}


def test_a_log_that_is_too_large_loses_no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each client continues with the trials that earlier clients did not get into their logs."""
    monkeypatch.setattr(client_output, "MAXIMUM_OUTPUT_BYTES", 2**16)
    world = TalkativeWorld(network_benchmark(repetitions=30, directions=["Upload"]))
    world.run()
    assert {result.status.phase for result in world.results.values()} == {ResultPhase.COMPLETE}
    assert [len(result.recorded.trials) for result in world.results.values()] == [30, 30]
    assert len({turn for _, turn in world.printed}) == 60
    unread = [event.message for event in world.events if event.reason == reasons.CLIENT_UNREADABLE]
    assert "The rest was not read. A new client continues with trial" in unread[0]
    assert nothing_left(world)


def test_a_client_that_only_fills_its_log_is_not_replaced_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_output, "MAXIMUM_OUTPUT_BYTES", 2**10)
    world = TalkativeWorld(network_benchmark(repetitions=30, directions=["Upload"]))
    world.run()
    assert {result.status.reason for result in world.results.values()} == {reasons.CLIENT_UNREADABLE}
    assert nothing_left(world)


def test_numbers_that_cannot_be_recorded_fail_their_case() -> None:
    """Zero bytes at a rate above 0 raise a ZeroDivisionError in each reconcile."""
    clients = {"nodeClassNames": ["user", "jetson"], "modes": ["Simultaneous"]}
    world = World(network_benchmark(clients=clients, servers={"nodeClassNames": ["cloud"]}, directions=["Upload"]))
    odd = {"network": {"upload": {"bitsPerSecond": 1, "receivedBytes": 0}, "startNanoseconds": 0}}
    forged: list[str] = []

    def disturb(pod: PodView) -> None:
        if pod.role == ROLE_CLIENT and pod.case == 1 and not pod.terminated and pod.uid not in forged:
            forged.append(pod.uid)
            world.logs[pod.uid] = trial_line(1, case=1, measured=odd)

    run_with(world, disturb)
    (status,) = (result.status for result in world.results.values())
    assert (status.phase, status.reason) == (ResultPhase.FAILED, reasons.CLIENT_UNREADABLE)
    assert "ZeroDivisionError" in status.message
    assert nothing_left(world)


def test_the_status_counts_the_trials_that_have_ended() -> None:
    world = World()
    for trials in (1, 3):
        until_printed(world, trials)
        world.reconcile()
        current = world.benchmark.status.current
        assert current is not None
        assert (current.finished_trials, current.total_trials) == (trials, 6)
