"""Cases fail with a reason when the broker is unreachable, broken or killed. The counts are consistent."""

import base64
import os
import signal
from typing import Any

import pytest

from tests.cluster import Cluster
from tests.cluster.processes import Process
from tests.e2e.benchmarks import Running, assert_nothing_left, broker
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.operator_release import pids
from tests.e2e.strike import kill_pod, strike

DELIVERY_TIMEOUT = {"deliveryMilliseconds": 5000}
LONG: dict[str, Any] = {
    "pacing": {"type": "OpenLoop", "messagesPerSecond": 100},
    "load": {"messagesPerPublisher": 400},
    "timeouts": {"deliveryMilliseconds": 60_000},
    "repetitions": 1,
}


def measure(kubectl: Kubectl, name: str = "brokers", **spec: Any) -> Running:
    kubectl.apply(broker(name, **spec))
    return Running(kubectl, name, "brokerbenchmark")


def end_broker(running: Running, cluster: Cluster, number: signal.Signals) -> None:
    """Sends the broker a signal that ends it."""
    pod = running.wait_for_pod("server")["metadata"]["name"]
    found = map(Process, pids(cluster, running.kubectl.namespace, pod, "mosquitto"))
    (process,) = (process for process in found if process.name == "mosquitto")
    os.kill(process.pid, number)
    wait_for("the broker ends", lambda: not process.alive)


@pytest.mark.timing
@pytest.mark.parametrize("delivery", ["AtLeastOnce", pytest.param("ExactlyOnce", marks=pytest.mark.release)])
def test_stopped_broker_with_a_volume_loses_nothing(kubectl: Kubectl, cluster: Cluster, delivery: str) -> None:
    running = measure(kubectl, brokers=[_persistent()], delivery=[delivery], **LONG)
    strike(running, cluster, lambda: end_broker(running, cluster, signal.SIGTERM))
    status = running.results[0]["status"]
    assert status["phase"] == "Complete", status
    assert status["counts"]["messages"]["lost"] == 0, status["counts"]
    assert status["counts"]["messages"]["reconnects"] >= 2
    assert_nothing_left(running)


def _persistent() -> dict[str, Any]:
    return {"name": "mosquitto", "mosquitto": {"persistence": True}}


@pytest.mark.release
@pytest.mark.timing
def test_messages_lost_by_a_killed_broker_are_counted(kubectl: Kubectl, cluster: Cluster) -> None:
    """The broker has no volume. A result with lost messages is not valid."""
    full_speed = {"pacing": {"type": "AsFastAsPossible"}, "load": {"messagesPerPublisher": 20_000}}
    running = measure(kubectl, delivery=["AtLeastOnce"], **{**LONG, **full_speed, "timeouts": DELIVERY_TIMEOUT})
    strike(running, cluster, lambda: end_broker(running, cluster, signal.SIGKILL), phases=("Complete", "Failed"))
    counts = running.results[0]["status"]["counts"]["messages"]
    assert counts["sent"] == counts["received"] + counts["lost"]
    assert counts["acknowledgedLost"] <= counts["lost"]
    if counts["lost"]:
        assert running.results[0]["status"]["valid"] is False
    assert_nothing_left(running)


@pytest.mark.timing
def test_trial_of_a_killed_client_pod_is_repeated(kubectl: Kubectl, cluster: Cluster) -> None:
    pods: dict[str, Any] = {"clients": {"nodeClassNames": ["user"], "pods": 2}, "pairs": [2]}
    running = measure(kubectl, **pods, **{**LONG, "load": {"messagesPerPublisher": 200}, "repetitions": 2})
    strike(running, cluster, lambda: kill_pod(running, cluster, "client"), trial=2)
    status = running.results[0]["status"]
    assert [trial["trial"] for trial in status["trials"]] == [1, 2]
    assert status["counts"]["interruptions"] == 1
    assert "Resumed" in [fact["reason"] for fact in status["facts"]]
    assert_nothing_left(running)


@pytest.mark.release
def test_payload_above_the_brokers_limit_fails_only_its_case(kubectl: Kubectl) -> None:
    small = {"name": "mosquitto", "mosquitto": {"messageSizeLimit": 5000}}
    running = measure(kubectl, brokers=[small], payload={"sizes": ["1Ki", "10Ki"]}, timeouts=DELIVERY_TIMEOUT)
    running.wait_for_phase("Complete", seconds=120)
    outcomes = {item["spec"]["levels"]["payloadSize"]: item["status"].get("reason", "") for item in running.results}
    assert outcomes == {"1Ki": "", "10Ki": "PayloadNotDelivered"}
    assert_nothing_left(running)


@pytest.mark.release
def test_unreachable_broker_fails_with_the_reason(kubectl: Kubectl) -> None:
    assert _reason(kubectl, {"address": "198.18.0.1:1"}, timeouts={"firstMessageSeconds": 5}) == "BrokerUnreachable"


@pytest.mark.release
def test_external_broker_needs_the_right_password(kubectl: Kubectl, cluster: Cluster) -> None:
    """The Mosquitto of one benchmark is external to two others. One of them has a wrong password."""
    forever = {**LONG, "load": {"durationSeconds": 3600}}
    host = measure(kubectl, "host", **forever, tls=["TLSv1.3"], access="NodePort")
    pod = host.wait_for_pod("server")
    host.wait_for_pod("client")
    mounted = next(volume["secret"] for volume in pod["spec"]["volumes"] if "secret" in volume)
    secret = kubectl.get("secret", mounted["secretName"])["data"]
    data = {key: base64.b64decode(secret[key]).decode() for key in ("username", "password", "ca.crt")}
    ports = {one["port"]: one["nodePort"] for one in kubectl.get("service", pod["metadata"]["name"])["spec"]["ports"]}
    address = f"{pod['status']['hostIP']}:{ports[1883]}"
    _secret(kubectl, "right", data)
    _secret(kubectl, "wrong", {**data, "password": "wrong"})
    assert _is_measured(kubectl, {"address": address, "secretRef": {"name": "right"}})
    assert _reason(kubectl, {"address": address, "secretRef": {"name": "wrong"}}) == "CredentialsRefused"


def _secret(kubectl: Kubectl, name: str, data: dict[str, str]) -> None:
    kubectl.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data})


def _is_measured(kubectl: Kubectl, external: dict[str, Any]) -> bool:
    running = _measure_external(kubectl, "good", external)
    running.wait_for_phase("Complete")
    return bool(running.results[0]["status"]["counts"]["messages"]["received"] == 100)


def _reason(kubectl: Kubectl, external: dict[str, Any], **spec: Any) -> str:
    running = _measure_external(kubectl, "refused", external, **spec)
    running.wait_for_phase("Failed", seconds=150)
    assert_nothing_left(running)
    reason: str = running.results[0]["status"]["reason"]
    return reason


def _measure_external(kubectl: Kubectl, name: str, external: dict[str, Any], **spec: Any) -> Running:
    """Starts a benchmark of an external broker, with clients on a node that no other benchmark holds."""
    brokers, clients = [{"name": "site", "external": external}], {"nodeClassNames": ["jetson-nano"]}
    return measure(
        kubectl,
        name,
        **{"brokers": brokers, "servers": None, "clients": clients, "timeouts": {"firstMessageSeconds": 120}, **spec},
    )
