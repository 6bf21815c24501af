"""Clients of several parts: the parts start together, and a trial merges what all parts measure."""

import json
from dataclasses import replace

import pytest

from tests.plans import plan_of
from tests.unit.domain.objects import MEASURED, broker_benchmark, network_benchmark, node, trial_line
from tests.unit.domain.scenarios import until_printed
from tests.unit.domain.world import World
from tests.unit.kinds.network.trials import trace
from tierbench.api.benchmark import Phase
from tierbench.api.contract import Outcome
from tierbench.api.result import ResultPhase
from tierbench.domain import reasons
from tierbench.domain.views import PodView, Termination
from tierbench.workloads.workload import ROLE_CLIENT

AT_ONCE = {"nodeClassNames": ["cloud", "jetson"], "modes": ["Simultaneous"]}
STARTED = json.dumps({"contract": 1, "record": "TrialStarted", "trial": 2, "time": "2026-01-01T00:00:00Z"}) + "\n"


def client_names(world: World) -> list[str]:
    return sorted(pod.name for pod in world.pods.values() if pod.role == ROLE_CLIENT and not pod.deleting)


def test_a_run_completes_and_sums_the_parts() -> None:
    world = World(broker_benchmark())
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE
    assert world.benchmark.status.progress == "4/4"
    for result in world.results.values():
        assert result.status.phase is ResultPhase.COMPLETE
        messages = result.status.counts.messages
        assert messages is not None
        assert (messages.sent, messages.received, messages.lost) == (1200, 1188, 12)
        assert sum(result.status.histograms["roundTripNanoseconds"].counts) == 1188
        assert [trial.trial for trial in result.recorded.trials] == [1, 2, 3]
        assert result.spec.service is not None
        assert result.spec.service.settings["set_tcp_nodelay"] == "true"
    assert not (world.pods or world.jobs or world.leases)


def test_a_partially_created_client_is_completed() -> None:
    """A kill between two of its Jobs uses up none of its three attempts."""
    world = World(broker_benchmark(servers={"nodeClassNames": ["cloud"]}, payload={"sizes": ["100"]}))
    while len(world.jobs) < 2:
        world.advance()
    for _ in range(5):
        del world.jobs[max(world.jobs)]
        world.pods = {name: pod for name, pod in world.pods.items() if name in world.jobs or pod.role != ROLE_CLIENT}
        world.reconcile()
        assert len(world.jobs) == 2
    world.run()
    (result,) = world.results.values()
    assert [(trial.trial, trial.attempt) for trial in result.recorded.trials] == [(1, 1), (2, 1), (3, 1)]


@pytest.mark.parametrize("writes", range(1, 7))
def test_a_run_completes_if_the_operator_is_killed_while_it_starts_a_client(writes: int) -> None:
    world = World(broker_benchmark(servers={"nodeClassNames": ["cloud"]}, payload={"sizes": ["100"]}))
    for number in range(400):
        if not world.due:
            break
        if world.reconcile((lambda _: writes) if number % 3 == 0 else None).requeue_after > 0:
            world.step()
    (result,) = world.results.values()
    assert result.status.phase is ResultPhase.COMPLETE
    assert [trial.trial for trial in result.recorded.trials] == [1, 2, 3]


def test_a_lost_part_replaces_the_whole_client() -> None:
    world = World(broker_benchmark(servers={"nodeClassNames": ["cloud"]}, payload={"sizes": ["100"]}))
    until_printed(world, 1)
    first = client_names(world)
    assert len(first) == 2
    victim = world.pods[first[1]]
    world.pods[victim.name] = replace(victim, terminated=Termination(137, "Error", ""))
    world.jobs[victim.name] = replace(world.jobs[victim.name], finished=True)
    world.run()
    (result,) = world.results.values()
    assert result.status.phase is ResultPhase.COMPLETE
    assert result.status.counts.interruptions == 1
    assert result.status.counts.messages is not None
    assert result.status.counts.messages.sent == 1200
    assert reasons.CLIENT_LOST in {event.reason for event in world.events}


def test_parts_are_spread_over_the_nodes_of_their_class() -> None:
    world = World(broker_benchmark(servers={"nodeClassNames": ["cloud"]}))
    world.nodes["u2"] = node("u2", "user")
    until_printed(world, 1)
    pinned = {
        term["matchFields"][0]["values"][0]
        for name in client_names(world)
        for term in world.manifests[name]["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]["nodeSelectorTerms"]
    }
    assert pinned == {"u1", "u2"}


def test_echo_parts_count_no_messages() -> None:
    apart = {"nodeClassNames": ["user"], "pods": 1, "subscribers": {"type": "Separate", "nodeClassName": "jetson"}}
    world = World(broker_benchmark(servers={"nodeClassNames": ["cloud"]}, clients=apart))
    world.run()
    for result in world.results.values():
        assert result.status.counts.messages is not None
        assert result.status.counts.messages.sent == 600


def test_external_broker_needs_no_server_class() -> None:
    external = [{"name": "site", "external": {"address": "broker.example.com:1883"}}]
    world = World(broker_benchmark(brokers=external, servers=None))
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE
    assert {result.spec.server.node_class for result in world.results.values()} == {"external"}
    urls = {target["url"] for job in world.manifests.values() for target in plan_of(job)["targets"]}
    assert urls == {"mqtt://broker.example.com:1883"}


def test_an_external_iperf3_is_measured_together_with_servers_of_the_cluster() -> None:
    servers = {"nodeClassNames": ["cloud"], "external": {"address": "iperf.example.com:5201"}}
    world = World(network_benchmark(servers=servers, directions=["Upload"]))
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE
    kept = {result.spec.server.node_class: result for result in world.results.values()}
    assert set(kept) == {"cloud", "external"}
    assert (kept["external"].spec.server.node, kept["external"].spec.alternation) == ("", None)
    alone = World(network_benchmark(servers={"external": servers["external"]}))
    alone.run()
    assert alone.benchmark.status.phase is Phase.COMPLETE


def simultaneous_world() -> World:
    return World(network_benchmark(servers={"nodeClassNames": ["user"]}, clients=AT_ONCE, directions=["Upload"]))


def clients(world: World) -> list[PodView]:
    pods = [pod for pod in world.pods.values() if pod.role == ROLE_CLIENT and not pod.deleting]
    return sorted(pods, key=lambda pod: pod.part)


def test_simultaneous_clients_are_one_case() -> None:
    world = simultaneous_world()
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE
    (result,) = world.results.values()
    assert [client.node for client in result.spec.clients] == ["c1", "j1"]
    assert result.status.phase is ResultPhase.COMPLETE
    assert result.status.statistics["throughputBitsPerSecond"].mean == 180_000_000
    assert result.status.statistics["client2BitsPerSecond"].mean == 90_000_000
    assert result.status.valid is False  # The world has no agent, and its clients report no start.


def test_clients_finish_the_trial_in_which_another_client_is_lost() -> None:
    world = simultaneous_world()
    until_printed(world, 1)
    survivor, victim = clients(world)
    world.pods[victim.name] = replace(victim, terminated=Termination(137, "Error", ""))
    world.jobs[victim.name] = replace(world.jobs[victim.name], finished=True)
    world.logs[survivor.uid] += 2 * STARTED  # the world does not print that of trial 1
    waiting = world.reconcile()
    assert (waiting.requeue_after, len(clients(world))) == (1, 2)
    world.logs[survivor.uid] += trial_line(2, measured=MEASURED["network"])
    world.run()
    (result,) = world.results.values()
    first, second, third = result.recorded.trials
    assert (first.outcome, second.outcome, third.outcome) == (Outcome.COMPLETED, Outcome.FAILED, Outcome.COMPLETED)
    assert second.failure is not None
    assert second.failure.reason == "ClientLost"
    assert second.network is not None
    assert [share.bits_per_second for share in second.network.shares] == [90_000_000, 0]
    assert (first.attempt, second.attempt, third.attempt) == (1, 1, 2)
    assert reasons.CLIENT_LOST in {event.reason for event in world.events}


def test_a_lost_client_fails_no_trial_that_has_not_started() -> None:
    world = simultaneous_world()
    until_printed(world, 1)
    _, victim = clients(world)
    world.pods[victim.name] = replace(victim, terminated=Termination(137, "Error", ""))
    world.jobs[victim.name] = replace(world.jobs[victim.name], finished=True)
    world.run()
    (result,) = world.results.values()
    assert [trial.outcome for trial in result.recorded.trials] == [Outcome.COMPLETED] * 3


def test_each_client_needs_a_node_of_its_own() -> None:
    clients_per_class = {"nodeClassNames": ["cloud"], "modes": ["Simultaneous"], "nodesPerClass": 2}
    world = World(
        network_benchmark(servers={"nodeClassNames": ["user"]}, clients=clients_per_class, directions=["Upload"])
    )
    world.run()
    (result,) = world.results.values()
    assert (result.status.phase, result.status.reason) == (ResultPhase.FAILED, reasons.TOO_FEW_NODES)
    world = World(
        network_benchmark(servers={"nodeClassNames": ["user"]}, clients=clients_per_class, directions=["Upload"])
    )
    world.nodes["c2"] = node("c2", "cloud")
    world.run()
    (result,) = world.results.values()
    assert [client.node for client in result.spec.clients] == ["c1", "c2"]


def world_with_both_modes(nodes_per_class: int) -> World:
    """Returns a world with clients alone and all at once on a class of three nodes. The first one hosts the server."""
    clients = {"nodeClassNames": ["cloud"], "nodesPerClass": nodes_per_class, "modes": ["Alone", "Simultaneous"]}
    world = World(network_benchmark(servers={"nodeClassNames": ["cloud"]}, clients=clients, directions=["Upload"]))
    world.nodes |= {name: node(name, "cloud") for name in ("c2", "c3")}
    return world


def test_each_client_runs_alone_on_the_node_that_it_has_in_the_simultaneous_case() -> None:
    world = world_with_both_modes(2)
    world.run()
    found = [(result.spec.client.node, result.spec.levels["clientMode"]) for _, result in sorted(world.results.items())]
    assert found == [("c2", "Alone"), ("c3", "Alone"), ("c2", "Simultaneous")]
    *_, at_once = world.results.values()
    assert [client.node for client in at_once.spec.clients] == ["c2", "c3"]
    assert {result.status.phase for result in world.results.values()} == {ResultPhase.COMPLETE}
    assert world.benchmark.status.answer.endswith(
        "All at once, compared with alone: c2 100% (100–100%), c3 100% (100–100%)."
    )


def test_only_the_client_without_a_node_fails() -> None:
    world = world_with_both_modes(3)
    world.run()
    found = [(result.status.phase, result.status.reason) for _, result in sorted(world.results.items())]
    assert found == [
        (ResultPhase.COMPLETE, ""),
        (ResultPhase.COMPLETE, ""),
        (ResultPhase.FAILED, reasons.TOO_FEW_NODES),
        (ResultPhase.FAILED, reasons.TOO_FEW_NODES),
    ]


def test_a_trace_of_a_single_client_is_kept() -> None:
    """The TCP of the other client cannot be followed, so its lines have no trace."""
    clients = {"nodeClassNames": ["cloud"], "nodesPerClass": 2, "modes": ["Simultaneous"]}
    world = World(network_benchmark(servers={"nodeClassNames": ["cloud"]}, clients=clients, directions=["Upload"]))
    world.nodes |= {name: node(name, "cloud") for name in ("c2", "c3")}
    while world.due:
        decision = world.reconcile()
        if decision.requeue_after > 0:
            world.step()
            first = min((pod for pod in world.pods.values() if pod.role == ROLE_CLIENT), key=str, default=None)
            lines = "" if first is None else world.logs.get(first.uid, "")
            if first is not None and lines:
                traced = [json.loads(line) | {"traces": [trace()]} for line in lines.splitlines()]
                world.logs[first.uid] = "".join(json.dumps(line) + "\n" for line in traced)
    assert any(record.status.traces for record in world.records.values())


def test_trials_that_were_printed_before_a_server_failed_are_recorded() -> None:
    """No operator ran meanwhile. The trials of the other servers are measured again."""
    world = World(network_benchmark())
    until_printed(world, 1)
    world.step()
    world.step()
    (server,) = (pod for pod in world.pods.values() if pod.slot == 1)
    world.pods[server.name] = replace(server, terminated=Termination(1, "Error", ""))
    printed = [tuple(map(int, turn.split(":"))) for _, turn in world.printed]
    world.run()
    failed = {one.spec.case: one for one in world.results.values() if one.status.reason == reasons.POD_FAILED}
    assert failed
    recorded = [(case, trial.trial) for case, one in failed.items() for trial in one.recorded.trials]
    assert recorded
    assert set(recorded) == {(case, trial) for case, trial in printed if case in failed}
