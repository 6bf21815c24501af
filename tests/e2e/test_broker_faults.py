"""Brokers that are refused, broken or killed: a reason each, and counts that still reconcile."""

import base64
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import Cluster
from tests.e2e.benchmarks import Running, assert_nothing_left, broker
from tests.e2e.kubectl import Kubectl
from tests.e2e.load import network_of, wait_for_load
from tests.e2e.operator_release import pids

LONG: dict[str, Any] = {
    "pacing": {"messagesPerSecond": 100},
    "load": {"durationSeconds": 12},
    "patienceMilliseconds": 5000,
    "repetitions": 1,
}


def measure(kubectl: Kubectl, name: str = "brokers", **spec: Any) -> Running:
    kubectl.apply(broker(name, **spec))
    return Running(kubectl, name, "brokerbenchmark")


def kill_broker(running: Running, cluster: Cluster, number: signal.Signals) -> None:
    """Once messages are under way."""
    pod = running.wait_for_pod("server")["metadata"]["name"]
    running.wait_for_trial()
    namespace = running.kubectl.namespace
    (pid,) = (pid for pid in pids(cluster, namespace, pod, "mosquitto") if _name(pid) == "mosquitto")
    wait_for_load(network_of(pid))
    os.kill(pid, number)


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


@pytest.mark.parametrize("delivery", ["AtLeastOnce", "ExactlyOnce"])
def test_stopped_broker_that_keeps_its_volume_loses_nothing(kubectl: Kubectl, cluster: Cluster, delivery: str) -> None:
    running = measure(kubectl, brokers=[_persistent()], delivery=[delivery], **LONG)
    kill_broker(running, cluster, signal.SIGTERM)
    running.wait_for_phase("Complete", seconds=120)
    status = running.results[0]["status"]
    assert status["phase"] == "Measured", status
    assert status["counts"]["messages"]["lost"] == 0, status["counts"]
    assert status["counts"]["messages"]["reconnects"] >= 2
    assert_nothing_left(running)


def _persistent() -> dict[str, Any]:
    return {"name": "mosquitto", "mosquitto": {"persistence": True}}


def test_killed_broker_without_a_memory(kubectl: Kubectl, cluster: Cluster) -> None:
    """What it had taken and lost is counted, and nothing is called valid that lost messages."""
    running = measure(kubectl, delivery=["AtLeastOnce"], **{**LONG, "pacing": {"asFastAsPossible": {}}})
    kill_broker(running, cluster, signal.SIGKILL)
    running.wait_for_phase("Complete", "Failed", seconds=120)
    counts = running.results[0]["status"]["counts"]["messages"]
    assert counts["sent"] == counts["received"] + counts["lost"]
    assert counts["acknowledgedLost"] <= counts["lost"]
    if counts["lost"]:
        assert running.results[0]["status"]["valid"] is False
    assert_nothing_left(running)


def test_client_pod_killed_repeats_the_trial(kubectl: Kubectl) -> None:
    running = measure(kubectl, clients={"nodeClasses": ["user"], "pods": 2}, pairs=[2], **{**LONG, "repetitions": 2})
    pod = running.wait_for_pod("client")["metadata"]["name"]
    running.wait_for_trial(2)
    kubectl("delete", "pod", pod, "--grace-period=0", "--force")
    running.wait_for_phase("Complete", seconds=180)
    status = running.results[0]["status"]
    assert [trial["trial"] for trial in status["trials"]] == [1, 2]
    assert status["counts"]["interruptions"] == 1
    assert "Resumed" in [fact["reason"] for fact in status["facts"]]
    assert_nothing_left(running)


def test_payload_larger_than_the_broker_takes(kubectl: Kubectl) -> None:
    """One case fails with the reason, the other is measured."""
    small = {"name": "mosquitto", "mosquitto": {"messageSizeLimit": 5000}}
    running = measure(kubectl, brokers=[small], payload={"sizes": ["1Ki", "10Ki"]}, patienceMilliseconds=1000)
    running.wait_for_phase("Complete", seconds=120)
    outcomes = {item["spec"]["levels"]["payloadSize"]: item["status"].get("reason", "") for item in running.results}
    assert outcomes == {"1Ki": "", "10Ki": "PayloadNotDelivered"}
    assert_nothing_left(running)


def test_unreachable(kubectl: Kubectl) -> None:
    assert _refused(kubectl, {"address": "198.18.0.1:1"}) == "BrokerUnreachable"


def test_external_broker(kubectl: Kubectl, cluster: Cluster) -> None:
    """A Mosquitto that one benchmark deployed is external to others, who have its account or a wrong one."""
    host = measure(kubectl, "host", **{**LONG, "load": {"durationSeconds": 600}}, tls=["TLSv1.3"], access="PodIP")
    pod = host.wait_for_pod("server")
    host.wait_for_pod("client")
    mounted = next(volume["secret"] for volume in pod["spec"]["volumes"] if "secret" in volume)
    secret = kubectl.get("secret", mounted["secretName"])["data"]
    data = {key: base64.b64decode(secret[key]).decode() for key in ("username", "password", "ca.crt")}
    address = f"{pod['status']['podIP']}:1883"
    _secret(kubectl, "right", data)
    _secret(kubectl, "wrong", {**data, "password": "wrong"})
    assert _measured_elsewhere(kubectl, cluster, {"address": address, "secretRef": {"name": "right"}})
    assert _refused(kubectl, {"address": address, "secretRef": {"name": "wrong"}}) == "CredentialsRefused"


def _secret(kubectl: Kubectl, name: str, data: dict[str, str]) -> None:
    kubectl.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data})


def _measured_elsewhere(kubectl: Kubectl, cluster: Cluster, external: dict[str, Any]) -> bool:
    running = _external(kubectl, "good", external)
    running.wait_for_phase("Complete", seconds=120)
    return bool(running.results[0]["status"]["counts"]["messages"]["received"] == 100)


def _refused(kubectl: Kubectl, external: dict[str, Any]) -> str:
    running = _external(kubectl, "refused", external)
    running.wait_for_phase("Failed", seconds=150)
    assert_nothing_left(running)
    reason: str = running.results[0]["status"]["reason"]
    return reason


def _external(kubectl: Kubectl, name: str, external: dict[str, Any]) -> Running:
    """On a node that no other benchmark holds."""
    return measure(
        kubectl,
        name,
        brokers=[{"name": "site", "external": external}],
        servers=None,
        clients={"nodeClasses": ["jetson-nano"]},
        readySeconds=5,
    )
