"""Faults on purpose: whatever is killed, nothing is counted twice, nothing measured is lost, nothing is left behind."""

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import Cluster
from tests.e2e.benchmarks import API_VERSION, Running, assert_every_trial_once, assert_nothing_left, file_transfer
from tests.e2e.kubectl import Kubectl, KubectlError, wait_for
from tests.e2e.operator_release import Release, pids
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


def test_server_node_without_power(kubectl: Kubectl, cluster: Cluster) -> None:
    """Its cases fail with the reason, the other class is measured, and the run ends before the node is back."""
    timeouts = {"schedulingSeconds": round(15 * SLOWNESS), "nodeNotReadySeconds": 10}
    kubectl.apply(
        file_transfer(servers={"nodeClasses": ["jetson-nano", "cloud"]}, fileSizes=["256Mi"], timeouts=timeouts)
    )
    running = Running(kubectl)
    running.wait_for_pod("client")
    cluster.signal("jetson-1", signal.SIGKILL)
    try:
        running.wait_for_phase("Complete", seconds=150)
    finally:
        cluster.start("jetson-1")
        wait_for("the node is Ready again", cluster.ready, 90)
    failed, measured = running.results
    assert (failed["spec"]["server"]["node"], failed["status"]["reason"]) == ("jetson-1", "NodeNotReady")
    assert measured["status"]["phase"] == "Measured"
    assert running.condition("Complete")["reason"] == "SomeCasesFailed"
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


def test_log_cut_short(kubectl: Kubectl, release: Release, cluster: Cluster) -> None:
    """With the operator away, the log on the node ends within a late trial: what is missing is measured again."""
    with cluster.link("cloud-1", "500mbit"):  # a second a trial: most of them come when nobody looks any more
        kubectl.apply(file_transfer(fileSizes=["64Mi"], repetitions=12))
        running = Running(kubectl)
        pod = running.wait_for_pod("client")
        release.kubectl("scale", "deployment", "tierbench", "--replicas=0")
        try:
            ended = ("Succeeded", "Failed")
            name = pod["metadata"]["name"]
            wait_for("the client has ended", lambda: kubectl.get("pod", name)["status"]["phase"] in ended, 90)
            log = next(iter(_container_logs(cluster, pod)))
            lines = log.read_bytes().splitlines(keepends=True)
            began = [number for number, line in enumerate(lines, start=1) if b'"TrialStarted"' in line]
            os.truncate(log, sum(map(len, lines[: began[9]])) + 10)
        finally:
            release.kubectl("scale", "deployment", "tierbench", "--replicas=1")
    running.wait_for_phase("Complete", seconds=120)
    assert_every_trial_once(running, 12)
    assert running.results[0]["status"]["counts"]["interruptions"] == 1


def _container_logs(cluster: Cluster, pod: dict[str, Any]) -> list[Path]:
    """The log files of a pod on its node's disk."""
    logs = cluster.node(pod["spec"]["nodeName"]).folder / "root" / "var" / "log" / "pods"
    found = list(logs.glob(f"*_{pod['metadata']['uid']}/client/*.log"))
    assert found, f"no log of {pod['metadata']['name']} below {logs}"
    return found


def test_sealed_result_cannot_be_edited(kubectl: Kubectl) -> None:
    kubectl.apply(file_transfer())
    running = Running(kubectl)
    running.wait_for_phase("Complete")
    name = running.results[0]["metadata"]["name"]
    patch = '{"status": {"counts": {"retries": 99}}}'
    with pytest.raises(KubectlError, match="cannot be changed"):
        kubectl("patch", "benchmarkresult", name, "--subresource=status", "--type=merge", "-p", patch)
    with pytest.raises(KubectlError, match="cannot be changed"):
        kubectl("patch", "benchmarkresult", name, "--type=merge", "-p", '{"spec": {"run": 7}}')


def test_result_edited_while_it_grows_is_written_again(kubectl: Kubectl, cluster: Cluster) -> None:
    with cluster.link("cloud-1", SLOW):
        kubectl.apply(file_transfer(fileSizes=["128Mi"], repetitions=5))
        running = Running(kubectl)
        wait_for("a trial is recorded", lambda: running.results and running.results[0].get("status", {}).get("trials"))
        name = running.results[0]["metadata"]["name"]
        head = {"name": name, "namespace": kubectl.namespace}
        status = {"trials": [], "counts": {"retries": 99}}
        body = {"apiVersion": API_VERSION, "kind": "BenchmarkResult", "metadata": head, "status": status}
        as_operator = kubectl.as_user("system:serviceaccount:tierbench:tierbench")  # nobody else may
        flags = ("--server-side", "--force-conflicts", "--subresource=status", "--field-manager=somebody")
        as_operator("apply", *flags, "-f", "-", stdin=json.dumps(body))
    running.wait_for_phase("Complete")
    assert_every_trial_once(running, 5)
    assert running.results[0]["status"]["counts"]["retries"] == 0


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
