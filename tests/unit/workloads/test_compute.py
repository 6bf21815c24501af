"""What containers ask for, and may use at most: enough for a quota, and no limit that the spec does not ask for."""

from typing import Any

import pytest

from tests.unit.domain.strimzi_world import StrimziWorld
from tests.unit.domain.world import World, benchmark, broker_benchmark, network_benchmark
from tests.unit.workloads.test_pods import templates
from tierbench.kinds.file_transfer.spec import FileTransferSpec
from tierbench.workloads.compute import beside, left, measured
from tierbench.workloads.workload import NodeSize

ASKED = {
    "requests": {"cpu": "500m", "memory": "64Mi", "ephemeral-storage": "1Gi"},
    "limits": {"cpu": "2", "memory": "1Gi", "ephemeral-storage": "2Gi"},
}
GIVEN: dict[str, Any] = {
    "servers": {"nodeClasses": ["cloud", "jetson"], "resources": ASKED},
    "clients": {"nodeClasses": ["user"], "resources": ASKED},
}
KAFKA = [{"name": "kafka", "kafka": {}}]
KINDS = [
    (benchmark, {"preflight": {}}),
    (benchmark, {"storage": {"emptyDir": {}}}),
    (broker_benchmark, {}),
    (broker_benchmark, {"brokers": KAFKA}),
    (broker_benchmark, {"brokers": [{"name": "hub", "external": {"address": "hub.example:1883"}}], "servers": None}),
    (network_benchmark, {}),
]
NAMES = ["files", "emptyDir", "mosquitto", "kafka", "external", "network"]
EACH_KIND = pytest.mark.parametrize(("make", "spec"), KINDS, ids=NAMES)


def given(spec: dict[str, Any]) -> dict[str, Any]:
    """Resources of all that the spec deploys."""
    return {side: body for side, body in GIVEN.items() if spec.get(side, body) is not None}


def pod_specs(world: World, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Without those of Strimzi's, which are not ours to make."""
    return [template["spec"] for template in templates(world, monkeypatch) if "spec" in template]


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod.get("initContainers", []), *pod["containers"]]


@EACH_KIND
def test_every_container_says_what_it_needs_and_has_no_limit(
    make: Any, spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for pod in pod_specs(World(make(**spec)), monkeypatch):
        for container in containers(pod):
            assert container["resources"].keys() == {"requests"}
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}, container["name"]


@EACH_KIND
def test_what_the_spec_gives_is_enough_for_a_quota(
    make: Any, spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = list(pod_specs(World(make(**{**spec, **given(spec)})), monkeypatch))
    assert len(found) > 2
    for pod in found:
        for container in containers(pod):
            assert container["resources"]["limits"] == ASKED["limits"], container["name"]
            assert container["resources"]["requests"].keys() == ASKED["requests"].keys()
            asks_for_little = container["name"] in {"agent", "prepare", "format"}
            assert (container["resources"]["requests"] == ASKED["requests"]) != asks_for_little


@EACH_KIND
def test_no_directory_is_without_a_limit(make: Any, spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for pod in pod_specs(World(make(**spec)), monkeypatch):
        assert all(volume["emptyDir"].get("sizeLimit") for volume in pod["volumes"] if "emptyDir" in volume)


def test_what_strimzi_does_not_bring_up_has_the_limits_too(monkeypatch: pytest.MonkeyPatch) -> None:
    world = StrimziWorld()
    servers = world.benchmark.spec.servers.model_validate(GIVEN["servers"])
    world.benchmark = world.benchmark.model_copy(
        update={"spec": world.benchmark.spec.model_copy(update={"servers": servers})}
    )
    ours = [pod["containers"][0] for pod in pod_specs(world, monkeypatch)]
    agents = [container for container in ours if container["name"] == "agent"]
    assert agents
    assert all(agent["resources"]["limits"] == ASKED["limits"] for agent in agents)


def test_requests_of_our_own_are_no_more_than_a_limit() -> None:
    given = FileTransferSpec.model_validate(
        {
            "servers": {"nodeClasses": ["a"], "resources": {"limits": {"cpu": "20m", "memory": "8Mi"}}},
            "clients": {"nodeClasses": ["a"]},
            "fileSizes": ["1Mi"],
        }
    ).servers.resources
    assert measured(given)["requests"] == {"cpu": "20m", "memory": "8Mi"}
    assert beside(given, {"cpu": "10m", "memory": "16Mi"})["requests"] == {"cpu": "10m", "memory": "8Mi"}


def test_a_limit_is_all_that_a_server_has_of_its_node() -> None:
    world = World(broker_benchmark(brokers=KAFKA, **GIVEN))
    assert world.benchmark.spec.servers.resources is not None
    asked = world.benchmark.spec.servers.resources
    assert left(asked, NodeSize(4 * 2**30, 32 * 2**30)) == NodeSize(2**30, 2 * 2**30)
    assert left(asked, NodeSize()) == NodeSize(2**30, 2 * 2**30)
    assert left(None, NodeSize(5, 6)) == NodeSize(5, 6)
    world.run()
    heaps = {result.spec.service.settings["heap"] for result in world.results.values() if result.spec.service}
    assert heaps == {"256Mi"}


def test_results_keep_what_was_asked_for() -> None:
    world = World(benchmark(**GIVEN))
    world.run()
    for result in world.results.values():
        conditions = result.spec.conditions
        assert conditions["serverLimitsMemory"] == conditions["clientLimitsMemory"] == "1Gi"
        assert (conditions["serverRequestsCpu"], conditions["clientRequestsEphemeralStorage"]) == ("500m", "1Gi")
    plain = World(benchmark())
    plain.run()
    assert not any("Limits" in name for result in plain.results.values() for name in result.spec.conditions)
