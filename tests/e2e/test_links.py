"""On a real cluster, links have the declared rate and delay in both directions, or fail with a reason."""

from typing import Any

import pytest

from tests.e2e.benchmarks import Running, assert_nothing_left, broker, file_transfer, network
from tests.e2e.kubectl import Kubectl

pytestmark = [pytest.mark.release, pytest.mark.privileged]

DIRECT = {"name": "direct"}
LTE = {
    "name": "lte",
    "up": {"kilobitsPerSecond": 10_000, "delayMicroseconds": 20_000},
    "down": {"kilobitsPerSecond": 20_000, "delayMicroseconds": 20_000},
}
ROUND_TRIP = 40e6
PAYLOAD_SHARE = 1448 / 1514
"""The share of a 1500-byte packet in an Ethernet frame without IPv4, TCP and timestamps."""


def by_link(kubectl: Kubectl, body: dict[str, Any], kind: str) -> dict[str, list[dict[str, Any]]]:
    """Returns the results of a completed benchmark by their links."""
    kubectl.apply(body)
    running = Running(kubectl, body["metadata"]["name"], kind)
    running.wait_for_phase("Complete", "Failed", seconds=300)
    assert_nothing_left(running)
    found: dict[str, list[dict[str, Any]]] = {}
    for result in running.results:
        assert result["status"]["phase"] == "Complete", result["status"]
        found.setdefault(result["spec"]["levels"]["link"], []).append(result)
    return found


def mean(result: dict[str, Any], quantity: str) -> float:
    return float(result["status"]["statistics"][quantity]["mean"])


def median(result: dict[str, Any]) -> float:
    return float(result["status"]["percentiles"]["P50"]["value"])


def reasons(result: dict[str, Any], notes: str) -> set[str]:
    return {note["reason"] for note in result["status"][notes]}


@pytest.mark.measures
def test_messages_take_the_declared_round_trip_of_the_link(kubectl: Kubectl) -> None:
    """The messages are so short that the rate of the link adds nothing."""
    load: dict[str, Any] = {"payload": {"sizes": [64]}, "load": {"messagesPerPublisher": 20}}
    found = by_link(kubectl, broker(links=[LTE, DIRECT], **load), "brokerbenchmark")
    (late,), (soon,) = found["lte"], found["direct"]
    assert median(late) - median(soon) == pytest.approx(ROUND_TRIP, rel=0.05)
    sample = late["status"]["trials"][0]["client"]["link"]
    assert sample["roundTripNanoseconds"] == pytest.approx(ROUND_TRIP, abs=3e6)
    assert "LinkMeasured" in reasons(late, "facts")
    assert "link" not in soon["status"]["trials"][0]["client"]
    assert late["spec"]["link"]["up"]["kilobitsPerSecond"] == 10_000


@pytest.mark.measures
def test_files_arrive_at_the_declared_rate_of_the_link(kubectl: Kubectl) -> None:
    found = by_link(kubectl, file_transfer(links=[LTE, DIRECT], fileSizes=["4Mi"]), "filetransferbenchmark")
    (slow,), (fast,) = found["lte"], found["direct"]
    rate = 8 * mean(slow, "throughputBytesPerSecond")
    assert 0.8 * 20e6 * PAYLOAD_SHARE < rate < 20e6 * PAYLOAD_SHARE * 1.03
    assert mean(fast, "throughputBytesPerSecond") > 1.5 * mean(slow, "throughputBytesPerSecond")
    (sample,) = {str(trial["client"]["link"]): trial["client"]["link"] for trial in slow["status"]["trials"]}.values()
    assert sample["uploadBitsPerSecond"] == pytest.approx(10e6, rel=0.05)
    assert sample["downloadBitsPerSecond"] == pytest.approx(20e6, rel=0.05)
    assert not {"LinkDiffers", "LinkNotMeasured"} & reasons(slow, "invalid")


@pytest.mark.measures
def test_network_benchmark_measures_the_rates_and_the_trace_of_its_links(kubectl: Kubectl) -> None:
    data = {"up": "0,5\n1,5\n", "down": "0,8\n1,8\n"}
    kubectl.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "drive"}, "data": data})
    trace = {"name": "recorded", "trace": {"configMapRef": {"name": "drive"}}}
    found = by_link(kubectl, network(links=[LTE, trace], durationSeconds=5, repetitions=1), "networkbenchmark")
    rates = {
        (link, result["spec"]["levels"]["direction"]): mean(result, "throughputBitsPerSecond") / PAYLOAD_SHARE
        for link, results in found.items()
        for result in results
    }
    wanted = {("lte", "Upload"): 10e6, ("lte", "Download"): 20e6}
    wanted |= {("recorded", "Upload"): 5e6, ("recorded", "Download"): 8e6}
    assert rates == {key: pytest.approx(rate, rel=0.1) for key, rate in wanted.items()}
    for result in found["lte"]:
        assert mean(result, "pingMinNanoseconds") == pytest.approx(ROUND_TRIP, abs=3e6)


def test_a_missing_trace_is_reported(kubectl: Kubectl) -> None:
    kubectl.apply(file_transfer(links=[{"name": "recorded", "trace": {"configMapRef": {"name": "nowhere"}}}]))
    running = Running(kubectl)
    running.wait_for_phase("Failed", seconds=300)
    status = running.results[0]["status"]
    assert status["reason"] == "LinkNotPossible"
    assert "/trace/up" in status["message"]
    assert_nothing_left(running)
