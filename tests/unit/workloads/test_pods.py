"""What all pods of all kinds share."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.domain.strimzi_world import StrimziWorld
from tests.unit.domain.world import IMAGES, World, benchmark, broker_benchmark, network_benchmark
from tierbench.workloads.pods import NO_SIDECARS
from tierbench.workloads.workload import Images

BENCHMARKS = {
    "files": benchmark(preflight={}),
    "broker": broker_benchmark(),
    "network": network_benchmark(),
}
USERS = ("runAsUser", "runAsGroup", "fsGroup")


def templates(world: World, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Metadata and spec of every pod that a run asks for; of Strimzi's, what Strimzi is told of them."""
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
def test_service_meshes_leave_every_pod_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy in between would be what is measured, and a Job with one never ends."""
    found = templates(world, monkeypatch)
    assert len(found) > 2
    assert all(template["metadata"]["annotations"] == NO_SIDECARS for template in found)


@pytest.mark.parametrize("user", [1000660000, None], ids=["named", "assigned"])
@pytest.mark.parametrize("kind", BENCHMARKS)
def test_the_user_of_every_pod_is_the_one_that_is_named_or_the_platforms(
    kind: str, user: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenShift's restricted-v2 refuses a pod that names another than the namespace's."""
    found = templates(World(benchmark=BENCHMARKS[kind], images=replace(IMAGES, user=user)), monkeypatch)
    assert len(found) > 2
    for template in found:
        spec = template["spec"]
        assert {spec["securityContext"].get(name) for name in USERS} == {user}
        for container in (*spec.get("initContainers", []), *spec["containers"]):
            assert not set(USERS) & set(container["securityContext"])


def test_every_pod_has_the_priority_that_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in BENCHMARKS.values():
        plain = templates(World(benchmark=each), monkeypatch)
        assert not any("priorityClassName" in template["spec"] for template in plain)
        found = templates(World(benchmark=each, images=replace(IMAGES, priority_class="low")), monkeypatch)
        assert all(template["spec"]["priorityClassName"] == "low" for template in found)


def test_every_container_has_the_pull_policy_of_its_image(monkeypatch: pytest.MonkeyPatch) -> None:
    names = (IMAGES.client, *IMAGES.programs.values())
    policies = {name: f"policy of {name}" for name in names}
    for each in (*BENCHMARKS.values(), broker_benchmark(brokers=[{"name": "kafka", "kafka": {}}])):
        assert not any("imagePullPolicy" in container for container in containers(each, IMAGES, monkeypatch))
        found = containers(each, replace(IMAGES, pull_policies=policies), monkeypatch)
        assert found
        assert all(container["imagePullPolicy"] == policies[container["image"]] for container in found)


def containers(benchmark: Any, images: Images, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    specs = [template["spec"] for template in templates(World(benchmark=benchmark, images=images), monkeypatch)]
    return [container for spec in specs for container in (*spec.get("initContainers", []), *spec["containers"])]
