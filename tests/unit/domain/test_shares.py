"""Clients that measure at once: one that dies takes nothing of the others' with it."""

import json
from dataclasses import replace

from tests.unit.domain.test_parts import until_clients_print
from tests.unit.domain.world import MEASURED, World, network_benchmark, node, trial_line
from tests.unit.kinds.network.trials import trace
from tierbench.api.benchmark import Phase
from tierbench.api.contract import Outcome
from tierbench.api.result import ResultPhase
from tierbench.domain import reasons
from tierbench.domain.actions import SaveTrace
from tierbench.domain.views import PodView, Termination
from tierbench.workloads.names import ROLE_CLIENT

AT_ONCE = {"nodeClasses": ["cloud", "jetson"], "together": ["AllAtOnce"]}
STARTED = json.dumps({"contract": 1, "record": "TrialStarted", "trial": 2, "time": "2026-01-01T00:00:00Z"}) + "\n"


def world_at_once() -> World:
    return World(network_benchmark(servers={"nodeClasses": ["user"]}, clients=AT_ONCE, directions=["Upload"]))


def clients(world: World) -> list[PodView]:
    pods = [pod for pod in world.pods.values() if pod.role == ROLE_CLIENT and not pod.deleting]
    return sorted(pods, key=lambda pod: pod.part)


def test_runs_to_its_end_as_one_case() -> None:
    world = world_at_once()
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE
    (result,) = world.results.values()
    assert [client.node for client in result.spec.clients] == ["c1", "j1"]
    assert result.status.phase is ResultPhase.MEASURED
    assert result.status.statistics["throughputBitsPerSecond"].mean == 180_000_000
    assert result.status.statistics["client2BitsPerSecond"].mean == 90_000_000
    assert result.status.valid is False  # The world has no agent, and its clients tell no start.


def test_the_others_finish_the_trial_in_which_one_died() -> None:
    world = world_at_once()
    until_clients_print(world)
    survivor, victim = clients(world)
    world.pods[victim.name] = replace(victim, terminated=Termination(137, "Error", ""))
    world.jobs[victim.name] = replace(world.jobs[victim.name], finished=True)
    world.logs[survivor.uid] += 2 * STARTED  # the world has left out that of trial 1
    waiting = world.pass_()
    assert (waiting.requeue_after, len(clients(world))) == (1, 2)
    world.logs[survivor.uid] += trial_line(2, measured=MEASURED["network"])
    world.run()
    (result,) = world.results.values()
    first, second, third = result.status.trials
    assert (first.outcome, second.outcome, third.outcome) == (Outcome.COMPLETED, Outcome.FAILED, Outcome.COMPLETED)
    assert second.failure is not None
    assert second.failure.reason == "ClientLost"
    assert second.network is not None
    assert [share.bits_per_second for share in second.network.shares] == [90_000_000, 0]
    assert (first.attempt, second.attempt, third.attempt) == (1, 1, 2)
    assert reasons.CLIENT_LOST in {event.reason for event in world.events}


def test_a_trial_that_nobody_had_begun_is_run_again() -> None:
    world = world_at_once()
    until_clients_print(world)
    _, victim = clients(world)
    world.pods[victim.name] = replace(victim, terminated=Termination(137, "Error", ""))
    world.jobs[victim.name] = replace(world.jobs[victim.name], finished=True)
    world.run()
    (result,) = world.results.values()
    assert [trial.outcome for trial in result.status.trials] == [Outcome.COMPLETED] * 3


def test_each_client_needs_a_node_of_its_own() -> None:
    clients_per_class = {"nodeClasses": ["cloud"], "together": ["AllAtOnce"], "nodesPerClass": 2}
    world = World(
        network_benchmark(servers={"nodeClasses": ["user"]}, clients=clients_per_class, directions=["Upload"])
    )
    world.run()
    (result,) = world.results.values()
    assert (result.status.phase, result.status.reason) == (ResultPhase.FAILED, reasons.TOO_FEW_NODES)
    world = World(
        network_benchmark(servers={"nodeClasses": ["user"]}, clients=clients_per_class, directions=["Upload"])
    )
    world.nodes["c2"] = node("c2", "cloud")
    world.run()
    (result,) = world.results.values()
    assert [client.node for client in result.spec.clients] == ["c1", "c2"]


def world_both(nodes_per_class: int) -> World:
    """Clients alone and all at once, on a class of three nodes, of which the first hosts the server."""
    clients = {"nodeClasses": ["cloud"], "nodesPerClass": nodes_per_class, "together": ["Alone", "AllAtOnce"]}
    world = World(network_benchmark(servers={"nodeClasses": ["cloud"]}, clients=clients, directions=["Upload"]))
    world.nodes |= {name: node(name, "cloud") for name in ("c2", "c3")}
    return world


def test_each_is_measured_alone_on_the_node_that_it_has_at_once() -> None:
    world = world_both(2)
    world.run()
    found = [(result.spec.client.node, result.spec.levels["together"]) for _, result in sorted(world.results.items())]
    assert found == [("c2", "Alone"), ("c3", "Alone"), ("c2", "AllAtOnce")]
    *_, at_once = world.results.values()
    assert [client.node for client in at_once.spec.clients] == ["c2", "c3"]
    assert {result.status.phase for result in world.results.values()} == {ResultPhase.MEASURED}
    assert world.benchmark.status.answer.endswith(
        "All at once, of what each has alone: c2 100 % (100 to 100), c3 100 % (100 to 100)."
    )


def test_a_client_that_has_no_node_fails_by_itself() -> None:
    world = world_both(3)
    world.run()
    found = [(result.status.phase, result.status.reason) for _, result in sorted(world.results.items())]
    assert found == [
        (ResultPhase.MEASURED, ""),
        (ResultPhase.MEASURED, ""),
        (ResultPhase.FAILED, reasons.TOO_FEW_NODES),
        (ResultPhase.FAILED, reasons.TOO_FEW_NODES),
    ]


def test_a_trace_of_one_client_alone_is_kept() -> None:
    """The others' TCP could not be followed: their lines were thought to be missing, and the trace with them."""
    clients = {"nodeClasses": ["cloud"], "nodesPerClass": 2, "together": ["AllAtOnce"]}
    world = World(network_benchmark(servers={"nodeClasses": ["cloud"]}, clients=clients, directions=["Upload"]))
    world.nodes |= {name: node(name, "cloud") for name in ("c2", "c3")}
    traces = 0
    while world.due:
        decision = world.pass_()
        traces += sum(isinstance(action, SaveTrace) for action in decision.actions)
        if decision.requeue_after > 0:
            world.step()
            first = min((pod for pod in world.pods.values() if pod.role == ROLE_CLIENT), key=str, default=None)
            lines = "" if first is None else world.logs.get(first.uid, "")
            if first is not None and lines:
                traced = [json.loads(line) | {"traces": [trace()]} for line in lines.splitlines()]
                world.logs[first.uid] = "".join(json.dumps(line) + "\n" for line in traced)
    assert traces
