"""Networks on a real cluster: the shaped rate is found, both protocols go both ways, and what is blocked says so."""

import subprocess
from typing import Any

import pytest

from tests.cluster import Cluster
from tests.cluster.profiles import Node
from tests.e2e.benchmarks import Running, assert_nothing_left, network
from tests.e2e.kubectl import Kubectl

# Of a 1500-byte packet in an Ethernet frame: without IPv4, TCP and timestamps.
PAYLOAD_SHARE = 1448 / 1514
UDP_BITS = 20_000_000


def run(kubectl: Kubectl, **spec: Any) -> list[dict[str, Any]]:
    """Results of a benchmark that ran to its end."""
    kubectl.apply(network(**spec))
    running = Running(kubectl, "networks", "networkbenchmark")
    running.wait_for_phase("Complete", "Failed", seconds=120)
    assert_nothing_left(running)
    return running.results


def mean(result: dict[str, Any], quantity: str) -> float:
    return float(result["status"]["statistics"][quantity]["mean"])


def shaped_bits(profile: Node) -> float:
    assert profile.link is not None
    return float(profile.link.removesuffix("mbit")) * 1e6


def test_tcp_finds_the_rate_of_the_link_each_way(kubectl: Kubectl, cluster: Cluster) -> None:
    results = run(kubectl, durationSeconds=3, streams=[1, 4], repetitions=3, trim={"lowest": 1, "highest": 1})
    assert len(results) == 4
    payload = shaped_bits(cluster.node("cloud-1").profile) * PAYLOAD_SHARE
    for result in results:
        status = result["status"]
        assert mean(result, "throughputBitsPerSecond") == pytest.approx(payload, rel=0.02), status
        assert status["statistics"]["throughputBitsPerSecond"]["count"] == 1
        assert status["untrimmed"]["throughputBitsPerSecond"]["count"] == 3
        assert status["distributions"]["ping"]["count"] == 15
        assert 0 < mean(result, "pingMinimumNanoseconds") <= mean(result, "pingNanoseconds") < 50_000_000
        assert mean(result, "pingLostPartsPerMillion") == 0
        trial = status["trials"][0]
        (flow,) = (trial["network"][way] for way in ("upload", "download") if way in trial["network"])
        assert ("upload" in trial["network"]) == (result["spec"]["levels"]["direction"] == "Upload")
        assert flow["receivedBytes"] <= flow["sentBytes"]
        assert trial["server"]["processCpuNanoseconds"] > 0


def test_udp_and_both_ways_at_once(kubectl: Kubectl) -> None:
    protocols, directions = ["TCP", "UDP"], ["Upload", "Download", "Both"]
    access = {"access": "NodePort", "udp": {"kilobitsPerSecond": UDP_BITS // 1000}}
    for result in run(kubectl, protocols=protocols, directions=directions, **access):
        levels = result["spec"]["levels"]
        both = 2 if levels["direction"] == "Both" else 1
        assert result["status"]["phase"] == "Measured", result["status"]
        assert ("uploadBitsPerSecond" in result["status"]["statistics"]) == (both == 2)
        if levels["protocol"] == "UDP":
            assert mean(result, "throughputBitsPerSecond") == pytest.approx(both * UDP_BITS, rel=0.02)
            assert mean(result, "lostPartsPerMillion") == 0
            assert mean(result, "jitterNanoseconds") > 0


def test_udp_that_is_blocked_fails_its_cases_and_no_other(kubectl: Kubectl, cluster: Cluster) -> None:
    rule = ["FORWARD", "-p", "udp", "--dport", "5201", "-j", "REJECT"]
    node = cluster.node("cloud-1").machine
    subprocess.run(node.inside("iptables", "-I", *rule), check=True)
    try:
        spec = {"protocols": ["TCP", "UDP"], "directions": ["Upload"], "udp": {"kilobitsPerSecond": 1000}}
        tcp, udp = run(kubectl, repetitions=1, **spec)
    finally:
        subprocess.run(node.inside("iptables", "-D", *rule), check=True)
    assert tcp["status"]["phase"] == "Measured"
    assert (udp["status"]["phase"], udp["status"]["reason"]) == ("Failed", "UDPBlocked")
