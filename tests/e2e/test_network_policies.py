"""Foreign pods reach none of the ports that a benchmark opens for its own pods."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from images.naming import reference
from tests.cluster import Cluster
from tests.cluster.errors import ClusterError
from tests.cluster.processes import run
from tests.e2e.benchmarks import Running, assert_nothing_left, broker, file_transfer, network
from tests.e2e.kubectl import Kubectl, KubectlError, wait_for
from tests.e2e.operator_release import Release, pids
from tests.e2e.strike import strike
from tests.timeouts import TIMEOUT_FACTOR

AGENT, OPERATOR = 8090, 8080
CONNECT = "exec 3<>/dev/tcp/{address}/{port}"
LIMIT = ("timeout", "60", "bash", "-c")


@dataclass(frozen=True)
class ForeignPod:
    """A foreign pod in another namespace."""

    kubectl: Kubectl

    def reaches(self, address: str, port: int) -> bool:
        """Returns whether a connection succeeds. A slow connection fails the test."""
        try:
            self.kubectl("exec", "foreign-pod", "--", *LIMIT, CONNECT.format(address=address, port=port))
        except KubectlError as error:
            if "refused" not in str(error):
                raise
            return False
        return True


@pytest.fixture
def foreign_pod(environment: dict[str, str], cluster: Cluster, kubectl: Kubectl) -> Iterator[ForeignPod]:
    """A foreign pod on the node of the benchmarks' clients. Restarted nodes enforce policies again."""
    cluster.network_policies(True)
    elsewhere = kubectl.inside(f"{kubectl.namespace}-foreign")
    elsewhere.create_namespace()
    container = {
        "name": "shell",
        "image": reference("nginx"),
        "imagePullPolicy": "Never",
        "command": ["sleep", "infinity"],
    }
    spec = {"nodeSelector": {"hw": "user"}, "containers": [container], "terminationGracePeriodSeconds": 0}
    elsewhere.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "foreign-pod"}, "spec": spec})
    elsewhere("wait", "pod", "foreign-pod", "--for=condition=Ready", f"--timeout={60 * TIMEOUT_FACTOR:.0f}s")
    yield ForeignPod(elsewhere)
    elsewhere("delete", "namespace", elsewhere.namespace, "--wait=false")


FILES = file_transfer("measured", access="NodePort", fileSizes=["64Mi"], repetitions=1)
PACED = {
    "pacing": {"type": "OpenLoop", "messagesPerSecond": 100},
    "load": {"messagesPerPublisher": 200},
    "repetitions": 1,
}
BROKERS = broker("measured", **PACED)
NETWORKS = network("measured", access="PodIP", directions=["Upload"], durationSeconds=3, repetitions=1)
KINDS = pytest.mark.parametrize(
    ("given", "port"), [(FILES, 8080), (BROKERS, 1883), (NETWORKS, 5201)], ids=["files", "brokers", "networks"]
)


@KINDS
@pytest.mark.timing
def test_foreign_pods_reach_no_internal_port_of_a_benchmark(
    kubectl: Kubectl, cluster: Cluster, release: Release, foreign_pod: ForeignPod, given: dict[str, Any], port: int
) -> None:
    """At the same time, a client of the benchmark reaches each of these ports."""
    kubectl.apply(given)
    running = Running(kubectl, "measured", given["kind"].lower())

    def client_reaches(address: str, port: int) -> bool:
        pod = running.wait_for_pod("client")["metadata"]["name"]
        (pid, *_) = pids(cluster, kubectl.namespace, pod, "tierbench-client")
        try:
            run("nsenter", f"--target={pid}", "--net", *LIMIT, CONNECT.format(address=address, port=port))
        except ClusterError:
            return False
        return True

    def check_ports() -> None:
        server = running.wait_for_pod("server")
        address = server["status"]["podIP"]
        closed = [AGENT]
        if given["spec"].get("access") == "NodePort":
            service = kubectl.get("service", server["metadata"]["name"])
            port_of_node = service["spec"]["ports"][0]["nodePort"]
            wait_for("a port of the node", lambda: foreign_pod.reaches(server["status"]["hostIP"], port_of_node))
        else:
            closed.append(port)
        for one in closed:
            assert not foreign_pod.reaches(address, one)
            assert client_reaches(address, one)
        operator = release.kubectl.get("pod", release.pod)["status"]["podIP"]
        wait_for("the operator", lambda: foreign_pod.reaches(operator, OPERATOR))

    strike(running, cluster, check_ports, slow="cloud-1" if given is FILES else "")
    assert {result["status"]["phase"] for result in running.results} == {"Complete"}
    assert_nothing_left(running)
