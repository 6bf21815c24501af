"""Properties that pods of all kinds share, and the resources of their containers."""

from dataclasses import replace
from typing import Any

import pytest

from tests.plans import plan_in
from tests.unit.domain.objects import IMAGES, benchmark, broker_benchmark, network_benchmark
from tests.unit.domain.strimzi_world import StrimziWorld
from tests.unit.domain.world import World
from tierbench.api.node_class import ResultsPath
from tierbench.kinds.file_transfer.spec import FileTransferSpec
from tierbench.workloads.pods import NO_SIDECARS, available_size, measured_resources, sidecar_resources
from tierbench.workloads.workload import Images, Manifest, NodeSize

BENCHMARKS = {
    "files": benchmark(preflight={}),
    "broker": broker_benchmark(),
    "network": network_benchmark(),
}
USERS = ("runAsUser", "runAsGroup", "fsGroup")


def templates(world: World, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Returns the metadata and spec of every pod of a run; for Strimzi, the template in its objects."""
    made: list[dict[str, Any]] = []
    create = type(world)._create

    def record(self: World, manifest: dict[str, Any]) -> None:
        made.append(manifest)
        create(self, manifest)

    monkeypatch.setattr(type(world), "_create", record)
    world.run()
    return [template for manifest in made if (template := _template(manifest))]


def _template(manifest: dict[str, Any]) -> dict[str, Any]:
    match manifest["kind"]:
        case "Pod":
            return manifest
        case "Job":
            template: dict[str, Any] = manifest["spec"]["template"]
            return template
        case "KafkaNodePool":
            pod: dict[str, Any] = manifest["spec"]["template"]["pod"]
            return pod
        case _:
            return {}


@pytest.mark.parametrize(
    "world",
    [*(World(benchmark=each) for each in BENCHMARKS.values()), StrimziWorld()],
    ids=[*BENCHMARKS, "strimzi"],
)
def test_no_pod_gets_a_sidecar_of_a_service_mesh(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy would distort the measurement, and a Job with one never ends."""
    found = templates(world, monkeypatch)
    assert len(found) > 2
    assert all(template["metadata"]["annotations"] == NO_SIDECARS for template in found)


@pytest.mark.parametrize("user", [1000660000, None], ids=["named", "assigned"])
@pytest.mark.parametrize("kind", BENCHMARKS)
def test_every_pod_has_the_named_user_or_that_of_the_platform(
    kind: str, user: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenShift's restricted-v2 refuses a pod that names another user than the namespace's."""
    found = templates(World(benchmark=BENCHMARKS[kind], images=replace(IMAGES, user=user)), monkeypatch)
    assert len(found) > 2
    for template in found:
        spec = template["spec"]
        assert {spec["securityContext"].get(name) for name in USERS} == {user}
        for container in (*spec.get("initContainers", []), *spec["containers"]):
            assert not set(USERS) & set(container["securityContext"])


def test_every_pod_has_the_chosen_priority_class(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in BENCHMARKS.values():
        plain = templates(World(benchmark=each), monkeypatch)
        assert not any("priorityClassName" in template["spec"] for template in plain)
        found = templates(World(benchmark=each, images=replace(IMAGES, priority_class="low")), monkeypatch)
        assert all(template["spec"]["priorityClassName"] == "low" for template in found)


def test_every_container_has_the_pull_policy_of_its_image(monkeypatch: pytest.MonkeyPatch) -> None:
    names = (IMAGES.client, *IMAGES.programs.values())
    policies = {name: f"policy of {name}" for name in names}
    for each in (*BENCHMARKS.values(), broker_benchmark(brokers=[{"name": "kafka", "kafka": {}}])):
        assert not any("imagePullPolicy" in container for container in all_containers(each, IMAGES, monkeypatch))
        found = all_containers(each, replace(IMAGES, pull_policies=policies), monkeypatch)
        assert found
        assert all(container["imagePullPolicy"] == policies[container["image"]] for container in found)


def all_containers(benchmark: Any, images: Images, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    world = World(benchmark=benchmark, images=images)
    return [container for template in templates(world, monkeypatch) for container in containers_of(template["spec"])]


def containers_of(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod.get("initContainers", []), *pod["containers"]]


ASKED = {
    "requests": {"cpu": "500m", "memory": "64Mi", "ephemeral-storage": "1Gi"},
    "limits": {"cpu": "2", "memory": "1Gi", "ephemeral-storage": "2Gi"},
}
GIVEN: dict[str, Any] = {
    "servers": {"nodeClassNames": ["cloud", "jetson"], "resources": ASKED},
    "clients": {"nodeClassNames": ["user"], "resources": ASKED},
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
    """Returns the resources of each side that the spec deploys."""
    return {side: body for side, body in GIVEN.items() if spec.get(side, body) is not None}


def pod_specs(world: World, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Returns the specs of pods that tierbench makes, without those of Strimzi."""
    return [template["spec"] for template in templates(world, monkeypatch) if "spec" in template]


@EACH_KIND
def test_every_container_has_requests_and_no_limits(
    make: Any, spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for pod in pod_specs(World(make(**spec)), monkeypatch):
        for container in containers_of(pod):
            assert container["resources"].keys() == {"requests"}
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}, container["name"]


@EACH_KIND
def test_resources_of_the_spec_satisfy_a_quota_in_every_container(
    make: Any, spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = list(pod_specs(World(make(**{**spec, **given(spec)})), monkeypatch))
    assert len(found) > 2
    for pod in found:
        for container in containers_of(pod):
            assert container["resources"]["limits"] == ASKED["limits"], container["name"]
            assert container["resources"]["requests"].keys() == ASKED["requests"].keys()
            asks_for_little = container["name"] in {"agent", "prepare", "format"}
            assert (container["resources"]["requests"] == ASKED["requests"]) != asks_for_little


@EACH_KIND
def test_refused_arguments_reach_the_termination_message(
    make: Any, spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [each for pod in pod_specs(World(make(**spec)), monkeypatch) for each in containers_of(pod)]
    ours = [each for each in found if each["name"] in {"agent", "client"}]
    assert {each["terminationMessagePolicy"] for each in ours} == {"FallbackToLogsOnError"}


@EACH_KIND
def test_every_empty_dir_has_a_size_limit(make: Any, spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for pod in pod_specs(World(make(**spec)), monkeypatch):
        assert all(volume["emptyDir"].get("sizeLimit") for volume in pod["volumes"] if "emptyDir" in volume)


def test_agent_next_to_strimzi_has_the_limits_too(monkeypatch: pytest.MonkeyPatch) -> None:
    world = StrimziWorld()
    servers = world.benchmark.spec.servers.model_validate(GIVEN["servers"])
    world.benchmark = world.benchmark.model_copy(
        update={"spec": world.benchmark.spec.model_copy(update={"servers": servers})}
    )
    ours = [pod["containers"][0] for pod in pod_specs(world, monkeypatch)]
    agents = [container for container in ours if container["name"] == "agent"]
    assert agents
    assert all(agent["resources"]["limits"] == ASKED["limits"] for agent in agents)


def test_default_requests_never_exceed_a_limit() -> None:
    given = FileTransferSpec.model_validate(
        {
            "servers": {"nodeClassNames": ["a"], "resources": {"limits": {"cpu": "20m", "memory": "8Mi"}}},
            "clients": {"nodeClassNames": ["a"]},
            "fileSizes": ["1Mi"],
        }
    ).servers.resources
    assert measured_resources(given)["requests"] == {"cpu": "20m", "memory": "8Mi"}
    assert sidecar_resources(given, {"cpu": "10m", "memory": "16Mi"})["requests"] == {"cpu": "10m", "memory": "8Mi"}


def test_limit_bounds_the_size_that_a_server_has_of_its_node() -> None:
    world = World(broker_benchmark(brokers=KAFKA, **GIVEN))
    assert world.benchmark.spec.servers.resources is not None
    asked = world.benchmark.spec.servers.resources
    assert available_size(asked, NodeSize(4 * 2**30, 32 * 2**30)) == NodeSize(2**30, 2 * 2**30)
    assert available_size(asked, NodeSize()) == NodeSize(2**30, 2 * 2**30)
    assert available_size(None, NodeSize(5, 6)) == NodeSize(5, 6)
    world.run()
    heaps = {result.spec.service.settings["heap"] for result in world.results.values() if result.spec.service}
    assert heaps == {"256Mi"}


def test_results_keep_the_requested_resources() -> None:
    world = World(benchmark(**GIVEN))
    world.run()
    for result in world.results.values():
        settings = result.spec.settings
        assert settings["serverLimitsMemory"] == settings["clientLimitsMemory"] == "1Gi"
        assert (settings["serverRequestsCpu"], settings["clientRequestsEphemeralStorage"]) == ("500m", "1Gi")
    plain = World(benchmark())
    plain.run()
    assert not any("Limits" in name for result in plain.results.values() for name in result.spec.settings)


COLLECTOR = "https://tierbench-collector.bench.svc:8443"


@pytest.mark.parametrize(("results", "pushes"), [("Auto", True), ("Push", True), ("Logs", False), ("Status", False)])
def test_client_pushes_if_its_class_allows_it_and_there_is_a_collector(results: str, *, pushes: bool) -> None:
    for collector in (COLLECTOR, ""):
        pod = client_of(World(images=replace(IMAGES, collector=collector)), results)
        (container,) = pod["spec"]["containers"]
        given = [word for word in container["args"] if word.startswith("--collector=")]
        mounts = {mount["name"] for mount in container["volumeMounts"]}
        expected = pushes and collector != ""
        assert given == ([f"--collector={COLLECTOR}/v1/lines/default/$(POD_NAME)"] if expected else [])
        assert ({"collector", "spool"} <= mounts) == expected
        assert "initContainers" not in pod["spec"], "a kubelet divides the space for seals among containers"
        label = pod["metadata"]["labels"].get("tierbench.io/results")
        assert label == (None if results == "Auto" else results)


@pytest.mark.parametrize("engine", ["Native", "Paho", "SINETStream"])
def test_clients_of_all_engines_push(engine: str) -> None:
    clients = {"nodeClassNames": ["user"], "engine": engine}
    pod = client_of(World(broker_benchmark(clients=clients), images=replace(IMAGES, collector=COLLECTOR)), "Push")
    (container,) = pod["spec"]["containers"]
    assert [word for word in container["args"] if word.startswith("--collector=")]
    assert plan_in(container["args"]).get("engine", "") == ("" if engine == "Native" else engine.lower())


def client_of(world: World, results: str) -> Manifest:
    """Returns the pod template of the first client on a node class with these results."""
    user = world.classes["user"]
    changed = user.spec.model_copy(update={"results": ResultsPath(results)})
    world.classes["user"] = user.model_copy(update={"spec": changed})
    while not world.manifests:
        world.advance()
    template: Manifest = next(iter(world.manifests.values()))["spec"]["template"]
    return template
