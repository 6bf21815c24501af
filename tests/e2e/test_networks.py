"""On a real cluster, networks are measured with both protocols in all directions. Blocked protocols are reported."""

import os
import signal
import subprocess
from typing import Any

import pytest

from images.naming import reference
from tests.cluster import Cluster
from tests.e2e.benchmarks import Running, assert_nothing_left, network
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.operator_release import pids
from tests.e2e.strike import strike
from tierbench.workloads.pods import RESTRICTED, pod_security

# The share of a 1500-byte packet in an Ethernet frame without IPv4, TCP and timestamps.
PAYLOAD_SHARE = 1448 / 1514
UDP_BITS = 20_000_000


def run(kubectl: Kubectl, **spec: Any) -> list[dict[str, Any]]:
    """Measures a benchmark, and returns its results."""
    kubectl.apply(network(**spec))
    running = Running(kubectl, "networks", "networkbenchmark")
    running.wait_for_phase("Complete", "Failed", seconds=120)
    assert_nothing_left(running)
    return running.results


def mean(result: dict[str, Any], quantity: str) -> float:
    return float(result["status"]["statistics"][quantity]["mean"])


def test_tcp_and_udp_are_measured_in_each_direction(kubectl: Kubectl) -> None:
    """Every trial has the expected fields. One NodePort serves both protocols."""
    spec = {"protocols": ["TCP", "UDP"], "streams": [2], "udp": {"kilobitsPerSecond": 1000}, "repetitions": 3}
    results = run(kubectl, access="NodePort", trim={"lowest": 1, "highest": 1}, **spec)
    levels = [(result["spec"]["levels"]["protocol"], result["spec"]["levels"]["direction"]) for result in results]
    assert levels == [(protocol, way) for protocol in ("TCP", "UDP") for way in ("Upload", "Download")]
    for (protocol, way), result in zip(levels, results, strict=True):
        status = result["status"]
        assert status["phase"] == "Complete", status
        assert status["statistics"]["throughputBitsPerSecond"]["count"] == 1
        assert status["untrimmed"]["throughputBitsPerSecond"]["count"] == 3
        assert status["distributions"]["ping"]["count"] == 15
        assert 0 < mean(result, "pingMinNanoseconds") <= mean(result, "pingNanoseconds")
        assert mean(result, "pingLostPartsPerMillion") == 0
        trial = status["trials"][0]
        (flow,) = (trial["network"][one] for one in ("upload", "download") if one in trial["network"])
        assert way.lower() in trial["network"]
        assert trial["server"]["processCpuNanoseconds"] > 0
        if protocol == "UDP":
            assert flow["packets"] > flow.get("lostPackets", 0)
            continue
        assert 0 < flow["receivedBytes"] <= flow["sentBytes"]
        assert sum(flow["tcp"]["statesPartsPerMillion"].values()) == pytest.approx(1e6, abs=10)
        record = kubectl.get("benchmarkrecord", result["metadata"]["name"])
        side = "Client" if way == "Upload" else "Server"
        assert [(one["trial"], one["side"]) for one in record["status"]["traces"]] == [(1, side), (2, side), (3, side)]


@pytest.mark.measures
def test_tcp_measures_the_rate_of_the_link_in_each_direction(kubectl: Kubectl, cluster: Cluster) -> None:
    with cluster.link("cloud-1", "100mbit"):
        results = run(kubectl, access="NodePort", durationSeconds=2, streams=[4], repetitions=1)
    assert len(results) == 2
    for result in results:
        share = mean(result, "throughputBitsPerSecond") / (100e6 * PAYLOAD_SHARE)
        assert 0.85 < share < 1.02, result["status"]
        assert mean(result, "pingNanoseconds") < 50_000_000
        (trial,) = result["status"]["trials"]
        (flow,) = (trial["network"][way] for way in ("upload", "download") if way in trial["network"])
        assert flow["tcp"]["samples"] >= 4 * 15


@pytest.mark.release
def test_an_external_server_is_measured_without_an_agent(kubectl: Kubectl) -> None:
    """The test starts the server. Every kernel allows reno."""
    pod = {
        "nodeSelector": {"hw": "cloud"},
        "containers": [
            {
                "name": "iperf3",
                "image": reference("network"),
                "imagePullPolicy": "Never",
                "command": ["iperf3", "--server"],
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
                "securityContext": RESTRICTED,
            }
        ],
        "securityContext": pod_security(65532),
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory"}}],
        "terminationGracePeriodSeconds": 1,
    }
    kubectl.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "outside"}, "spec": pod})
    address = wait_for("iperf3 runs", lambda: running_at(kubectl.get("pod", "outside")), 90)
    outside = {"external": {"address": f"{address}:5201"}}
    results = run(kubectl, servers=outside, tcp={"congestionControl": ["reno"]})
    assert [result["spec"]["levels"]["direction"] for result in results] == ["Upload", "Download"]
    for result in results:
        status = result["status"]
        assert (result["spec"]["server"]["nodeClass"], result["spec"]["server"].get("node", "")) == ("external", "")
        assert status["phase"] == "Complete", status
        assert "ServerNotObserved" not in [note["reason"] for note in status["invalid"]]
        assert mean(result, "sentBitsPerSecond") > 0.9 * mean(result, "throughputBitsPerSecond") > 0
        assert mean(result, "pingNanoseconds") > 0
        for trial in status["trials"]:
            assert "server" not in trial
            assert trial["client"]["computer"]["congestionControl"] == "reno"


def running_at(pod: dict[str, Any]) -> str:
    """Returns the address of a running pod, or an empty string."""
    status = pod["status"]
    return str(status.get("podIP", "")) if status.get("phase") == "Running" else ""


@pytest.mark.measures
@pytest.mark.release
def test_udp_is_measured_in_both_directions_at_once_by_node_port(kubectl: Kubectl) -> None:
    spec = {"protocols": ["UDP"], "directions": ["Bidirectional"], "udp": {"kilobitsPerSecond": UDP_BITS // 1000}}
    (result,) = run(kubectl, access="NodePort", **spec)
    assert result["status"]["phase"] == "Complete", result["status"]
    for trial in result["status"]["trials"]:
        for flow in (trial["network"]["upload"], trial["network"]["download"]):
            arrived = 1 - flow.get("lostPackets", 0) / flow["packets"]
            assert flow["bitsPerSecond"] == pytest.approx(UDP_BITS * arrived, rel=0.05)
    both = mean(result, "uploadBitsPerSecond") + mean(result, "downloadBitsPerSecond")
    assert mean(result, "throughputBitsPerSecond") == pytest.approx(both, rel=0.01)
    assert mean(result, "jitterNanoseconds") > 0


@pytest.mark.release
def test_blocked_udp_fails_only_its_cases(kubectl: Kubectl, cluster: Cluster) -> None:
    rule = ["ipproto", "udp", "dport", "5201", "unreachable"]
    machine = cluster.node("cloud-1").machine
    machine.run("ip", "rule", "add", *rule)
    try:
        spec = {"protocols": ["TCP", "UDP"], "directions": ["Upload"], "udp": {"kilobitsPerSecond": 1000}}
        tcp, udp = run(kubectl, repetitions=1, **spec)
    finally:
        machine.run("ip", "rule", "delete", *rule)
    assert tcp["status"]["phase"] == "Complete"
    assert (udp["status"]["phase"], udp["status"]["reason"]) == ("Failed", "UDPBlocked")


@pytest.mark.release
@pytest.mark.timing
def test_forbidden_ping_is_reported_with_what_to_do(kubectl: Kubectl, cluster: Cluster) -> None:
    """The client's network namespace forbids ping after the echo requests of the first trial."""
    kubectl.apply(network(directions=["Upload"], durationSeconds=5))
    running = Running(kubectl, "networks", "networkbenchmark")

    def forbid() -> None:
        pod = running.wait_for_pod("client")["metadata"]["name"]
        (pid, *_) = pids(cluster, kubectl.namespace, pod, "tierbench-client")
        sysctl = ["sysctl", "-q", "-w", "net.ipv4.ping_group_range=1 0"]
        subprocess.run(["nsenter", f"--target={pid}", "--net", *sysctl], check=True)

    strike(running, cluster, forbid)
    (result,) = running.results
    assert [trial["trial"] for trial in result["status"]["trials"]] == [1]
    assert [note["reason"] for note in result["status"]["invalid"]] == ["TrialsMissing"]
    running.wait_for_description("PingNotPermitted", "allow the sysctl net.ipv4.ping_group_range")


def simultaneous(**spec: Any) -> dict[str, Any]:
    """Returns the spec of a benchmark with two simultaneous clients on different nodes."""
    clients = {"nodeClassNames": ["cloud", "jetson-nano"], "modes": ["Simultaneous"]}
    return {"servers": {"nodeClassNames": ["user"]}, "clients": clients, "directions": ["Upload"], **spec}


@pytest.mark.release
def test_clients_are_measured_alone_and_simultaneously(kubectl: Kubectl, cluster: Cluster) -> None:
    """Results name their clients. The client on the faster link gets more while both measure."""
    spec = simultaneous(repetitions=1)
    spec["clients"]["modes"] = ["Alone", "Simultaneous"]
    with cluster.link("cloud-1", "10mbit"), cluster.link("jetson-1", "100mbit"):
        results = run(kubectl, **spec)
    assert all(result["status"]["phase"] == "Complete" for result in results), results
    measured = {tuple(client["node"] for client in clients(result)): result for result in results}
    assert measured.keys() == {("cloud-1",), ("jetson-1",), ("cloud-1", "jetson-1")}
    both = measured["cloud-1", "jetson-1"]
    slow, fast = (mean(both, f"client{number}BitsPerSecond") for number in (1, 2))
    assert 0 < slow < fast
    assert all(trial["network"]["overlapPartsPerMillion"] > 0 for trial in both["status"]["trials"])
    assert mean(both, "fairnessPartsPerMillion") < 1_000_000


def clients(result: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = result["spec"].get("clients") or [result["spec"]["client"]]
    return found


@pytest.mark.measures
@pytest.mark.release
def test_simultaneous_clients_fill_their_links(kubectl: Kubectl, cluster: Cluster) -> None:
    with cluster.link("cloud-1", "50mbit"), cluster.link("jetson-1", "100mbit"):
        (result,) = run(kubectl, **simultaneous(durationSeconds=6))
    status = result["status"]
    for client, link in ((1, 50e6), (2, 100e6)):
        assert mean(result, f"client{client}BitsPerSecond") == pytest.approx(link * PAYLOAD_SHARE, rel=0.03)
    assert mean(result, "throughputBitsPerSecond") == pytest.approx(150e6 * PAYLOAD_SHARE, rel=0.03)
    assert mean(result, "fairnessPartsPerMillion") == pytest.approx(900_000, rel=0.01)
    assert all(trial["network"]["overlapPartsPerMillion"] >= 950_000 for trial in status["trials"]), status["trials"]
    (fact,) = [fact for fact in status["facts"] if fact["reason"] == "UnevenShares"]
    assert "jetson-1" in fact["message"]


@pytest.mark.measures
@pytest.mark.release
def test_clients_fill_their_links_alone_and_share_the_servers_link(kubectl: Kubectl, cluster: Cluster) -> None:
    spec = simultaneous(durationSeconds=2, repetitions=1)
    spec["clients"]["modes"] = ["Alone", "Simultaneous"]
    with cluster.link("user-1", "60mbit"), cluster.link("cloud-1", "50mbit"), cluster.link("jetson-1", "50mbit"):
        results = run(kubectl, **spec)
    assert len(results) == 3
    for result in results:
        rate = 50e6 if len(clients(result)) == 1 else 60e6
        assert mean(result, "throughputBitsPerSecond") == pytest.approx(rate * PAYLOAD_SHARE, rel=0.08)


@pytest.mark.timing
def test_a_killed_client_does_not_affect_the_other_one(kubectl: Kubectl, cluster: Cluster) -> None:
    kubectl.apply(network(**simultaneous(durationSeconds=4)))
    running = Running(kubectl, "networks", "networkbenchmark")

    def kill_second() -> None:
        (pod,) = kubectl.list("pods", "tierbench.io/role=client,tierbench.io/part=1")
        for pid in pids(cluster, kubectl.namespace, pod["metadata"]["name"], "tierbench-client"):
            os.kill(pid, signal.SIGKILL)

    strike(running, cluster, kill_second)
    (result,) = running.results
    failed, completed = result["status"]["trials"]
    assert (failed["outcome"], failed["failure"]["reason"]) == ("Failed", "ClientLost")
    kept, lost = failed["network"]["shares"]
    assert kept["bitsPerSecond"] > 0
    assert lost["failure"]["reason"] == "ClientLost"
    assert (completed["outcome"], len(completed["network"]["shares"])) == ("Completed", 2)
    description = running.wait_for_description("A new client continues with trial 2")
    assert description.count("A new client continues with trial 2") == 1, description
    assert result["status"]["counts"]["interruptions"] == 1
    assert_nothing_left(running)
