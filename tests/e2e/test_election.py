"""Two replicas: whatever becomes of the leader, the other goes on, and no trial is lost or counted twice."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cluster import Cluster
from tests.e2e.benchmarks import Running, assert_every_trial_once, assert_nothing_left, file_transfer
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.operator_release import Release

CASES: dict[str, Any] = {"fileSizes": ["128Mi", "256Mi"], "repetitions": 5}
TAKEOVER_SECONDS = 30.0
"""Twice what is promised: others load this machine."""


@pytest.fixture(scope="module", autouse=True)
def replicas(release: Release) -> Iterator[None]:
    """A leader, and one that stands by."""
    release.install("operator.replicas=2", "operator.disruptionBudget=true")
    yield
    release.install()


@pytest.fixture(autouse=True)
def both_ready(release: Release) -> None:
    """What the test before has ended stands by again."""

    def ready() -> bool:
        status = release.kubectl.get("deployment", release.name)["status"]
        return bool(status.get("readyReplicas") == status.get("updatedReplicas") == 2 and release.leader)

    wait_for("a leader, and one that stands by", ready)


@pytest.fixture
def running(kubectl: Kubectl) -> Running:
    """A benchmark of which some trials are measured."""
    kubectl.apply(file_transfer(**CASES))
    running = Running(kubectl)
    running.wait_for_trial(2)
    return running


def wait_for_another(release: Release, before: str) -> str:
    """The pod that leads in place of another; says how long that took."""
    since = time.monotonic()
    after = wait_for(
        "another leads", lambda: leader if (leader := release.leader) not in {"", before} else None, TAKEOVER_SECONDS
    )
    print(f"{after} leads {time.monotonic() - since:.1f} s later")
    return after


def assert_all_well(running: Running) -> None:
    running.wait_for_phase("Complete")
    assert_every_trial_once(running, CASES["repetitions"])
    assert_nothing_left(running)


def wait_for_restart(release: Release, pod: str) -> None:
    """The deposed leader has said why, and ended; its pod stands by."""

    def restarted() -> bool:
        (container,) = release.kubectl.get("pod", pod)["status"]["containerStatuses"]
        return bool(container["restartCount"] == 1 and container["ready"])

    wait_for("the deposed leader stands by", restarted)
    assert "This operator leads no more, and ends" in release.kubectl("logs", pod, "--previous")


def test_leader_killed_at_each_step(kubectl: Kubectl, release: Release, cluster: Cluster) -> None:
    """When a run has begun, its server is made, its client measures, and its first case has ended."""
    kubectl.apply(file_transfer(**CASES))
    running = Running(kubectl)
    steps: tuple[Callable[[], object], ...] = (
        lambda: wait_for("a run", lambda: running.status.get("run")),
        lambda: running.wait_for_pod("server", running=False),
        running.wait_for_trial,
        lambda: wait_for("the end of a case", lambda: "completionTime" in running.results[0]["status"]),
    )
    for step in steps:
        step()
        leader = release.leader
        release.kill(cluster, leader)
        wait_for_another(release, leader)
    assert_all_well(running)


def test_leader_ended(release: Release) -> None:
    """As in a drain of its node: it gives the Lease away."""
    leader = release.leader
    release.kubectl("delete", "pod", leader, "--wait=false")
    wait_for_another(release, leader)


def test_leader_stopped_and_continued_and_another_cut_off(running: Running, release: Release, cluster: Cluster) -> None:
    """What they had sent does not arrive later."""
    first = release.leader
    stopped = release.pids(cluster, first)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        second = wait_for_another(release, first)
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    wait_for_restart(release, first)
    assert release.leader == second
    with cut_off(cluster, release, second):
        third = wait_for_another(release, second)
    wait_for_restart(release, second)
    assert release.leader == third
    assert_all_well(running)


@contextmanager
def cut_off(cluster: Cluster, release: Release, pod: str) -> Iterator[None]:
    """Nothing leaves the pod."""
    processes = cluster.pod_processes(release.kubectl.namespace, pod)
    pause = next(process.pid for process in processes if process.name == "pause")  # outlives the operator
    network = ["nsenter", "--net", f"--target={pause}", "iptables"]
    subprocess.run([*network, "--insert", "OUTPUT", "--jump", "DROP"], check=True)
    try:
        yield
    finally:
        subprocess.run([*network, "--delete", "OUTPUT", "--jump", "DROP"], check=True)
