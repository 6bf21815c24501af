"""Results report page cache, disk and network correctly."""

from typing import Any

import pytest

from tests.cluster import Cluster
from tests.cluster.volumes import CLASS
from tests.e2e.benchmarks import (
    HOST_PATH,
    SHORT_PREFLIGHT,
    Running,
    assert_every_trial_once,
    assert_nothing_left,
    file_transfer,
)
from tests.e2e.conftest import USERS
from tests.e2e.kubectl import Kubectl


def _samples(running: Running, state: str) -> list[dict[str, Any]]:
    result = next(item for item in running.results if item["spec"]["levels"]["cacheState"] == state)
    return [trial["server"] for trial in result["status"]["trials"]]


@pytest.mark.measures
def test_cold_and_warm_files_are_read_from_disk_and_cache(kubectl: Kubectl) -> None:
    size = 128 * 2**20
    kubectl.apply(
        file_transfer(fileSizes=["128Mi"], cacheState=["Cold", "Warm"], servers={"nodeClassNames": ["jetson-nano"]})
    )
    running = Running(kubectl)
    running.wait_for_phase("Complete")
    assert_every_trial_once(running)
    for sample in _samples(running, "Cold"):
        assert sample["residentBeforePartsPerMillion"] <= 10_000
        assert sample["deviceReadBytes"] >= 0.9 * size
    for sample in _samples(running, "Warm"):
        assert sample["residentBeforePartsPerMillion"] >= 990_000
        assert sample["deviceReadBytes"] <= 0.1 * size


BOTH = {"directions": ["Download", "Upload"], "concurrency": [2]}
ENGINES = {"Native": "tierbench-client", "Wget": "wget", "Curl": "curl"}
TOOLS = {"clients": {"nodeClassNames": ["user"], "engines": list(ENGINES)}, "verifyDigest": False}


@pytest.mark.parametrize(
    ("access", "more"),
    [
        pytest.param(
            "PodIP", {**BOTH, "storage": HOST_PATH}, marks=[pytest.mark.release, pytest.mark.privileged], id="PodIP"
        ),
        pytest.param("ClusterIP", {**BOTH, **TOOLS}, marks=pytest.mark.release, id="ClusterIP"),
        pytest.param("NodePort", {}, id="NodePort"),
        pytest.param("HostNetwork", {}, marks=pytest.mark.privileged, id="HostNetwork"),
    ],
)
def test_files_are_transferred_by_every_access_with_and_without_tls(
    kubectl: Kubectl, access: str, more: dict[str, Any]
) -> None:
    spec = {"access": access, "tls": ["None", "TLSv1.3"], "verifyDigest": True, "repetitions": 1, **more}
    kubectl.apply(file_transfer(**spec))
    running = Running(kubectl)
    running.wait_for_phase("Complete")
    assert_every_trial_once(running, 1)
    for result in running.results:
        transfer, levels = result["status"]["trials"][0]["transfer"], result["spec"]["levels"]
        engine = levels.get("engine", "Native")
        assert transfer.get("digestVerified", False) == spec["verifyDigest"]
        assert transfer.get("direction", "Download") == levels.get("direction", "Download")
        assert result["status"]["engine"]["name"] == ENGINES[engine]
        assert transfer["bytes"] == transfer["downloads"] * 2**20
        assert ("tlsNanoseconds" in transfer) == (levels["tls"] != "None" and engine != "Wget")
    assert_nothing_left(running)


def test_files_on_a_claim_are_downloaded_in_parallel(kubectl: Kubectl) -> None:
    """The platform assigns the user ID. A preflight precedes the downloads."""
    storage = {"volumeClaimTemplate": {"storageClassName": CLASS}}
    kubectl.apply(file_transfer(storage=storage, concurrency=[1, 4], repetitions=1, preflight=SHORT_PREFLIGHT))
    running = Running(kubectl)
    assert running.wait_for_pod("server")["spec"]["securityContext"]["runAsUser"] == USERS["workloads"]
    running.wait_for_phase("Complete")
    assert_every_trial_once(running, 1)
    parallel = running.results[1]["status"]["trials"][0]["transfer"]
    assert parallel["downloads"] == 4
    assert parallel["bytes"] == 4 * 2**20
    (network,) = running.results[1]["spec"]["networks"]
    assert all(network[way]["bitsPerSecond"] > 0 for way in ("upload", "download"))
    assert_nothing_left(running)


@pytest.mark.measures
@pytest.mark.release
def test_packet_loss_appears_as_retransmits_of_the_server(kubectl: Kubectl, cluster: Cluster) -> None:
    """The user's node drops 1% of the packets that enter it, so the server retransmits some."""
    chance = ["-m", "statistic", "--mode", "random", "--probability", "0.01"]
    rule = ["FORWARD", "-p", "tcp", *chance, "-j", "DROP"]
    machine = cluster.node("user-1").machine
    kubectl.apply(file_transfer(fileSizes=["64Mi"], repetitions=2))
    running = Running(kubectl)
    running.wait_for_pod("server", running=False)
    machine.run("iptables", "--table=mangle", "--insert", *rule)
    try:
        running.wait_for_phase("Complete")
    finally:
        machine.run("iptables", "--table=mangle", "--delete", *rule)
    samples = [trial["server"] for trial in running.results[0]["status"]["trials"]]
    assert sum(sample["tcpRetransmits"] for sample in samples) > 0
    assert all(sample["roundTripNanoseconds"] > 0 for sample in samples)


@pytest.mark.measures
@pytest.mark.release
def test_results_contain_their_network_and_whether_it_was_the_bottleneck(kubectl: Kubectl, cluster: Cluster) -> None:
    preflight = {**SHORT_PREFLIGHT, "durationSeconds": 4}
    with cluster.link("cloud-1", "100mbit"):
        kubectl.apply(file_transfer(fileSizes=["1Ki", "16Mi"], access="NodePort", repetitions=2, preflight=preflight))
        running = Running(kubectl)
        status = running.wait_for_phase("Complete")
    assert status["progress"] == "2/2"
    assert running.condition("NetworkMeasured")["reason"] == "AllPairsMeasured"
    assert_every_trial_once(running, 2)
    small, large = running.results
    (network,) = large["spec"]["networks"]
    assert small["spec"]["networks"] == [network]
    assert (network["serverNode"], network["clientNode"]) == ("cloud-1", "user-1")
    for way in ("upload", "download"):
        assert network[way]["bitsPerSecond"] == pytest.approx(100e6 * 1448 / 1514, rel=0.05), network
    assert network["ping"]["received"] == 5
    assert 0 < network["ping"]["minNanoseconds"] <= network["ping"]["p50Nanoseconds"] < 50_000_000
    assert "NetworkBound" not in [fact["reason"] for fact in small["status"]["facts"]]
    assert "NetworkBound" in [fact["reason"] for fact in large["status"]["facts"]]
    assert_nothing_left(running)
