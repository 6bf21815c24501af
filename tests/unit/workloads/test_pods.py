"""What all pods of all kinds share."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.domain.strimzi_world import StrimziWorld
from tests.unit.domain.world import World, benchmark, broker_benchmark, network_benchmark
from tierbench.workloads.pods import NO_SIDECARS


def pods_metadata(manifest: dict[str, Any]) -> Iterator[dict[str, Any]]:
    match manifest["kind"]:
        case "Pod":
            yield manifest["metadata"]
        case "Job":
            yield manifest["spec"]["template"]["metadata"]
        case "KafkaNodePool":
            yield manifest["spec"]["template"]["pod"]["metadata"]


@pytest.mark.parametrize(
    "world",
    [
        World(benchmark=benchmark(preflight={})),
        World(benchmark=broker_benchmark()),
        World(benchmark=network_benchmark()),
        StrimziWorld(),
    ],
    ids=["files", "broker", "network", "strimzi"],
)
def test_service_meshes_leave_every_pod_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy in between would be what is measured, and a Job with one never ends."""
    made: list[dict[str, Any]] = []
    create = type(world)._create

    def record(self: World, manifest: dict[str, Any]) -> None:
        made.append(manifest)
        create(self, manifest)

    monkeypatch.setattr(type(world), "_create", record)
    world.run()
    found = [metadata for manifest in made for metadata in pods_metadata(manifest)]
    assert len(found) > 2
    assert all(metadata["annotations"] == NO_SIDECARS for metadata in found)
