"""Where others say no: a tainted control plane, users that a platform assigns, namespaces that enforce a Pod Security
Standard. Every kind is measured there; what the standards refuse is in tests/api."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.benchmarks import Running, assert_nothing_left, broker, file_transfer, network
from tests.e2e.kubectl import Kubectl
from tests.e2e.operator_release import Release

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
USERS = {"operator": 1000650000, "workloads": 1000660000}  # as OpenShift's ranges of two namespaces begin
CLAIM = {"persistentVolumeClaim": {"storageClassName": "local-test"}}
BROKERS = [{"name": "mosquitto", "mosquitto": {}}, {"name": "kafka", "kafka": {}}]
PAHO = {"nodeClasses": ["user"], "engine": "Paho"}
JOURNEYS = {
    "files": ("restricted", file_transfer(storage={"emptyDir": {}}, access="NodePort", repetitions=1)),
    "files-on-a-claim": (
        "restricted",
        file_transfer(storage=CLAIM, access="ClusterIP", tls=["TLSv1.3"], repetitions=1),
    ),
    "brokers": ("restricted", broker(brokers=BROKERS, tls=["TLSv1.3"], repetitions=1)),
    "paho": ("restricted", broker(clients=PAHO, repetitions=1)),
    "network": ("restricted", network(repetitions=1)),
    "baseline": ("baseline", file_transfer(storage={"emptyDir": {}}, repetitions=1)),
    "files-of-the-node": ("privileged", file_transfer(repetitions=1)),
}


@pytest.fixture(scope="module")
def assigned(release: Release) -> Iterator[Release]:
    """The operator on a control plane that is tainted as kubeadm does it, all users as OpenShift would assign them."""
    (node,) = (item["metadata"]["name"] for item in release.kubectl.list("nodes", "hw=user"))
    users = [f"{who}.user={user}" for who, user in USERS.items()]
    release.kubectl("label", "node", node, f"{CONTROL_PLANE}=")
    release.kubectl("taint", "node", node, f"{CONTROL_PLANE}:NoSchedule")
    try:
        release.install("operator.nodeSelector." + CONTROL_PLANE.replace(".", r"\.") + "=", *users)
    finally:
        release.kubectl("taint", "node", node, f"{CONTROL_PLANE}-")
        release.kubectl("label", "node", node, f"{CONTROL_PLANE}-")
    yield release
    release.install()


@pytest.mark.parametrize("journey", JOURNEYS)
def test_it_is_measured(assigned: Release, kubectl: Kubectl, journey: str) -> None:
    level, asked = JOURNEYS[journey]
    kubectl("label", "namespace", kubectl.namespace, f"pod-security.kubernetes.io/enforce={level}")
    kubectl.apply(asked)
    running = Running(kubectl, asked["metadata"]["name"], asked["kind"].lower())
    assert _user(running.wait_for_pod("server", running=False)) == USERS["workloads"]
    running.wait_for_phase("Complete")
    for result in running.results:
        status = result["status"]
        assert (status["phase"], status["counts"]["completed"]) == ("Measured", 1), status
    assert_nothing_left(running)


def test_the_operator_is_another_user(assigned: Release) -> None:
    assert _user(assigned.kubectl.get("pod", assigned.pod)) == USERS["operator"]


def _user(pod: dict[str, Any]) -> int:
    user: int = pod["spec"]["securityContext"]["runAsUser"]
    return user
