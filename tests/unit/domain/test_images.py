"""Images of servers as a factor: those that are listed are measured in turn, and no other is ever run."""

from datetime import timedelta

from tests.unit.domain.world import World, benchmark, broker_benchmark
from tierbench.api.benchmark import Phase
from tierbench.api.result import ResultPhase, ServiceFacts
from tierbench.domain import reasons

DIGEST = "docker.io/library/server@sha256:1"
ONE_CLASS = {"nodeClasses": ["cloud"]}
UNLISTED = (
    "No image of nginx is called 1.18.0; these are: default, 1.19.6. Name one of them, or have 1.18.0 added to "
    "nginx.alternatives, a value of the chart."
)


def world(*images: str) -> World:
    return World(benchmark(servers={**ONE_CLASS, "images": list(images)}, fileSizes=["1Mi"]))


def services(world: World) -> list[tuple[str | None, ServiceFacts | None]]:
    """Of every result the level, and how its server was made."""
    return [(result.spec.levels.get("image"), result.spec.service) for _, result in sorted(world.results.items())]


def test_each_is_measured_and_results_say_what_it_was() -> None:
    found = world("default", "1.19.6")
    found.run()
    assert found.benchmark.status.phase is Phase.COMPLETE
    assert services(found) == [
        ("default", ServiceFacts(name="nginx", image="nginx:1", image_id=DIGEST)),
        ("1.19.6", ServiceFacts(name="nginx", image="nginx:1.19.6", image_id=DIGEST)),
    ]


def test_without_any_there_is_one_and_no_level() -> None:
    found = World(benchmark(servers=ONE_CLASS, fileSizes=["1Mi"]))
    found.run()
    assert services(found) == [(None, ServiceFacts(name="nginx", image="nginx:1", image_id=DIGEST))]


def test_one_that_is_not_listed_is_waited_for_and_then_refused_alone() -> None:
    found = world("1.18.0", "1.19.6")
    while not (found.benchmark.status.run and found.benchmark.status.run.assignments):
        found.pass_()
        (scheduled,) = [one for one in found.benchmark.status.conditions if one.type == reasons.SCHEDULED]
        assert (scheduled.status, scheduled.reason, scheduled.message) == ("False", "ImageNotListed", UNLISTED)
        found.now += timedelta(seconds=5)
    found.run()
    refused, measured = (result.status for _, result in sorted(found.results.items()))
    assert (refused.phase, refused.reason, refused.message) == (ResultPhase.FAILED, "ImageNotListed", UNLISTED)
    assert measured.phase is ResultPhase.MEASURED
    assert UNLISTED in {event.message for event in found.events}
    assert "ServerReady" in {one.type for one in found.benchmark.status.conditions}


def test_brokers_have_images_of_their_own() -> None:
    brokers = [{"name": "m", "mosquitto": {"images": ["1.6.9", "default"]}}, {"name": "k", "kafka": {}}]
    found = World(broker_benchmark(brokers=brokers, servers=ONE_CLASS, payload={"sizes": ["100"]}))
    found.run()
    images = [(level, service.name, service.image) for level, service in services(found) if service is not None]
    assert images == [("1.6.9", "m", "mosquitto:1.6.9"), ("default", "m", "mosquitto:1"), (None, "k", "kafka:1")]
