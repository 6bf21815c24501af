"""What an administrator refuses is deployed nowhere, whatever it was that created it, and says what to change."""

from datetime import timedelta
from ipaddress import IPv6Address, ip_address, ip_network
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.policies import ROWS, Row, own_answer
from tests.unit.domain.world import World, benchmark
from tierbench.api.benchmark import Access, Phase, PolicySubject
from tierbench.api.policy import Policy
from tierbench.domain import reasons
from tierbench.kinds.registry import BENCHMARKS

EXAMPLES = Path(__file__).parents[3] / "examples"
REFUSED = (
    "storage.hostPath.path: /. is refused here: write one of [/var/lib/tierbench], a path below it, or emptyDir "
    "instead, or have it added to policy.hostPaths, a value of the chart"
)
ELSEWHERE = {"hostPath": {"path": "/."}}  # as an older version took it
NETWORKS = [ip_network(network) for network in Policy().refused_networks]


def first(policy: Policy, **asked: tuple[str, ...]) -> str:
    return next(policy.refusals("team", PolicySubject(access="PodIP", node_classes=("user",), **asked)), "")


@pytest.mark.parametrize("row", ROWS)
def test_rows(row: Row) -> None:
    said = own_answer(row)
    assert said.startswith(row.refused)
    assert bool(said) == bool(row.refused)


@given(st.ip_addresses())
def test_an_ip_address_is_refused_by_its_networks_alone(address: object) -> None:
    host = f"[{address}]" if isinstance(address, IPv6Address) else str(address)
    disguised = isinstance(address, IPv6Address) and address.ipv4_mapped is not None
    inside = any(address in network for network in NETWORKS)
    assert bool(first(Policy(), addresses=(f"{host}:1883",))) == (inside or disguised)


@given(st.sampled_from(NETWORKS).flatmap(lambda network: st.ip_addresses(network=network)))
def test_no_refused_network_is_reached_by_any_spelling(address: object) -> None:
    """IPv4 in IPv6's clothes included."""
    parsed = ip_address(str(address))
    spellings = [str(parsed)] if parsed.version == 4 else [f"[{parsed}]", f"[{parsed.exploded.upper()}]"]
    if parsed.version == 4:
        spellings.append(f"[::ffff:{int(parsed) >> 16:x}:{int(parsed) & 0xFFFF:x}]")
    for host in spellings:
        assert first(Policy(), addresses=(f"{host}:1883",))


@given(st.lists(st.sampled_from(["..", ".", "", "etc", "tierbench", "x.y", "_tierbench", "..."]), max_size=4))
def test_a_path_is_below_a_folder_that_is_named_or_is_refused(names: list[str]) -> None:
    path = "/".join(("/var/lib/tierbench", *names))
    policy = Policy()
    if first(policy, host_paths=(path,)):
        with pytest.raises(ValueError, match="is refused"):
            policy.host_folder(path)
        return
    assert policy.host_folder(path) == ("/var/lib/tierbench", "/".join(names))
    assert not {"..", ".", "", "_tierbench", "..."} & set(names)


def test_the_api_server_is_refused_by_its_address_or_its_name() -> None:
    assert not first(Policy(), addresses=("10.96.0.1:443",))
    assert first(Policy().refusing("10.96.0.1"), addresses=("10.96.0.1:443",))
    assert first(Policy().refusing("fd00::1"), addresses=("[fd00::1]:443",))
    assert first(Policy().refusing("API.example.com"), addresses=("api.example.com:443",))


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.yaml")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_examples_run_by_default(path: Path) -> None:
    for body in yaml.safe_load_all(path.read_text()):
        if body["kind"] in BENCHMARKS:
            spec = BENCHMARKS[body["kind"]].model_validate(body).spec
            assert not list(Policy().refusals("default", spec.policy_subject))


def test_it_waits_a_while_and_then_every_case_says_why() -> None:
    world = World(benchmark(storage=ELSEWHERE))
    while not (world.benchmark.status.run and world.benchmark.status.run.assignments):
        world.pass_()
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


def test_it_runs_when_the_administrator_lets_it_meanwhile() -> None:
    world = World(benchmark(access="HostNetwork"))
    world.pass_()
    assert not world.pods
    world.policy = Policy(access=tuple(Access))
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE


def test_a_policy_that_comes_in_mid_run_ends_it() -> None:
    world = World(benchmark())
    while not world.printed:
        if world.pass_().requeue_after > 0:
            world.step()
    world.policy = Policy(node_classes={"*": ()})
    world.run()
    assert world.benchmark.status.phase is Phase.FAILED
    assert {item.status.reason for item in world.results.values()} == {"RefusedByPolicy"}
    assert not world.pods
    assert not world.jobs
