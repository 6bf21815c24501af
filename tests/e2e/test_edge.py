"""Nodes at the edge are measured without logs, Services or a pod network, behind NAT, and with a flapping link."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from tests.cluster import Cluster
from tests.e2e.benchmarks import (
    SHORT_PREFLIGHT,
    Running,
    assert_nothing_left,
    broker,
    file_transfer,
    network,
)
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.operator_release import Release
from tests.e2e.strike import held, open_trials

pytestmark = [pytest.mark.privileged, pytest.mark.release]
NODE = "jetson-1"
CLASSES = {"servers": {"nodeClassNames": ["cloud"]}, "clients": {"nodeClassNames": ["jetson-nano"]}}
BENCHMARKS: Mapping[str, dict[str, Any]] = {
    "filetransferbenchmark": file_transfer("edge", **CLASSES, preflight=SHORT_PREFLIGHT, access="HostNetwork"),
    "brokerbenchmark": broker("edge", **CLASSES, preflight=SHORT_PREFLIGHT, access="HostNetwork", repetitions=3),
    "networkbenchmark": network("edge", **CLASSES, access="HostNetwork", repetitions=3),
}
CONNECT = "if (exec 3<>/dev/tcp/{host}/443) 2>/dev/null; then echo open; else echo closed; fi"
PACED = {"type": "OpenLoop", "messagesPerSecond": 5}
SLOW_BENCHMARKS: Mapping[str, dict[str, Any]] = {
    "filetransferbenchmark": file_transfer("edge", **CLASSES, fileSizes=["64Mi"]),
    "brokerbenchmark": broker(
        "edge", **CLASSES, repetitions=3, delivery=["AtLeastOnce"], pacing=PACED, load={"messagesPerPublisher": 100}
    ),
}
"""Benchmarks whose trials take seconds over a link with the rate SLOW."""
SLOW = "20mbit"


def assert_measured(running: Running) -> list[dict[str, Any]]:
    """Asserts that each case has three good trials and that nothing is left. Returns all trials of the records."""
    for result in running.results:
        counted = [trial for trial in result["status"]["trials"] if not trial.get("interrupted")]
        assert [trial["trial"] for trial in counted] == [1, 2, 3]
        assert {trial["outcome"] for trial in counted} == {"Completed"}
        assert result["status"]["counts"]["completed"] == 3
    assert_nothing_left(running)
    return [trial for result in running.results for trial in result["status"]["trials"]]


@pytest.mark.parametrize("kind", BENCHMARKS)
def test_nodes_without_services_dns_and_pod_network_measure_on_the_host_network(
    kubectl: Kubectl, cluster: Cluster, kind: str
) -> None:
    with cluster.edge("bare", "cloud-1", NODE):
        service = kubectl.inside("default").get("service", "kubernetes")["spec"]["clusterIP"]
        for name in ("cloud-1", NODE):
            reach = ("timeout", "5", "bash", "-c", CONNECT.format(host=service) + "; true")
            assert "open" not in cluster.node(name).machine.output("sh", "-c", '"$@" || true', "sh", *reach)
        kubectl.apply(BENCHMARKS[kind])
        running = Running(kubectl, "edge", kind)
        assert running.wait_for_pod("client")["spec"]["hostNetwork"]
        running.wait_for_phase("Complete")
        assert {result["status"]["counts"]["completed"] for result in running.results} == {3}
        networks = running.results[0]["spec"].get("networks", [])
        assert all(one[way]["bitsPerSecond"] > 0 for one in networks for way in ("upload", "download"))
        assert_nothing_left(running)


@pytest.mark.timing
@pytest.mark.parametrize(
    ("profile", "kind", "way"),
    [
        ("no-logs", "brokerbenchmark", "Status"),
        ("no-logs", "brokerbenchmark", "Push"),
        ("nat", "filetransferbenchmark", "Status"),
        ("nat", "filetransferbenchmark", "Push"),
        ("nat", "brokerbenchmark", "Push"),
    ],
)
def test_trials_are_collected_once_from_nodes_with_unreachable_logs(
    kubectl: Kubectl, cluster: Cluster, release: Release, profile: str, kind: str, way: str
) -> None:
    """The operator is killed while the client measures. No trial is measured again."""
    running = Running(kubectl, "edge", kind)
    with ExitStack() as stack:
        if way == "Push":
            release.install("collector.enabled=true")
            stack.callback(release.install)
        stack.enter_context(cluster.edge(profile, NODE))
        with cluster.link("cloud-1", SLOW):
            kubectl.apply(SLOW_BENCHMARKS[kind])
            wait_for("a trial", lambda: open_trials(running, cluster), 120)
            with held(running, cluster):
                release.kill(cluster)
                release.ready()
        running.wait_for_phase("Complete", seconds=240)
        trials = assert_measured(running)
    assert {trial["collectedBy"] for trial in trials} == {way}
    assert {trial.get("attempt", 1) for trial in trials} == {1}


@pytest.mark.timing
@pytest.mark.parametrize("kind", SLOW_BENCHMARKS)
def test_a_node_whose_link_flaps_loses_no_trial(
    kubectl: Kubectl, cluster: Cluster, release: Release, kind: str
) -> None:
    """The link is down for 90 s of every 5 min, first during a trial. The operator is killed while it is down."""
    running = Running(kubectl, "edge", kind)
    with cluster.link("cloud-1", SLOW):
        kubectl.apply(SLOW_BENCHMARKS[kind])
        wait_for("a trial", lambda: open_trials(running, cluster), 120)
        with cluster.edge("flapping", NODE):
            wait_for("the outage", lambda: running.status["run"].get("outages"), 120)
            release.kill(cluster)
            release.ready()
            running.wait_for_phase("Complete", seconds=600)
    trials = assert_measured(running)
    interrupted = [trial for trial in trials if trial.get("interrupted")]
    assert {trial["failure"]["reason"] for trial in interrupted} <= {"Interrupted"}
    assert max(trial.get("attempt", 1) for trial in trials) > 1
    assert {one["node"] for one in running.status["run"]["outages"]} == {NODE}
    assert "NodeNotReady" not in running.wait_for_description("CaseMeasured")
