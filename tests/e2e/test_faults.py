"""After faults no trial is counted twice, no measurement is lost, and no object is left."""

import os
import signal
import threading
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.e2e.benchmarks import Running, assert_every_trial_once, assert_nothing_left, file_transfer
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.operator_release import pids
from tests.e2e.strike import kill_pod, strike

ESTABLISHED = "01"  # the state in /proc/net/tcp


@pytest.mark.timing
def test_run_continues_after_its_client_pod_is_killed(kubectl: Kubectl, cluster: Cluster) -> None:
    kubectl.apply(file_transfer(fileSizes=["512Ki"], repetitions=4))
    running = Running(kubectl)
    strike(running, cluster, lambda: kill_pod(running, cluster, "client"), trial=2, slow="cloud-1")
    assert_every_trial_once(running, 4)
    result = running.results[0]["status"]
    assert result["counts"]["interruptions"] == 1
    assert "Resumed" in [fact["reason"] for fact in result["facts"]]
    assert {trial.get("attempt", 1) for trial in result["trials"]} == {1, 2}
    assert_nothing_left(running)


@pytest.mark.timing
def test_transfer_retries_after_its_server_pod_is_killed(kubectl: Kubectl, cluster: Cluster) -> None:
    kubectl.apply(file_transfer(fileSizes=["64Mi"], repetitions=2, access="ClusterIP", retry={"attempts": 1000}))
    running = Running(kubectl)
    strike(running, cluster, lambda: kill_pod(running, cluster, "server"), slow="cloud-1")
    assert_every_trial_once(running, 2)
    assert running.results[0]["status"]["counts"]["retries"] >= 1
    assert_nothing_left(running)


@pytest.mark.release
def test_outage_of_the_api_server_loses_no_trial(kubectl: Kubectl, cluster: Cluster) -> None:
    """The next benchmark starts when controllers, scheduler and DNS are connected to the API server again."""
    kubectl.apply(file_transfer(fileSizes=["512Mi"], repetitions=4))
    running = Running(kubectl)
    running.wait_for_pod("client")
    cluster.stop("apiserver")
    away = threading.Event()
    away.wait(60)  # this minute is the fault
    cluster.start("apiserver")
    cluster.wait_for_api()
    wait_for("every node is Ready again", cluster.ready, 150)
    running.wait_for_phase("Complete", seconds=120)
    assert_every_trial_once(running, 4)
    kubectl.apply(
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "new"}, "spec": {"ports": [{"port": 80}]}}
    )
    wait_for("DNS knows a new Service", lambda: cluster.resolves("new", kubectl.namespace), 150)
    kubectl.apply(file_transfer("afterwards", timeouts={}))
    Running(kubectl, "afterwards").wait_for_phase("Complete", seconds=240)
    assert_nothing_left(running)


@pytest.mark.release
@pytest.mark.timing
def test_client_reconnects_when_nginx_pauses_beyond_the_read_timeout(kubectl: Kubectl, cluster: Cluster) -> None:
    """The client first reads what the kernel has buffered. Then it reconnects and waits for a response."""
    retry = {"readTimeoutMilliseconds": 500, "waitMilliseconds": 100, "attempts": 1000}
    kubectl.apply(file_transfer(fileSizes=["64Mi"], repetitions=1, retry=retry))
    running = Running(kubectl)
    before: set[str] = set()

    def processes(role: str, program: str) -> list[int]:
        return pids(cluster, kubectl.namespace, running.wait_for_pod(role)["metadata"]["name"], program)

    def connections() -> set[str]:
        """Returns the local addresses of the client's connections as the kernel writes them."""
        (pid,) = processes("client", "tierbench-client")
        lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
        return {line.split()[1] for line in lines if line.split()[3] == ESTABLISHED}

    def stop() -> None:
        before.update(connections())
        for pid in processes("server", "nginx"):
            os.kill(pid, signal.SIGSTOP)

    def resume() -> None:
        try:
            wait_for("the client reconnects", lambda: connections() - before)
        finally:
            for pid in processes("server", "nginx"):
                os.kill(pid, signal.SIGCONT)

    strike(running, cluster, stop, then=resume, slow="cloud-1")
    assert_every_trial_once(running, 1)
    status = running.results[0]["status"]
    assert status["counts"]["retryCauses"]["Stalled"] >= 1
    assert status["trials"][0]["transfer"]["bytes"] == 64 * 2**20
