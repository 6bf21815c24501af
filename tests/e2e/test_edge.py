"""Nodes as edge clusters have them: without kube-proxy, so that no address of a Service leads anywhere."""

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cluster import Cluster
from tests.e2e.benchmarks import (
    SHORT_PREFLIGHT,
    Running,
    assert_nothing_left,
    broker,
    file_transfer,
    network,
)
from tests.e2e.kubectl import Kubectl, wait_for

PROXY = "kube-proxy"
NODES = {"servers": {"nodeClassNames": ["cloud"]}, "clients": {"nodeClassNames": ["jetson-nano"]}}
BENCHMARKS: Mapping[str, dict[str, Any]] = {
    "filetransferbenchmark": file_transfer("edge", **NODES, preflight=SHORT_PREFLIGHT, access="HostNetwork"),
    "brokerbenchmark": broker("edge", **NODES, preflight=SHORT_PREFLIGHT, access="HostNetwork", repetitions=3),
    "networkbenchmark": network("edge", **NODES, access="HostNetwork", repetitions=3),
}
CONNECT = "if (exec 3<>/dev/tcp/{host}/443) 2>/dev/null; then echo open; else echo closed; fi"


@contextmanager
def without_services(cluster: Cluster, *names: str) -> Iterator[None]:
    """In the context these nodes have no kube-proxy, and none of its rules."""
    nodes = [cluster.node(name) for name in names]

    def have_proxies() -> list[bool]:
        return [bool(node.machine.daemon(PROXY)) for node in nodes]

    def have_rules() -> list[bool]:
        rules = (node.machine.output("iptables", "--table", "nat", "--list-rules", "KUBE-SERVICES") for node in nodes)
        return ["\n-A " in found for found in rules]

    for node in nodes:
        node.machine.signal(PROXY, signal.SIGTERM)
    wait_for(f"{PROXY} has ended", lambda: not any(have_proxies()))
    try:
        for node in nodes:
            node.machine.run("iptables", "--table", "nat", "--flush", "KUBE-SERVICES")
        yield
    finally:
        for node in nodes:
            node.start(PROXY)
        wait_for("the Services have addresses again", lambda: all(have_rules()))


@pytest.mark.privileged
@pytest.mark.release
@pytest.mark.parametrize("kind", BENCHMARKS)
def test_nodes_without_services_and_dns_measure_in_their_own_network(
    kubectl: Kubectl, cluster: Cluster, kind: str
) -> None:
    with without_services(cluster, "cloud-1", "jetson-1"):
        service = kubectl.inside("default").get("service", "kubernetes")["spec"]["clusterIP"]
        for name in ("cloud-1", "jetson-1"):
            reach = ("timeout", "5", "bash", "-c", CONNECT.format(host=service) + "; true")
            assert "open" not in cluster.node(name).machine.output("sh", "-c", '"$@" || true', "sh", *reach)
        kubectl.apply(BENCHMARKS[kind])
        running = Running(kubectl, "edge", kind)
        assert running.wait_for_pod("client")["spec"]["hostNetwork"]
        running.wait_for_phase("Complete")
        assert {result["status"]["counts"]["completed"] for result in running.results} == {3}
        networks = running.results[0]["spec"].get("networks", [])
        assert all(one[way]["bitsPerSecond"] > 0 for one in networks for way in ("upload", "download"))
        assert_nothing_left(running)
