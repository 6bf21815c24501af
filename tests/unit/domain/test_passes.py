"""Servers that cannot be up at once take turns in whole passes, forwards and backwards."""

from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.domain.objects import benchmark, broker_benchmark
from tests.unit.domain.scenarios import (
    CliffWorld,
    DriftingWorld,
    end_client,
    every_trial_once,
    measured_trials,
    nothing_left,
    payload_world,
    ratio,
    run_with,
    shared_node,
    until_printed,
)
from tests.unit.domain.world import World
from tierbench.api.benchmark import ClientPlacement, Phase
from tierbench.api.result import ResultPhase
from tierbench.api.run_policy import Order, OrderType, trials_of_passes
from tierbench.domain import reasons
from tierbench.domain.views import PodView, Problem
from tierbench.workloads.plan import Case, ServerPlacement, plan_blocks
from tierbench.workloads.workload import ROLE_CLIENT, ROLE_SERVER

TWO_BROKERS: dict[str, Any] = {
    "brokers": [{"name": "one", "mosquitto": {}}, {"name": "two", "mosquitto": {}}],
    "clients": {"nodeClassNames": ["user"]},
    "payload": {"sizes": ["100"]},
}


@dataclass
class LingeringWorld(World):
    """Pods of deleted clients stay for long."""

    def step(self) -> None:
        """Keeps the pods of deleted clients."""
        pods = {name: pod for name, pod in self.pods.items() if pod.deleting and pod.role == ROLE_CLIENT}
        super().step()
        self.pods = {**pods, **self.pods}


def shared(passes: int = 2, **spec: Any) -> World:
    """Returns a world with both classes on one node: one server has cases 1 and 2, the other 3 and 4."""
    world = World(benchmark(order={"passes": passes}, **spec))
    shared_node(world)
    return world


def servers_in_turn(world: World) -> list[str]:
    """Runs to the end. Returns the names of the servers that were up, in order."""
    seen: dict[str, None] = {}

    def see(pod: PodView) -> None:
        if pod.role == ROLE_SERVER:
            seen[pod.name.rpartition("-r1-")[2]] = None

    run_with(world, see)
    return list(seen)


def cases_in_turn(world: World) -> list[tuple[int, tuple[int, ...]]]:
    """Returns cases, each with those of its trials that came in a row."""
    turns = (tuple(map(int, turn.split(":"))) for _, turn in world.printed)
    return [(case, tuple(trial for _, trial in found)) for case, found in groupby(turns, lambda turn: turn[0])]


def test_the_second_pass_runs_backwards_and_has_its_own_servers() -> None:
    world = shared(repetitions=5)
    assert servers_in_turn(world) == ["s1", "s2", "s2-1", "s1-1"]
    first, second = (1, 2, 3), (4, 5)
    forwards = [(case, first) for case in (1, 2, 3, 4)]
    assert cases_in_turn(world) == [*forwards, (3, second), (4, second), (1, second), (2, second)]
    assert world.benchmark.status.phase is Phase.COMPLETE
    assert {result.spec.passes for result in world.results.values()} == {2}
    assert nothing_left(world)


def test_brokers_on_the_same_nodes_take_turns_and_nodes_alternate_in_each_turn() -> None:
    world = World(broker_benchmark(**TWO_BROKERS, repetitions=4))
    assert servers_in_turn(world) == ["s1", "s3", "s2", "s4", "s2-1", "s4-1", "s1-1", "s3-1"]
    alternations = [result.spec.alternation for _, result in sorted(world.results.items())]
    assert [found and found.cases for found in alternations] == [(1, 3), (2, 4), (1, 3), (2, 4)]


def test_servers_of_a_refinement_have_their_own_names_in_each_pass() -> None:
    world = CliffWorld(benchmark(fileSizes=["1Mi", "64Mi"], runPolicy={"refine": {"withinPercent": 400}}))
    shared_node(world)
    found = servers_in_turn(world)
    assert found[:8] == ["s1", "s2", "s2-1", "s1-1", "s1-2", "s2-2", "s2-3", "s1-3"]


def test_a_round_of_refinement_starts_with_the_broker_that_is_up() -> None:
    world = payload_world(runPolicy={"refine": {"withinPercent": 400}})
    shared_node(world)
    assert servers_in_turn(world)[:5] == ["s1", "s2", "s2-1", "s1-1", "s2-2"]


@pytest.mark.parametrize(
    ("passes", "repetitions", "expected"), [(1, 3, ["s1", "s2"]), (3, 1, ["s1", "s2"]), (10, 2, 4), (3, 30, 6)]
)
def test_the_passes_are_limited_by_the_spec_and_by_the_repetitions(
    passes: int, repetitions: int, expected: list[str] | int
) -> None:
    found = servers_in_turn(shared(passes, repetitions=repetitions))
    assert (len(found) if isinstance(expected, int) else found) == expected


def test_servers_that_are_up_at_the_same_time_have_one_pass() -> None:
    world = World()
    assert servers_in_turn(world) == ["s1", "s2"]
    assert {result.spec.passes for result in world.results.values()} == {1}


@pytest.mark.parametrize(("passes", "expected"), [(1, 1.049), (2, 1.0), (4, 1.0), (10, 1.0)])
def test_several_passes_remove_the_drift_between_servers_that_share_a_node(passes: int, expected: float) -> None:
    """Both servers are equal. In one pass they seem to differ by half of the drift."""
    world = DriftingWorld(benchmark(repetitions=20, order={"passes": passes}))
    shared_node(world)
    assert ratio(world) == pytest.approx(expected, abs=0.003)


def test_a_result_grows_over_the_passes_and_ends_once() -> None:
    world = shared(repetitions=4)
    until_printed(world, 9)
    statuses = {name[-1]: result.status for name, result in sorted(world.results.items())}
    assert {number: status.phase for number, status in statuses.items()} == dict.fromkeys("1234", ResultPhase.RUNNING)
    assert [len(world.records[f"ft-demo-r1-c00{number}"].status.trials) for number in statuses] == [2, 2, 2, 2]
    status = world.benchmark.status
    assert status.current is not None
    assert (status.progress, status.current.name) == ("0/4", "1Mi, jetson to user, pass 2 of 2")
    assert status.remaining_seconds is not None
    assert 8 <= status.remaining_seconds <= 8 + 4 * 3
    assert not [event for event in world.events if event.reason == reasons.CASE_MEASURED]
    world.run()
    assert len([event for event in world.events if event.reason == reasons.CASE_MEASURED]) == 4


def test_a_lost_client_is_an_interruption_and_a_new_pass_is_not() -> None:
    world = shared(repetitions=4)
    until_printed(world, 13)
    world.reconcile()
    (client,) = (pod for pod in world.pods.values() if pod.role == ROLE_CLIENT)
    assert client.name == "ft-demo-r1-c001-b1"
    world.kill_pod(client.name)
    world.run()
    interruptions = {name[-1]: result.status.counts.interruptions for name, result in world.results.items()}
    assert interruptions == {"1": 1, "2": 0, "3": 0, "4": 0}
    resumed = [
        name[-1] for name, item in world.results.items() if any(n.reason == "Resumed" for n in item.status.facts)
    ]
    assert resumed == ["1"]


def test_a_terminating_client_of_the_first_pass_is_ignored_in_the_second() -> None:
    world = LingeringWorld(benchmark(fileSizes=["1Mi"]))
    shared_node(world)
    until_printed(world, 6)
    assert sum(pod.role == ROLE_CLIENT for pod in world.pods.values()) == 4
    assert [(name[-2:], turn) for name, turn in world.printed[4:]] == [("b1", "2:3"), ("b1", "1:3")]


def test_each_pass_has_three_attempts() -> None:
    """Two clients are lost in each pass, and every case completes."""
    world = shared(repetitions=6)

    def lose(pod: PodView) -> None:
        if pod.role == ROLE_CLIENT and pod.case == 1 and pod.attempt < 3 and world.logs.get(pod.uid):
            world.reconcile()
            world.kill_pod(pod.name)

    run_with(world, lose)
    assert {result.status.phase for result in world.results.values()} == {ResultPhase.COMPLETE}
    assert world.results["ft-demo-r1-c001"].status.counts.interruptions == 4


def test_a_case_that_fails_in_a_pass_is_not_in_the_next_one() -> None:
    world = shared(repetitions=4)

    def blame(pod: PodView) -> None:
        first = pod.role == ROLE_CLIENT and (pod.case, pod.pass_number) == (1, 1) and not pod.terminated
        if first and len(world.logs.get(pod.uid, "").splitlines()) == 1:
            end_client(world, pod, 1, {"reason": "AgentUnreachable", "message": "no answer"})

    run_with(world, blame)
    first = world.results["ft-demo-r1-c001"].status
    assert first.phase is ResultPhase.COMPLETE
    assert [trial.trial for trial in world.records["ft-demo-r1-c001"].status.trials] == [1]
    assert first.missing is not None
    assert (first.missing.trials, first.missing.reason) == (3, "AgentUnreachable")
    assert [len(result.recorded.trials) for _, result in sorted(world.results.items())] == [1, 4, 4, 4]
    assert nothing_left(world)


def test_a_server_that_does_not_start_again_fails_only_its_cases() -> None:
    world = shared(repetitions=4)

    def refuse(pod: PodView) -> None:
        if pod.name == "ft-demo-r1-s1-1" and not pod.deleting:
            world.pods[pod.name] = replace(pod, ready=False, problem=Problem("InsufficientStorage", "1Gi is free"))

    run_with(world, refuse)
    found = {name[-1]: (item.status.reason, len(item.recorded.trials)) for name, item in world.results.items()}
    lost, whole = ("InsufficientStorage", 2), ("", 4)
    assert found == {"1": lost, "2": lost, "3": whole, "4": whole}
    assert nothing_left(world)


def test_the_next_server_starts_once_the_client_has_ended() -> None:
    world = shared(repetitions=4)

    def look(pod: PodView) -> None:
        if pod.role == ROLE_SERVER and not pod.deleting:
            cases = {job.case for job in world.jobs.values() if not job.deleting}
            assert cases <= {2 * pod.slot + 1, 2 * pod.slot + 2}

    run_with(world, look)
    assert world.benchmark.status.phase is Phase.COMPLETE


def test_a_run_suspended_between_two_passes_continues_with_the_second() -> None:
    world = shared()
    until_printed(world, 8)
    world.reconcile()
    world.change_spec(suspend=True)
    world.run()
    assert nothing_left(world)
    assert len(measured_trials(world)) == 8
    world.change_spec(suspend=False)
    world.run()
    assert measured_trials(world) == every_trial_once(world)
    assert len(world.printed) == 12


@st.composite
def plans(draw: st.DrawFn) -> Any:
    """Draws cases, server groups, an order, repetitions and passes."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    server_groups = [
        tuple(ServerPlacement(f"class{place}", ordinal) for ordinal in range(size)) for place, size in enumerate(sizes)
    ]
    levels = draw(st.integers(1, 4))
    combinations = [(placement, level) for servers in server_groups for placement in servers for level in range(levels)]
    cases = [
        Case(number, placement, ClientPlacement("user"), {"level": str(level)})
        for number, (placement, level) in enumerate(combinations, 1)
    ]
    repetitions = draw(st.integers(1, 30))
    order = Order(type=draw(st.sampled_from(OrderType)), seed=draw(st.integers(0, 9)))
    return cases, server_groups, order, repetitions, draw(st.integers(1, min(repetitions, 10)))


@given(plans())
def test_every_trial_is_in_one_block_and_the_groups_alternate_in_direction(plan: Any) -> None:
    cases, server_groups, _, repetitions, passes = plan
    blocks = plan_blocks(*plan)
    found = sorted((case.number, trial) for block in blocks for case in block.cases for trial in block.trials)
    assert found == [(case.number, trial) for case in cases for trial in range(1, repetitions + 1)]
    by_pass = [[block for block in blocks if block.pass_number == number] for number in range(1, passes + 1)]
    assert [block for found in by_pass for block in found] == list(blocks)
    assert {block.last for block in by_pass[-1]} == {True}
    assert not any(block.last for found in by_pass[:-1] for block in found)
    orders = [[servers for servers, _ in groupby(block.servers for block in found)] for found in by_pass]
    assert all(len(order) == len(server_groups) for order in orders)
    assert all(after == before[::-1] for before, after in pairwise(orders))
    within = [[block.cases for block in found if block.servers == server_groups[0]] for found in by_pass]
    assert all(cases == within[0] for cases in within)


@given(st.integers(1, 30), st.integers(1, 10))
def test_shares_are_as_even_as_possible(trials: int, passes: int) -> None:
    found = trials_of_passes(trials, passes)
    assert [trial for share in found for trial in share] == list(range(1, trials + 1))
    lengths = [len(share) for share in found]
    assert (len(lengths), max(lengths)) == (passes, lengths[0])
    assert max(lengths) - min(lengths) <= 1
