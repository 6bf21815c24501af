"""What all pods of all kinds share."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.domain import world as module
from tests.unit.domain.strimzi_world import StrimziWorld
from tests.unit.domain.world import IMAGES, World, benchmark, broker_benchmark, network_benchmark
from tierbench.workloads.pods import NO_SIDECARS

EACH_KIND = pytest.mark.parametrize(
    "make",
    [
        lambda: World(benchmark=benchmark(preflight={})),
        lambda: World(benchmark=broker_benchmark()),
        lambda: World(benchmark=network_benchmark()),
        StrimziWorld,
    ],
    ids=["files", "broker", "network", "strimzi"],
)


def pods(world: World, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """All pods of a run, as they are asked for: metadata and spec, or what Strimzi has of both."""
    made: list[dict[str, Any]] = []
    create = type(world)._create

    def record(self: World, manifest: dict[str, Any]) -> None:
        made.append(manifest)
        create(self, manifest)

    monkeypatch.setattr(type(world), "_create", record)
    world.run()
    found = {"Pod": lambda one: one, "Job": lambda one: one["spec"]["template"]}
    found["KafkaNodePool"] = lambda one: {**one["spec"]["template"]["pod"], "spec": one["spec"]["template"]["pod"]}
    return [found[manifest["kind"]](manifest) for manifest in made if manifest["kind"] in found]


@EACH_KIND
def test_service_meshes_leave_every_pod_alone(make: Callable[[], World], monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy in between would be what is measured, and a Job with one never ends."""
    found = pods(make(), monkeypatch)
    assert len(found) > 2
    assert all(pod["metadata"]["annotations"] == NO_SIDECARS for pod in found)


@EACH_KIND
def test_every_pod_has_the_priority_that_was_chosen(make: Callable[[], World], monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any("priorityClassName" in pod["spec"] for pod in pods(make(), monkeypatch))
    monkeypatch.setattr(module, "IMAGES", replace(IMAGES, priority_class="low"))
    assert all(pod["spec"]["priorityClassName"] == "low" for pod in pods(make(), monkeypatch))
