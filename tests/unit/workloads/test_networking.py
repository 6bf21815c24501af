"""NetworkPolicies of a benchmark: its own pods reach one another, and other pods reach none of them."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.network_policies import Peer, permitted
from tests.unit.domain.objects import IMAGES, OWNER, benchmark, broker_benchmark, network_benchmark
from tests.unit.domain.strimzi_world import strimzi_benchmark
from tests.unit.domain.world import World
from tests.unit.kinds.file_transfer.test_workload import CLASS
from tierbench.api.benchmark import Benchmark
from tierbench.api.policy import Policy
from tierbench.domain.decision import Create
from tierbench.kinds.registry import workload_of
from tierbench.workloads.networking import network_policy
from tierbench.workloads.workload import LABEL_ROLE, LABEL_RUN, ROLE_CLIENT, Manifest, ServerInstance

KINDS = {
    "files": (benchmark, 8080),
    "brokers": (broker_benchmark, 1883),
    "networks": (network_benchmark, 5201),
}
AGENT, DNS = 8090, 53
EXTERNAL = {"brokers": [{"name": "theirs", "external": {"address": "broker.example.com:1883"}}], "servers": None}
METADATA_SERVICE = Peer("169.254.169.254")
OUTSIDE = Peer("203.0.113.7")
RESOLVER = Peer("10.0.9.9", "kube-system", {"k8s-app": "kube-dns"})
IN_CLUSTER = Peer("10.0.9.8", "kafka", {"app": "kafka"})


class Isolated:
    """A server of a benchmark and its policy, its client, and outsiders."""

    def __init__(self, given: Benchmark, policy: Policy | None = None, collector: str = "") -> None:
        owner = replace(OWNER, kind=given.KIND.kind)
        workload = workload_of(owner, given.spec, IMAGES, Policy())
        instance = ServerInstance("demo-r1-s1", "demo-r1-s1-uid-1", 1, 0, workload.server_placements()[0], "j1", CLASS)
        manifests = workload.server(replace(instance, api_version="kafka.strimzi.io/v1"))
        self.policy = network_policy(owner, instance, manifests, policy or Policy(), collector)
        self.pod: Manifest = manifests[-1]
        run = {**owner.selector, LABEL_RUN: "1"}
        self.server = self._pod(self.pod["metadata"]["labels"])
        self.client = self._pod({**run, LABEL_ROLE: ROLE_CLIENT}, "10.0.0.2")
        self.strimzi = self._pod({**run, LABEL_ROLE: "strimzi"}, "10.0.0.3")
        self.outsiders = (
            self._pod({**self.client.labels, "tierbench.io/benchmark": "another"}, "10.0.0.4"),
            self._pod(dict(self.client.labels), "10.0.0.5", "another-namespace"),
            self._pod({}, "10.0.0.6"),
            OUTSIDE,
        )

    def _pod(self, labels: Mapping[str, str], address: str = "10.0.0.1", namespace: str = OWNER.namespace) -> Peer:
        return Peer(address, namespace, labels)

    def reaches(self, source: Peer, target: Peer, port: int | None, protocol: str = "TCP") -> bool:
        return permitted([self.policy], source, target, port, protocol)


def isolated(kind: str, access: str) -> Isolated:
    return Isolated(KINDS[kind][0](access=access))


@pytest.mark.parametrize("access", ["PodIP", "ClusterIP", "NodePort"])
@pytest.mark.parametrize("kind", KINDS)
def test_clients_reach_the_server_and_outsiders_only_its_node_port(kind: str, access: str) -> None:
    here, port = isolated(kind, access), KINDS[kind][1]
    for number in (port, AGENT, None):
        assert here.reaches(here.client, here.server, number)
    for outsider in here.outsiders:
        assert not here.reaches(outsider, here.server, AGENT)
        assert not here.reaches(outsider, here.server, None)
        assert not here.reaches(outsider, here.client, 22)
        # The node may replace the client's address with its own, so everyone counts as an outsider.
        assert here.reaches(outsider, here.server, port) == (access == "NodePort")


def test_node_port_is_open_for_udp_only_at_the_served_port() -> None:
    here = isolated("networks", "NodePort")
    assert here.reaches(OUTSIDE, here.server, 5201, "UDP")
    assert not here.reaches(OUTSIDE, here.server, 5202, "UDP")


@pytest.mark.parametrize("kind", KINDS)
def test_clients_reach_dns_and_nothing_outside_the_benchmark(kind: str) -> None:
    here = isolated(kind, "ClusterIP")
    for protocol in ("UDP", "TCP"):
        assert here.reaches(here.client, RESOLVER, DNS, protocol)
    for elsewhere in (METADATA_SERVICE, OUTSIDE, IN_CLUSTER, *here.outsiders):
        assert not here.reaches(here.client, elsewhere, 80)
        assert not here.reaches(here.server, elsewhere, 80)


@pytest.mark.parametrize(
    ("collector", "elsewhere"),
    [("https://tierbench-collector.bench.svc:8443", False), ("https://192.0.2.7:8443", True)],
)
def test_clients_reach_the_collector(collector: str, *, elsewhere: bool) -> None:
    """A node or a load balancer may translate its address to another one."""
    here = Isolated(KINDS["files"][0](access="ClusterIP"), collector=collector)
    operator = Peer("10.0.9.7", "bench", {"app.kubernetes.io/name": "tierbench"})
    assert here.reaches(here.client, operator, 8443)
    assert not here.reaches(here.client, operator, 8080)
    assert here.reaches(here.client, OUTSIDE, 8443) == elsewhere
    assert not here.reaches(here.client, OUTSIDE, 443)


@pytest.mark.parametrize("access", ["NodePort", "HostNetwork"])
def test_clients_reach_nodes_if_the_access_uses_their_addresses(access: str) -> None:
    here = isolated("files", access)
    assert here.reaches(here.client, Peer("192.0.2.7"), 31234)


def test_external_broker_is_reachable_except_in_refused_networks() -> None:
    here = Isolated(broker_benchmark(**EXTERNAL))
    for broker in (OUTSIDE, IN_CLUSTER, Peer("2001:db8::7")):
        assert here.reaches(here.client, broker, 1883)
        assert here.reaches(here.client, broker, 19092)
    for forbidden in (METADATA_SERVICE, Peer("fe80::1"), Peer("168.63.129.16"), Peer("fd00:ec2::254")):
        assert not here.reaches(here.client, forbidden, 80)
    assert here.reaches(here.client, here.server, AGENT)
    assert not here.reaches(here.outsiders[0], here.server, AGENT)


@pytest.mark.parametrize(("names", "elsewhere"), [([], False), (["broker.example.com"], True)])
def test_external_broker_is_reachable_only_in_allowed_networks_or_by_name(names: list[str], *, elsewhere: bool) -> None:
    """An author opened addresses that an administrator had closed. The addresses of a name are not known."""
    networks = ["192.0.2.0/24", "10.9.0.0/16", "10.9.1.0/24"]
    policy = Policy(allowed_networks=networks, allowed_names=names, refused_networks=["192.0.2.7/32", "10.9.0.0/16"])
    here = Isolated(broker_benchmark(**EXTERNAL), policy)
    assert here.reaches(here.client, Peer("192.0.2.1"), 1883)
    for refused in ("192.0.2.7", "10.9.1.1"):
        assert not here.reaches(here.client, Peer(refused), 1883)
    for other in (OUTSIDE, IN_CLUSTER):
        assert here.reaches(here.client, other, 1883) == elsewhere


def test_network_policy_does_not_apply_to_pods_of_strimzi() -> None:
    here = Isolated(strimzi_benchmark())
    assert here.reaches(here.client, here.strimzi, 9092)
    assert here.reaches(here.outsiders[0], here.strimzi, 9092)
    assert not here.reaches(here.outsiders[0], here.server, AGENT)


def test_network_policy_is_created_before_the_pod_and_only_if_requested() -> None:
    made = {flag: created(isolated=flag) for flag in (True, False)}
    assert made[True].index("NetworkPolicy") < made[True].index("Pod")
    assert "NetworkPolicy" not in made[False]


def created(*, isolated: bool) -> list[str]:
    """Returns the kinds of the objects of the first server, in order of creation."""
    world = World(isolated=isolated)
    while not world.pods:
        actions = world.reconcile().actions
    return [item["kind"] for action in actions if isinstance(action, Create) for item in action.manifests]
