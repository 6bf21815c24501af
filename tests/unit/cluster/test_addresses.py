"""No two machines, pods or clusters share an address, and all addresses are in the range reserved for benchmarks."""

from ipaddress import IPv4Network
from itertools import combinations

from tests.cluster import addresses, profiles
from tests.cluster.addresses import Addresses

CLUSTERS = [Addresses(number) for number in range(addresses.MOST_CLUSTERS)]
NODES = range(profiles.MOST_NODES)


def test_pod_ranges_of_nodes_and_clusters_do_not_overlap() -> None:
    networks = [IPv4Network(cluster.node_pods(node)) for cluster in CLUSTERS for node in NODES]
    assert len(set(networks)) == len(networks)
    assert not any(one.overlaps(other) for one, other in combinations(networks, 2))


def test_pod_ranges_are_in_the_range_of_their_cluster() -> None:
    for cluster in CLUSTERS:
        assert all(IPv4Network(cluster.node_pods(node)).subnet_of(IPv4Network(cluster.pods)) for node in NODES)


def test_each_machine_has_its_own_address() -> None:
    machines = [
        address
        for cluster in CLUSTERS
        for address in (cluster.control_plane, cluster.host, *(cluster.node(node) for node in NODES))
    ]
    assert len(set(machines)) == len(machines)


def test_all_addresses_are_in_the_range_for_benchmarks() -> None:
    benchmarks = IPv4Network("198.18.0.0/15")
    used = [addresses.SERVICES, *(cluster.pods for cluster in CLUSTERS), *(cluster.host for cluster in CLUSTERS)]
    assert all(IPv4Network(one).subnet_of(benchmarks) for one in used)


def test_service_range_does_not_overlap_with_machines() -> None:
    assert not any(IPv4Network(addresses.SERVICES).overlaps(IPv4Network(cluster.host)) for cluster in CLUSTERS)


def test_mac_address_is_derived_from_the_ip_address() -> None:
    assert Addresses(0).station("198.18.0.10") == "02:00:c6:12:00:0a"


def test_interface_name_is_not_too_long_for_the_kernel() -> None:
    assert all(len(cluster.interface) <= 15 for cluster in CLUSTERS)
