"""Where another class comes ahead is measured more closely, by servers that have the files for it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cluster import Cluster
from tests.e2e.benchmarks import Running, assert_every_trial_once, assert_nothing_left, file_transfer
from tests.e2e.kubectl import Kubectl

pytestmark = [pytest.mark.privileged, pytest.mark.release]

LINK, DISK = "650mbit", 40 * 2**20


@contextmanager
def slow_disk(cluster: Cluster, name: str) -> Iterator[None]:
    """Holds a node's containers to DISK bytes a second, those to come included."""
    node, done = cluster.node(name), threading.Event()

    def hold() -> None:
        while not done.wait(0.2):
            cluster.cgroups.throttle(name, node.disk, DISK)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        cluster.cgroups.throttle(name, node.disk, node.profile.disk_read)


def test_the_middle_of_a_crossover_is_measured(kubectl: Kubectl, cluster: Cluster) -> None:
    """The jetson has the faster link, and a slow disk, from which comes what its memory does not hold."""
    with cluster.link("cloud-1", LINK), slow_disk(cluster, "jetson-1"):
        kubectl.apply(
            file_transfer(
                servers={"nodeClasses": ["cloud", "jetson-nano"]},
                fileSizes=["64Mi", "512Mi"],
                access="NodePort",
                storage={"emptyDir": {}},
                repetitions=3,
                warmup=2,
                runPolicy={"refine": {"withinPercent": 300}},
            )
        )
        running = Running(kubectl)
        status = running.wait_for_phase("Complete", seconds=900)
    assert_every_trial_once(running, 3)
    assert_nothing_left(running)

    assert [item["levels"]["fileSize"] for item in status["run"]["refinements"]] == ["181Mi"]
    assert status["progress"] == "6/6"
    assert [result["spec"]["case"] for result in running.results] == [1, 2, 3, 4, 5, 6]
    for result in running.results[4:]:
        assert result["spec"]["levels"]["fileSize"] == "181Mi"
        assert result["spec"]["alternation"]["cases"] == [5, 6]
        assert all(trial["transfer"]["bytes"] == 181 * 2**20 for trial in result["status"]["trials"])
    story = kubectl("describe", "filetransferbenchmark", "files")
    assert "cloud overtakes jetson-nano between 64Mi and 512Mi: measures 181Mi" in story
