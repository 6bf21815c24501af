"""The preflight measures each pair of nodes once, before the first case, and never during a case."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from tests.unit.domain.objects import benchmark, broker_benchmark, node, node_class, seal, trial_line
from tests.unit.domain.scenarios import run_with
from tests.unit.domain.world import World
from tierbench.api.benchmark import Benchmark, Phase
from tierbench.api.measurements import NodeNetwork
from tierbench.api.result import ResultPhase
from tierbench.domain import reasons
from tierbench.domain.views import PodView, Problem, Termination
from tierbench.workloads.workload import ROLE_CLIENT, ROLE_SERVER

PREFLIGHT: dict[str, Any] = {"preflight": {}}
PREFLIGHT_JOBS = tuple(f"ft-demo-r1-c{number}-a1" for number in range(1001, 1005))


def networks(world: World) -> tuple[NodeNetwork, ...]:
    run = world.benchmark.status.run
    return () if run is None else run.networks


def network_measured(world: World) -> tuple[str, str, str]:
    found = next(item for item in world.benchmark.status.conditions if item.type == reasons.NETWORK_MEASURED)
    return found.status, found.reason, found.message


def test_each_pair_is_measured_once_before_the_first_case() -> None:
    world = World(benchmark(**PREFLIGHT))
    world.run()
    assert [name for name, _ in world.printed][:4] == list(PREFLIGHT_JOBS)
    assert len(world.printed) == 4 + 12
    assert [(item.server_node, item.client_node) for item in networks(world)] == [("c1", "u1"), ("j1", "u1")]
    for item in networks(world):
        assert item.upload is not None
        assert item.download is not None
        assert (item.upload.bits_per_second, item.download.bits_per_second) == (90_000_000, 80_000_000)
        assert item.reason is None
    assert network_measured(world)[:2] == ("True", reasons.ALL_PAIRS_MEASURED)
    assert sum(event.reason == reasons.NETWORK_MEASURED for event in world.events) == 2
    assert not (world.pods or world.jobs or world.services or world.secrets or world.leases)


def test_the_leases_last_until_the_servers_of_the_benchmark_are_due() -> None:
    world = World(benchmark(**PREFLIGHT))
    while len(networks(world)) < 2 or networks(world)[1].download is None:
        world.advance()
    ready = world.now + timedelta(seconds=world.benchmark.spec.timeouts.server_ready_seconds)
    assert {lease.expires > ready for lease in world.leases.values()} == {True}


def test_every_result_has_its_network_and_the_preflight_has_no_result() -> None:
    world = World(benchmark(**PREFLIGHT))
    world.run()
    assert sorted(world.results) == [f"ft-demo-r1-c00{number}" for number in (1, 2, 3, 4)]
    assert world.benchmark.status.progress == "4/4"
    for result in world.results.values():
        (network,) = result.spec.networks
        assert (network.server_node, network.client_node) == (result.spec.server.node, result.spec.client.node)


def test_without_preflight_the_network_is_not_measured() -> None:
    world = World()
    world.run()
    assert networks(world) == ()
    assert all(item.type != reasons.NETWORK_MEASURED for item in world.benchmark.status.conditions)


def test_the_next_run_repeats_the_preflight() -> None:
    world = World(benchmark(**PREFLIGHT))
    world.run()
    world.change_spec(rerun="again")
    world.reconcile()
    assert networks(world) == ()
    assert network_measured(world)[:2] == ("False", reasons.RUNNING)
    world.run()
    assert len(world.printed) == 2 * (4 + 12)
    assert len(networks(world)) == 2


def test_a_missing_image_is_reported_and_stops_no_case() -> None:
    problem = Problem(reasons.IMAGE_PULL_FAILED, "container iperf3-1: not found", transient=True)

    def lacks_image(world: World, pod: PodView) -> None:
        if pod.role == ROLE_SERVER and pod.slot >= 2:
            world.pods[pod.name] = replace(pod, ready=False, problem=problem)

    world = World(benchmark(**PREFLIGHT))
    run_with(world, partial(lacks_image, world))
    assert world.benchmark.status.phase is Phase.COMPLETE
    assert all(result.status.phase is ResultPhase.COMPLETE for result in world.results.values())
    assert {item.reason for item in networks(world)} == {reasons.IMAGE_PULL_FAILED}
    status, reason, message = network_measured(world)
    assert (status, reason) == ("False", reasons.IMAGE_PULL_FAILED)
    assert message.endswith("The cases are measured anyway.")
    assert sum(event.reason == reasons.IMAGE_PULL_FAILED and event.warning for event in world.events) == 2


def test_a_blocked_direction_does_not_affect_other_directions_and_pairs() -> None:
    def is_blocked(world: World, pod: PodView) -> None:
        if pod.name == PREFLIGHT_JOBS[1] and pod.terminated is None:
            failed = trial_line(1, outcome="Failed", measured={"network": {}})
            world.logs[pod.uid] = failed
            world.pods[pod.name] = replace(pod, terminated=Termination(0, "Completed", seal(failed)))

    world = World(benchmark(**PREFLIGHT))
    run_with(world, partial(is_blocked, world))
    blocked, whole = networks(world)
    assert (blocked.reason, blocked.download) == ("AttemptsExhausted", None)
    assert blocked.upload is not None
    assert (whole.reason, whole.download is not None) == (None, True)
    assert network_measured(world)[:2] == ("False", "AttemptsExhausted")
    assert world.benchmark.status.cases.failed == 0


def test_ping_without_permission_reports_the_remedy() -> None:
    message = "Operation not permitted: allow the sysctl"

    def may_not_ping(world: World, pod: PodView) -> None:
        if pod.name == PREFLIGHT_JOBS[0] and pod.terminated is None:
            world.logs[pod.uid] = ""
            ending = seal("", {"reason": "PingNotPermitted", "message": message})
            world.pods[pod.name] = replace(pod, terminated=Termination(1, "Error", ending))

    world = World(benchmark(**PREFLIGHT))
    run_with(world, partial(may_not_ping, world))
    assert networks(world)[0].reason == "PingNotPermitted"
    assert message in network_measured(world)[2]


def test_a_client_that_is_lost_or_times_out_is_reported() -> None:
    for timed_out, reason in ((False, reasons.CLIENT_LOST), (True, reasons.TIMED_OUT)):

        def is_lost(world: World, pod: PodView, *, late: bool = timed_out) -> None:
            if pod.name == PREFLIGHT_JOBS[0]:
                world.kill_pod(pod.name)
                world.jobs[pod.name] = replace(world.jobs[pod.name], timed_out=late)

        world = World(benchmark(**PREFLIGHT))
        run_with(world, partial(is_lost, world))
        assert networks(world)[0].reason == reason
        assert "spec.timeouts" not in network_measured(world)[2], "no timeout of the spec applies to a preflight"
        assert world.benchmark.status.progress == "4/4"


def test_cases_as_fast_as_the_network_have_a_fact() -> None:
    world = World(benchmark(**PREFLIGHT), nanoseconds=round(2**20 * 8 / 78e6 * 1e9))
    world.run()
    for result in world.results.values():
        (fact,) = (fact for fact in result.status.facts if fact.reason == "NetworkBound")
        assert "The network was the limit in 3 of 3 trials: at least 90% of the 80.0 Mbit/s down" in fact.message
    slow = World(benchmark(**PREFLIGHT))
    slow.run()
    assert all(fact.reason != "NetworkBound" for result in slow.results.values() for fact in result.status.facts)


def pairs_of(asked: Benchmark, *more: str) -> tuple[list[tuple[str, str]], World]:
    names = {"c1": "cloud", "j1": "jetson", "u1": "user", **dict.fromkeys(more, "user"), "s1": "subscriber"}
    nodes = {name: node(name, hardware) for name, hardware in names.items()}
    world = World(asked, nodes=nodes, classes={name: node_class(name) for name in names.values()})
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE
    return [(item.server_node, item.client_node) for item in networks(world)], world


def test_every_client_node_of_a_broker_has_its_pair() -> None:
    clients = {
        "nodeClassNames": ["user"],
        "pods": 2,
        "subscribers": {"type": "Separate", "nodeClassName": "subscriber"},
    }
    found, world = pairs_of(broker_benchmark(**PREFLIGHT, clients=clients), "u2")
    assert found == [(server, client) for server in ("c1", "j1") for client in ("s1", "u1", "u2")]
    for result in world.results.values():
        assert [item.client_node for item in result.spec.networks] == ["s1", "u1", "u2"]


@pytest.mark.parametrize("kept", [True, False])
def test_an_external_broker_has_no_pair(kept: bool) -> None:
    outside = {"name": "outside", "external": {"address": "broker.example:1883", "protocol": "MQTT"}}
    ours = [{"name": "mosquitto", "mosquitto": {}}] if kept else []
    servers = {"nodeClassNames": ["cloud"]} if kept else None
    found, world = pairs_of(broker_benchmark(**PREFLIGHT, brokers=[*ours, outside], servers=servers))
    assert found == ([("c1", "u1")] if kept else [])
    external = [result for result in world.results.values() if result.spec.levels["broker"] == "outside"]
    assert external
    assert all(result.spec.networks == () for result in external)


def test_an_external_broker_does_not_use_the_pair_of_a_broker_on_the_same_node() -> None:
    """Clients use both brokers from the node of cloud, where our broker runs, too."""
    outside = {"name": "outside", "external": {"address": "broker.example:1883", "protocol": "MQTT"}}
    asked = broker_benchmark(
        **PREFLIGHT,
        brokers=[{"name": "mosquitto", "mosquitto": {}}, outside],
        servers={"nodeClassNames": ["cloud"]},
        clients={"nodeClassNames": ["cloud"]},
        colocation="Required",
    )
    found, world = pairs_of(asked)
    assert found == [("c1", "c1")]
    carried = {result.spec.levels["broker"]: len(result.spec.networks) for result in world.results.values()}
    assert carried == {"mosquitto": 1, "outside": 0}


def test_the_preflight_never_runs_during_a_case() -> None:
    world = World(benchmark(**PREFLIGHT))

    def are_apart(_: PodView) -> None:
        cases = {pod.case > 4 for pod in world.pods.values() if pod.role == ROLE_CLIENT and not pod.deleting}
        assert len(cases) < 2

    run_with(world, are_apart)


class OddWorld(World):
    """A world whose iperf3 clients print trials without a flow."""

    def measured_by(self, command: str, case: int) -> dict[str, Any] | None:
        """Leaves out what the preflight measures."""
        return {"network": {}} if command.startswith("network") else super().measured_by(command, case)


def test_a_trial_without_a_measurement_is_not_repeated_forever() -> None:
    world = OddWorld(benchmark(**PREFLIGHT))
    world.run()
    assert {item.reason for item in networks(world)} == {reasons.CLIENT_UNREADABLE}
    assert all(result.status.phase is ResultPhase.COMPLETE for result in world.results.values())
