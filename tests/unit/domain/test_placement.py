"""Unlisted images and specs that the policy denies are deployed nowhere; the message says what to change."""

from datetime import timedelta
from ipaddress import IPv6Address, ip_address, ip_network
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.policies import ROWS, Row, operator_message
from tests.unit.domain.objects import benchmark, broker_benchmark
from tests.unit.domain.world import World
from tierbench.api.benchmark import Access, Phase, PolicySubject
from tierbench.api.policy import Policy
from tierbench.api.result import ResultPhase, ServiceFacts
from tierbench.domain import reasons
from tierbench.kinds.registry import BENCHMARKS

DIGEST = "docker.io/library/server@sha256:1"
ONE_CLASS = {"nodeClassNames": ["cloud"]}
UNLISTED = (
    "No image of nginx is called 1.18.0; these are: default, 1.19.6. Name one of them, or ask an "
    "administrator to add 1.18.0 to the chart value nginx.alternatives."
)
EXAMPLES = Path(__file__).parents[3] / "examples"
REFUSED = (
    "storage.hostPath.path: /. is not allowed: use one of [/var/lib/tierbench], a path below one of "
    "them, or emptyDir, or ask an administrator to add it to the chart value policy.hostPaths"
)
ELSEWHERE = {"hostPath": {"path": "/."}}  # an older version accepted it
NETWORKS = [ip_network(network) for network in Policy().refused_networks]


def make_world(*images: str) -> World:
    return World(benchmark(servers={**ONE_CLASS, "images": list(images)}, fileSizes=["1Mi"]))


def services(world: World) -> list[tuple[str | None, ServiceFacts | None]]:
    """Returns the image level and the service facts of every result."""
    return [(result.spec.levels.get("image"), result.spec.service) for _, result in sorted(world.results.items())]


def test_every_listed_image_is_measured_and_named_in_the_results() -> None:
    world = make_world("default", "1.19.6")
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE
    assert services(world) == [
        ("default", ServiceFacts(name="nginx", image="nginx:1", image_id=DIGEST)),
        ("1.19.6", ServiceFacts(name="nginx", image="nginx:1.19.6", image_id=DIGEST)),
    ]


def test_the_default_image_has_no_level() -> None:
    world = World(benchmark(servers=ONE_CLASS, fileSizes=["1Mi"]))
    world.run()
    assert services(world) == [(None, ServiceFacts(name="nginx", image="nginx:1", image_id=DIGEST))]


def test_a_benchmark_waits_for_an_unlisted_image_then_only_its_case_fails() -> None:
    world = make_world("1.18.0", "1.19.6")
    while not (world.benchmark.status.run and world.benchmark.status.run.assignments):
        world.reconcile()
        (scheduled,) = [one for one in world.benchmark.status.conditions if one.type == reasons.SCHEDULED]
        assert (scheduled.status, scheduled.reason, scheduled.message) == ("False", "ImageNotListed", UNLISTED)
        world.now += timedelta(seconds=5)
    world.run()
    refused, measured = (result.status for _, result in sorted(world.results.items()))
    assert (refused.phase, refused.reason, refused.message) == (ResultPhase.FAILED, "ImageNotListed", UNLISTED)
    assert measured.phase is ResultPhase.COMPLETE
    assert UNLISTED in {event.message for event in world.events}
    assert "ServerReady" in {one.type for one in world.benchmark.status.conditions}


def test_brokers_have_their_own_images() -> None:
    brokers = [{"name": "m", "mosquitto": {"images": ["1.6.9", "default"]}}, {"name": "k", "kafka": {}}]
    world = World(broker_benchmark(brokers=brokers, servers=ONE_CLASS, payload={"sizes": ["100"]}))
    world.run()
    images = [(level, service.name, service.image) for level, service in services(world) if service is not None]
    assert images == [(None, "k", "kafka:1"), ("default", "m", "mosquitto:1"), ("1.6.9", "m", "mosquitto:1.6.9")]


def first_refusal(policy: Policy, **asked: tuple[str, ...]) -> str:
    return next(policy.refusals("team", PolicySubject(access="PodIP", node_class_names=("user",), **asked)), "")


@pytest.mark.parametrize("row", ROWS)
def test_the_policy_decides_like_the_admission_policy(row: Row) -> None:
    message = operator_message(row)
    assert message.startswith(row.refused)
    assert bool(message) == bool(row.refused)


@given(st.ip_addresses())
def test_only_addresses_in_refused_networks_and_mapped_ones_are_refused(address: object) -> None:
    host = f"[{address}]" if isinstance(address, IPv6Address) else str(address)
    disguised = isinstance(address, IPv6Address) and address.ipv4_mapped is not None
    inside = any(address in network for network in NETWORKS)
    assert bool(first_refusal(Policy(), addresses=(f"{host}:1883",))) == (inside or disguised)


@given(st.sampled_from(NETWORKS).flatmap(lambda network: st.ip_addresses(network=network)))
def test_no_spelling_of_an_address_reaches_a_refused_network(address: object) -> None:
    """This includes IPv4 addresses mapped into IPv6."""
    parsed = ip_address(str(address))
    spellings = [str(parsed)] if parsed.version == 4 else [f"[{parsed}]", f"[{parsed.exploded.upper()}]"]
    if parsed.version == 4:
        spellings.append(f"[::ffff:{int(parsed) >> 16:x}:{int(parsed) & 0xFFFF:x}]")
    for host in spellings:
        assert first_refusal(Policy(), addresses=(f"{host}:1883",))


@given(st.lists(st.sampled_from(["..", ".", "", "etc", "tierbench", "x.y", "_tierbench", "..."]), max_size=4))
def test_a_path_outside_the_named_folders_is_refused(names: list[str]) -> None:
    path = "/".join(("/var/lib/tierbench", *names))
    policy = Policy()
    if first_refusal(policy, host_paths=(path,)):
        with pytest.raises(ValueError, match="is not allowed"):
            policy.permitted_directory(path)
        return
    assert policy.permitted_directory(path) == ("/var/lib/tierbench", "/".join(names))
    assert not {"..", ".", "", "_tierbench", "..."} & set(names)


def test_the_api_server_is_refused_by_its_address_or_its_name() -> None:
    assert not first_refusal(Policy(), addresses=("10.96.0.1:443",))
    assert first_refusal(Policy().with_refused_host("10.96.0.1"), addresses=("10.96.0.1:443",))
    assert first_refusal(Policy().with_refused_host("fd00::1"), addresses=("[fd00::1]:443",))
    assert first_refusal(Policy().with_refused_host("API.example.com"), addresses=("api.example.com:443",))


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.yaml")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_examples_run_by_default_and_with_links_if_they_are_allowed(path: Path) -> None:
    for body in yaml.safe_load_all(path.read_text()):
        if body["kind"] in BENCHMARKS:
            spec = BENCHMARKS[body["kind"]].model_validate(body).spec
            policy = Policy(links=path.parent.name == "over-links")
            assert not list(policy.refusals("default", spec.policy_subject))


def test_a_denied_benchmark_waits_then_every_case_fails_with_the_reason() -> None:
    world = World(benchmark(storage=ELSEWHERE))
    while not (world.benchmark.status.run and world.benchmark.status.run.assignments):
        world.reconcile()
        (scheduled,) = [one for one in world.benchmark.status.conditions if one.type == reasons.SCHEDULED]
        assert (scheduled.status, scheduled.reason, scheduled.message) == ("False", "RefusedByPolicy", REFUSED)
        world.now += timedelta(seconds=5)
    world.run()
    assert world.benchmark.status.phase is Phase.FAILED
    assert {(item.status.reason, item.status.message) for item in world.results.values()} == {
        ("RefusedByPolicy", REFUSED)
    }
    assert REFUSED in {event.message for event in world.events}
    assert not world.leases
    assert not world.printed


def test_a_denied_benchmark_runs_once_the_policy_allows_it() -> None:
    world = World(benchmark(access="HostNetwork"))
    world.reconcile()
    assert not world.pods
    world.policy = Policy(access=tuple(Access))
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE


def test_a_policy_that_is_added_during_a_run_ends_it() -> None:
    world = World(benchmark())
    while not world.printed:
        world.advance()
    world.policy = Policy(node_class_names={"*": ()})
    world.run()
    assert world.benchmark.status.phase is Phase.FAILED
    assert {item.status.reason for item in world.results.values()} == {"RefusedByPolicy"}
    assert not world.pods
    assert not world.jobs
