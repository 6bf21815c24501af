"""A client of several pods: started together, merged into one trial, replaced as a whole."""

from dataclasses import replace

import pytest

from tests.unit.domain.world import World, broker_benchmark, network_benchmark, node
from tierbench.api.benchmark import Phase
from tierbench.api.result import ResultPhase
from tierbench.domain import reasons
from tierbench.domain.views import Termination
from tierbench.workloads.names import ROLE_CLIENT
from tierbench.workloads.workload import Manifest


def clients(world: World) -> list[str]:
    return sorted(pod.name for pod in world.pods.values() if pod.role == ROLE_CLIENT and not pod.deleting)


def until_clients_print(world: World) -> None:
    for _ in range(50):
        if world.printed:
            return
        if world.pass_().requeue_after > 0:
            world.step()
    raise AssertionError("no client has printed")


def test_runs_to_its_end_and_sums_parts() -> None:
    world = World(broker_benchmark())
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE
    assert world.benchmark.status.progress == "4/4"
    for result in world.results.values():
        assert result.status.phase is ResultPhase.MEASURED
        messages = result.status.counts.messages
        assert messages is not None
        assert (messages.sent, messages.received, messages.lost) == (1200, 1188, 12)
        assert result.status.distributions.round_trip is not None
        assert result.status.distributions.round_trip.count == 1188
        assert [trial.trial for trial in result.status.trials] == [1, 2, 3]
        assert result.spec.service is not None
        assert result.spec.service.settings["set_tcp_nodelay"] == "true"
    assert not (world.pods or world.jobs or world.leases)


def test_a_client_that_was_half_made_is_made_whole() -> None:
    """Each kill between two of its Jobs was one of its three tries."""
    world = World(broker_benchmark(servers={"nodeClasses": ["cloud"]}, payload={"sizes": ["100"]}))
    while len(world.jobs) < 2:
        if world.pass_().requeue_after > 0:
            world.step()
    for _ in range(5):
        del world.jobs[max(world.jobs)]
        world.pods = {name: pod for name, pod in world.pods.items() if name in world.jobs or pod.role != ROLE_CLIENT}
        world.pass_()
        assert len(world.jobs) == 2
    world.run()
    (result,) = world.results.values()
    assert [(trial.trial, trial.attempt) for trial in result.status.trials] == [(1, 1), (2, 1), (3, 1)]


@pytest.mark.parametrize("writes", range(1, 7))
def test_operator_killed_while_it_starts_a_client(writes: int) -> None:
    world = World(broker_benchmark(servers={"nodeClasses": ["cloud"]}, payload={"sizes": ["100"]}))
    for number in range(400):
        if not world.due:
            break
        if world.pass_((lambda _: writes) if number % 3 == 0 else None).requeue_after > 0:
            world.step()
    (result,) = world.results.values()
    assert result.status.phase is ResultPhase.MEASURED
    assert [trial.trial for trial in result.status.trials] == [1, 2, 3]


def test_a_part_that_is_lost_replaces_the_whole_client() -> None:
    world = World(broker_benchmark(servers={"nodeClasses": ["cloud"]}, payload={"sizes": ["100"]}))
    until_clients_print(world)
    first = clients(world)
    assert len(first) == 2
    victim = world.pods[first[1]]
    world.pods[victim.name] = replace(victim, terminated=Termination(137, "Error", ""))
    world.jobs[victim.name] = replace(world.jobs[victim.name], finished=True)
    world.run()
    (result,) = world.results.values()
    assert result.status.phase is ResultPhase.MEASURED
    assert result.status.counts.interruptions == 1
    assert result.status.counts.messages is not None
    assert result.status.counts.messages.sent == 1200
    assert reasons.CLIENT_LOST in {event.reason for event in world.events}


def test_parts_are_spread_over_the_nodes_of_their_class() -> None:
    world = World(broker_benchmark(servers={"nodeClasses": ["cloud"]}))
    world.nodes["u2"] = node("u2", "user")
    until_clients_print(world)
    pinned = {
        term["matchFields"][0]["values"][0]
        for name in clients(world)
        for term in world.manifests[name]["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]["nodeSelectorTerms"]
    }
    assert pinned == {"u1", "u2"}


def test_echoes_cost_but_count_no_messages() -> None:
    apart = {"nodeClasses": ["user"], "pods": 1, "subscribers": {"nodeClass": "jetson"}}
    world = World(broker_benchmark(servers={"nodeClasses": ["cloud"]}, clients=apart))
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
    urls = {word for manifest in world.manifests.values() for word in container_arguments(manifest) if "--url" in word}
    assert urls == {"--url=mqtt://broker.example.com:1883"}


def test_an_external_server_of_a_network_is_measured_beside_the_clusters() -> None:
    servers = {"nodeClasses": ["cloud"], "external": {"address": "iperf.example.com:5201"}}
    world = World(network_benchmark(servers=servers, directions=["Upload"]))
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE
    kept = {result.spec.server.node_class: result for result in world.results.values()}
    assert set(kept) == {"cloud", "external"}
    assert (kept["external"].spec.server.node, kept["external"].spec.alternation) == ("", None)
    alone = World(network_benchmark(servers={"external": servers["external"]}))
    alone.run()
    assert alone.benchmark.status.phase is Phase.COMPLETE


def container_arguments(manifest: Manifest) -> list[str]:
    arguments: list[str] = manifest["spec"]["template"]["spec"]["containers"][0]["args"]
    return arguments
