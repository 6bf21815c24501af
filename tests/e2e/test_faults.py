"""Faults on purpose: whatever is killed, nothing is counted twice, nothing measured is lost, nothing is left behind."""

import os
import signal
import threading

from tests.cluster import Cluster
from tests.e2e.benchmarks import Running, assert_every_trial_once, assert_nothing_left, file_transfer
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.operator_release import pids
from tests.patience import SLOWNESS

SLOW = f"{round(1000 / max(4, SLOWNESS))}mbit"  # trials outlast what is done to them, however long that takes


def test_client_pod_killed(kubectl: Kubectl, cluster: Cluster) -> None:
    with cluster.link("cloud-1", SLOW):
        kubectl.apply(file_transfer(fileSizes=["128Mi"], repetitions=4))
        running = Running(kubectl)
        pod = running.wait_for_pod("client")
        running.wait_for_trial(2)
        kubectl("delete", "pod", pod["metadata"]["name"], "--grace-period=0", "--force")
        running.wait_for_pod("client")
    running.wait_for_phase("Complete")
    assert_every_trial_once(running, 4)
    result = running.results[0]["status"]
    assert result["counts"]["interruptions"] == 1
    assert "Resumed" in [fact["reason"] for fact in result["facts"]]
    assert {trial.get("attempt", 1) for trial in result["trials"]} == {1, 2}
    assert_nothing_left(running)


def test_server_pod_killed_in_mid_transfer(kubectl: Kubectl, cluster: Cluster) -> None:
    with cluster.link("cloud-1", SLOW):
        kubectl.apply(file_transfer(fileSizes=["512Mi"], repetitions=2, access="ClusterIP"))
        running = Running(kubectl)
        running.wait_for_trial()
        pod = running.wait_for_pod("server")
        kubectl("delete", "pod", pod["metadata"]["name"], "--grace-period=0", "--force")
        running.wait_for_pod("server")
    running.wait_for_phase("Complete", seconds=180)
    assert_every_trial_once(running, 2)
    assert running.results[0]["status"]["counts"]["retries"] >= 1
    assert_nothing_left(running)


def test_api_server_away_for_a_minute(kubectl: Kubectl, cluster: Cluster) -> None:
    """Nothing is lost, and what is asked for next waits until controllers and scheduler have seen that it is back."""
    kubectl.apply(file_transfer(fileSizes=["512Mi"], repetitions=4))
    running = Running(kubectl)
    running.wait_for_pod("client")
    cluster.stop("apiserver")
    away = threading.Event()
    away.wait(60)  # the minute itself is the fault
    cluster.start("apiserver")
    cluster.wait_for_api()
    wait_for("every node is Ready again", cluster.ready, 150)
    running.wait_for_phase("Complete", seconds=120)
    assert_every_trial_once(running, 4)
    kubectl.apply(file_transfer("afterwards", timeouts={}))
    Running(kubectl, "afterwards").wait_for_phase("Complete", seconds=240)
    assert_nothing_left(running)


def test_nginx_stopped_for_longer_than_the_read_timeout(kubectl: Kubectl, cluster: Cluster) -> None:
    kubectl.apply(
        file_transfer(fileSizes=["1Gi"], repetitions=1, retry={"readTimeoutMilliseconds": 500, "waitMilliseconds": 100})
    )
    running = Running(kubectl)
    running.wait_for_trial()
    server = running.wait_for_pod("server")["metadata"]["name"]
    workers = pids(cluster, kubectl.namespace, server, "nginx")
    assert workers
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    try:
        threading.Event().wait(2)  # the stall itself is the fault
    finally:
        for pid in workers:
            os.kill(pid, signal.SIGCONT)
    running.wait_for_phase("Complete")
    assert_every_trial_once(running, 1)
    status = running.results[0]["status"]
    assert status["counts"]["retryCauses"]["Stalled"] >= 1
    assert status["trials"][0]["transfer"]["bytes"] == 2**30
