"""Every kind of benchmark runs with servers and clients on an arm64 node, and records plausible values."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import Cluster
from tests.cluster.test_life import host_objects
from tests.e2e.benchmarks import (
    Running,
    assert_every_trial_once,
    assert_nothing_left,
    broker,
    file_transfer,
    network,
    node_class,
)
from tests.e2e.kubectl import Kubectl
from tests.e2e.operator_release import Release
from tests.vm.conftest import FOLDER

ARM_IMAGES = ("client", "mosquitto", "network", "nginx", "paho")
PI: dict[str, Any] = {"nodeClassNames": ["raspberry-pi-4"]}
ROLES = pytest.mark.parametrize("role", ["servers", "clients"])
MIB = 2**20
SECONDS = 600  # until a benchmark has ended


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster with the images of each node's architecture."""
    cluster = Cluster("vm-arm64")
    try:
        cluster.up(FOLDER / "arm64.toml")
        cluster.load([FOLDER.parents[1] / "build" / "images" / f"{name}.tar" for name in (*ARM_IMAGES, "operator")])
        yield cluster
    finally:
        cluster.down()
    assert host_objects(cluster) == []


@pytest.fixture(autouse=True)
def node_class_of_the_pi(release: Release) -> None:
    release.kubectl.apply(node_class("raspberry-pi-4", hw="raspberry-pi-4"))


def test_node_is_arm64_with_its_own_kernel(cluster: Cluster) -> None:
    info = cluster.kubectl(
        "get", "node", "pi-1", "-o", "jsonpath={.status.nodeInfo.architecture} {.status.nodeInfo.kernelVersion}"
    )
    assert info.startswith("arm64 ")
    assert "cloud-arm64" in info


@ROLES
def test_file_transfers_run_on_arm64(kubectl: Kubectl, role: str) -> None:
    size = 64 * MIB  # long enough for the clock ticks of the node's processors
    kubectl.apply(
        file_transfer(
            fileSizes=["64Mi"],
            cacheState=["Cold", "Warm"],
            tls=["None", "TLSv1.3"],
            verifyDigest=True,
            **_places(role),
        )
    )
    running = Running(kubectl)
    running.wait_for_phase("Complete", seconds=SECONDS)
    assert_every_trial_once(running)
    assert len(running.results) == 4
    for result in running.results:
        cold, tls = result["spec"]["levels"]["cacheState"] == "Cold", result["spec"]["levels"]["tls"] != "None"
        for trial in result["status"]["trials"]:
            if role == "servers":
                _assert_server(trial["server"], trial["durationNanoseconds"])
            assert (trial["server"]["residentBeforePartsPerMillion"] < 10_000) == cold
            assert (trial["server"]["deviceReadBytes"] >= 0.9 * size) == cold
            transfer = trial["transfer"]
            assert transfer["bytes"] == size
            assert transfer["digestVerified"] is True
            assert 0 < transfer["connectNanoseconds"] < trial["durationNanoseconds"]
            assert 0 < transfer["firstByteNanoseconds"] < trial["durationNanoseconds"]
            assert (transfer.get("tlsNanoseconds", 0) > 0) == tls
    assert_nothing_left(running)


@ROLES
@pytest.mark.parametrize("engine", ["Native", "Paho"])
def test_brokers_run_on_arm64(kubectl: Kubectl, role: str, engine: str) -> None:
    places = _places(role)
    places["clients"] = {**places["clients"], "engine": engine}
    pace = {"type": "OpenLoop", "messagesPerSecond": 25}  # long enough for the clock ticks of the node's processors
    kubectl.apply(
        broker(tls=["None", "TLSv1.3"], compression=["Gzip"], encryption=["AES128GCM"], pacing=pace, **places)
    )
    running = Running(kubectl, "brokers", "brokerbenchmark")
    running.wait_for_phase("Complete", seconds=SECONDS)
    assert len(running.results) == 2
    for result in running.results:
        status = result["status"]
        assert status["phase"] == "Complete", status
        messages = status["counts"]["messages"]
        assert messages["sent"] == messages["received"] == 100
        assert status["distributions"]["roundTrip"]["count"] == 100
        for trial in status["trials"]:
            if role == "servers":
                _assert_server(trial["server"], trial["durationNanoseconds"])
                assert trial["server"]["processCpuNanoseconds"] > 0
            exchange = trial["exchange"]
            assert exchange["wireSentBytes"] > exchange["encodedBytes"] > 0
            assert min(exchange[f"{name}Nanoseconds"] for name in ("connect", "compress", "encrypt", "decrypt")) > 0
            assert (exchange.get("tlsNanoseconds", 0) > 0) == (result["spec"]["levels"]["tls"] != "None")
    assert_nothing_left(running)


@ROLES
def test_networks_run_on_arm64(kubectl: Kubectl, role: str) -> None:
    kubectl.apply(network(protocols=["TCP", "UDP"], udp={"kilobitsPerSecond": 1000}, **_places(role)))
    running = Running(kubectl, "networks", "networkbenchmark")
    running.wait_for_phase("Complete", seconds=SECONDS)
    results = running.results
    assert len(results) == 4
    for result in results:
        status = result["status"]
        assert status["phase"] == "Complete", status
        for trial in status["trials"]:
            (flow,) = (trial["network"][way] for way in ("upload", "download") if way in trial["network"])
            assert 0 < flow["receivedBytes"] <= flow["sentBytes"]
            assert 0 < flow["bitsPerSecond"] < 300e6
            ping = trial["network"]["ping"]
            assert ping["received"] == ping["sent"] == 5
            assert 0 < ping["minNanoseconds"] <= ping["meanNanoseconds"] <= ping["maxNanoseconds"]
            assert trial["server"]["processCpuNanoseconds"] > 0
    assert_nothing_left(running)


def _places(role: str) -> dict[str, Any]:
    """Returns the placement: servers or clients on the arm64 node, the others on an ordinary node."""
    return {"servers": {"nodeClassNames": ["cloud"]}, "clients": {"nodeClassNames": ["user"]}} | {role: PI}


def _assert_server(sample: dict[str, Any], duration: int) -> None:
    """Asserts that every field of the server's sample exists and is plausible."""
    for share in ("cpu", "ioWait", "ioPressure"):
        assert 0 <= sample[f"{share}PartsPerMillion"] <= 1_000_000, sample
    assert sample["cpuPartsPerMillion"] > 0
    assert 0 < sample["roundTripNanoseconds"] <= sample["roundTripMaxNanoseconds"] < duration
    assert sample["tcpSegmentsSent"] > 0
    assert sample["tcpRetransmits"] <= sample["tcpSegmentsSent"] / 10
