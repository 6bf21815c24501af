"""Kafka that Strimzi deploys is compared with Mosquitto on a real cluster.

In the built-in cluster a stand-in replaces Strimzi's operator. With CLUSTER=current it is a real Strimzi.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cluster.volumes import CLASS
from tests.e2e.benchmarks import Running, assert_every_trial_once, broker
from tests.e2e.conftest import BUILT_IN
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.operator_release import Release
from tests.e2e.strike import strike
from tests.strimzi.crds import NEW, crds
from tests.strimzi.stand_in import StandIn, running

MOSQUITTO: dict[str, Any] = {"name": "mosquitto", "mosquitto": {}}
KINDS = "kafkas,kafkanodepools,kafkausers,kafkatopics"
SECONDS = 120 if BUILT_IN else 600
# Images of brokers have no pkill.
KILL = 'for each in /proc/[0-9]*; do if [ "$(cat "$each/comm")" = java ]; then kill -9 "${each#/proc/}"; fi; done; true'

pytestmark = [pytest.mark.privileged, pytest.mark.release]
built_in = pytest.mark.skipif(not BUILT_IN, reason="a real Strimzi is installed and watches")


def strimzi(**options: Any) -> dict[str, Any]:
    return {"name": "kafka", "kafka": {"provider": "Strimzi", **({"strimzi": options} if options else {})}}


def measure(kubectl: Kubectl, **spec: Any) -> Running:
    kubectl.apply(broker(**{"brokers": [strimzi()], "timeouts": {"firstMessageSeconds": SECONDS}, **spec}))
    return Running(kubectl, "brokers", "brokerbenchmark")


@pytest.fixture(scope="module")
def stand_in(environment: dict[str, str]) -> Iterator[StandIn | None]:
    """Installs Strimzi's definitions and a stand-in for its operator, or nothing if there is a real Strimzi."""
    kubectl = Kubectl(environment)
    if not BUILT_IN:
        kubectl("get", KINDS, "--all-namespaces")
        yield None
        return
    definitions = crds(NEW)
    kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(definitions))
    wait_for("Strimzi's kinds are served", lambda: kubectl("get", KINDS, "--all-namespaces", "--output=json"))
    with running(StandIn(environment["KUBECONFIG"], "v1")) as found:
        yield found
    kubectl("delete", *(f"crd/{crd['metadata']['name']}" for crd in definitions))


def assert_nothing_left(measured: Running) -> None:
    """Waits until Strimzi's objects, their pods and the benchmark's own objects are gone."""
    label = f"tierbench.io/benchmark={measured.name}"

    def gone() -> bool:
        return not any(measured.kubectl.list(kind, label) for kind in KINDS.split(","))

    wait_for(f"no object of Strimzi is left of {measured.name}", gone, SECONDS)
    wait_for(f"nothing is left of {measured.name}", lambda: not measured.leftovers(), SECONDS)


def kill(release: Release) -> None:
    release.kubectl("delete", "pod", release.pod, "--grace-period=0", "--force")


def broker_pod(measured: Running) -> dict[str, Any]:
    """Returns the broker's pod when it is ready."""
    name = wait_for("a broker", lambda: [name for name in _names(measured) if name.endswith("-0")], SECONDS)[0]
    measured.kubectl("wait", "--for=condition=Ready", f"pod/{name}", f"--timeout={SECONDS}s", timeout=SECONDS)
    return measured.kubectl.get("pod", name)


def helper_pod(measured: Running) -> dict[str, Any]:
    """Returns the pod of the topic and user operators when it has a node. Strimzi creates it after the broker."""

    def scheduled() -> dict[str, Any] | None:
        pods = [measured.kubectl.get("pod", name) for name in _names(measured) if "entity-operator" in name]
        return next((pod for pod in pods if "nodeName" in pod["spec"]), None)

    return wait_for("the pod of the topic and user operators has a node", scheduled, SECONDS)


def _names(measured: Running) -> list[str]:
    label = f"tierbench.io/benchmark={measured.name},tierbench.io/role=strimzi"
    return [pod["metadata"]["name"] for pod in measured.kubectl.list("pods", label)]


@built_in
def test_kafka_by_strimzi_fails_when_strimzi_is_not_installed(kubectl: Kubectl) -> None:
    measured = measure(kubectl)
    measured.wait_for_phase("Failed", seconds=SECONDS)
    assert measured.results[0]["status"]["reason"] == "StrimziNotFound"


def test_strimzi_and_mosquitto_are_measured_under_equal_conditions(
    kubectl: Kubectl, release: Release, stand_in: StandIn | None
) -> None:
    """Both brokers use TLS. The operator is killed while Strimzi's objects become ready."""
    brokers, order = [MOSQUITTO, strimzi()], {"passes": 1}
    measured = measure(kubectl, brokers=brokers, delivery=["ExactlyOnce"], tls=["TLSv1.3"], order=order)
    wait_for("a Kafka", lambda: kubectl.list("kafkas"), SECONDS)
    kill(release)
    node = broker_pod(measured)["spec"]["nodeName"]
    assert helper_pod(measured)["spec"]["nodeName"] not in _measured_nodes(measured)
    measured.wait_for_phase("Complete", seconds=SECONDS)
    assert_every_trial_once(measured, trials=2)
    results = measured.results
    assert [item["spec"]["levels"]["broker"] for item in results] == ["kafka", "mosquitto"]
    for item in results:
        assert item["spec"]["server"]["node"] == node
        messages = item["status"]["counts"]["messages"]
        assert (messages["received"], messages.get("lost", 0)) == (100, 0)
    settings = results[0]["spec"]["service"]["settings"]
    assert {"heap", "storage", "kafkaVersion", "strimziVersion"} <= set(settings)
    assert_nothing_left(measured)


def _measured_nodes(measured: Running) -> set[str]:
    assignments = measured.status["run"]["assignments"]
    return {node for assignment in assignments for node in assignment["nodes"]}


@pytest.mark.timing
def test_killed_broker_loses_no_acknowledged_message(
    kubectl: Kubectl, release: Release, stand_in: StandIn | None, request: pytest.FixtureRequest
) -> None:
    """The broker's process is killed during a trial, and its volume is kept. The operator is killed during cleanup."""
    messages = {"messagesPerPublisher": 400 if BUILT_IN else 6000}
    load = {"pacing": {"type": "OpenLoop", "messagesPerSecond": 100}, "load": messages, "repetitions": 1}
    volume = {"volumeClaimTemplate": {"storageClassName": CLASS, "size": "1Gi"}} if BUILT_IN else {}
    brokers, milliseconds = [strimzi(**volume)], SECONDS * 500
    measured = measure(
        kubectl, brokers=brokers, delivery=["AtLeastOnce"], timeouts={"deliveryMilliseconds": milliseconds}, **load
    )

    def kill_broker() -> None:
        kubectl("exec", broker_pod(measured)["metadata"]["name"], "--container=kafka", "--", "sh", "-c", KILL)

    def kill_operator() -> None:
        wait_for("the topic is deleted", lambda: not kubectl.list("kafkatopics"), SECONDS)
        kill(release)

    if BUILT_IN:
        strike(measured, request.getfixturevalue("cluster"), kill_broker, then=kill_operator, seconds=SECONDS)
    else:  # clients of other clusters cannot be stopped
        measured.wait_for_trial(seconds=SECONDS)
        kill_broker()
        kill_operator()
        measured.wait_for_phase("Complete", seconds=SECONDS)
    counts = measured.results[0]["status"]["counts"]["messages"]
    assert counts["reconnects"] >= 2
    assert counts["sent"] == counts["received"] + counts["lost"]
    assert counts["acknowledgedLost"] == 0
    assert_nothing_left(measured)


def test_each_broker_that_does_not_start_is_reported_and_the_next_one_is_tried(
    kubectl: Kubectl, stand_in: StandIn | None
) -> None:
    """Strimzi does not support one version, and one broker is killed because of its memory limit."""
    small = {"provider": "Strimzi", "heap": "96Mi", "strimzi": {"resources": {"limits": {"memory": "128Mi"}}}}
    measured = measure(kubectl, brokers=[strimzi(version="9.9.9"), {"name": "small", "kafka": small}])
    measured.wait_for_phase("Failed", seconds=SECONDS)
    unsupported, killed = (item["status"] for item in measured.results)
    assert (unsupported["reason"], killed["reason"]) == ("StrimziRefused", "OutOfMemory")
    assert "UnsupportedKafkaVersionException" in unsupported["message"]
    assert "9.9.9" in unsupported["message"]
    assert "container kafka" in killed["message"]
    assert_nothing_left(measured)


@built_in
def test_namespace_that_no_strimzi_operator_watches_is_reported(kubectl: Kubectl, stand_in: StandIn) -> None:
    stand_in.watching = False
    try:
        measured = measure(kubectl, timeouts={"schedulingSeconds": 5})
        measured.wait_for_phase("Failed", seconds=SECONDS)
    finally:
        stand_in.watching = True
    assert measured.results[0]["status"]["reason"] == "StrimziNotWatching"
    assert_nothing_left(measured)
