"""On nodes that enforce NetworkPolicies benchmarks run as ever, and strangers reach none of their ports."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.cluster import Cluster
from tests.e2e.benchmarks import SHORT_PREFLIGHT, Running, assert_nothing_left, broker, file_transfer, network
from tests.e2e.kubectl import Kubectl, KubectlError
from tests.e2e.operator_release import Release

AGENT, OPERATOR = 8090, 8080


@dataclass(frozen=True)
class Stranger:
    """A pod that belongs to nothing, in a namespace of its own."""

    kubectl: Kubectl

    def reaches(self, address: str, port: int) -> bool:
        """Whether a connection comes about."""
        connect = f"exec 3<>/dev/tcp/{address}/{port}"
        try:
            self.kubectl("exec", "stranger", "--", "timeout", "5", "bash", "-c", connect)
        except KubectlError:
            return False
        return True


@pytest.fixture(scope="module")
def enforced(cluster: Cluster) -> Iterator[None]:
    """kube-router on every node."""
    cluster.network_policies(True)
    yield
    cluster.network_policies(False)


@pytest.fixture
def stranger(environment: dict[str, str], kubectl: Kubectl) -> Iterator[Stranger]:
    """On the node of the benchmarks' clients."""
    elsewhere = kubectl.inside(f"{kubectl.namespace}-strange")
    elsewhere.create_namespace()
    container = {
        "name": "shell",
        "image": "ghcr.io/tierbench/nginx:dev",
        "imagePullPolicy": "Never",
        "command": ["sleep", "infinity"],
    }
    spec = {"nodeSelector": {"hw": "user"}, "containers": [container], "terminationGracePeriodSeconds": 0}
    elsewhere.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stranger"}, "spec": spec})
    elsewhere("wait", "pod", "stranger", "--for=condition=Ready", "--timeout=60s")
    yield Stranger(elsewhere)
    elsewhere("delete", "namespace", elsewhere.namespace, "--wait=false")


FILES = file_transfer("measured", access="NodePort", fileSizes=["64Mi"], repetitions=10)
BROKERS = broker("measured", access="ClusterIP", pacing={"messagesPerSecond": 20}, preflight=SHORT_PREFLIGHT)
NETWORKS = network("measured", access="PodIP", durationSeconds=3)
KINDS = pytest.mark.parametrize(
    ("kind", "given", "port"),
    [("filetransferbenchmark", FILES, 8080), ("brokerbenchmark", BROKERS, 1883), ("networkbenchmark", NETWORKS, 5201)],
)


@KINDS
@pytest.mark.usefixtures("enforced")
def test_a_benchmark_runs_and_strangers_reach_what_it_opens_alone(
    kubectl: Kubectl, release: Release, stranger: Stranger, kind: str, given: dict[str, Any], port: int
) -> None:
    kubectl.apply(given)
    running = Running(kubectl, "measured", kind)
    running.wait_for_trial()
    server = running.wait_for_pod("server")
    assert not stranger.reaches(server["status"]["podIP"], AGENT)
    if given["spec"]["access"] == "NodePort":
        service = kubectl.get("service", server["metadata"]["name"])
        assert stranger.reaches(server["status"]["hostIP"], service["spec"]["ports"][0]["nodePort"])
    else:
        assert not stranger.reaches(server["status"]["podIP"], port)
    operator = release.kubectl.get("pod", release.pod)
    assert stranger.reaches(operator["status"]["podIP"], OPERATOR)
    running.wait_for_phase("Complete")
    assert {result["status"]["phase"] for result in running.results} == {"Measured"}
    assert_nothing_left(running)
