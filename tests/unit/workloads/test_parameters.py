"""The parameters that every case of a benchmark has, and that its results keep."""

from typing import Any

import pytest

from tests.unit.domain.objects import benchmark
from tests.unit.domain.world import World
from tierbench.kinds.broker.spec import BrokerSpec
from tierbench.kinds.network.spec import NetworkSpec

PLACES: dict[str, Any] = {"servers": {"nodeClassNames": ["cloud"]}, "clients": {"nodeClassNames": ["user"]}}
BROKER: dict[str, Any] = {**PLACES, "brokers": [{"name": "m", "mosquitto": {}}]}


@pytest.mark.parametrize(
    ("spec", "parameters"),
    [
        ({}, {"pacing": "ClosedLoop", "inFlight": "1", "load": "100 messages", "maxInFlight": "512"}),
        ({"pacing": {"type": "ClosedLoop", "inFlight": 8}}, {"pacing": "ClosedLoop", "inFlight": "8"}),
        ({"pacing": {"type": "Acknowledged", "inFlight": 2}}, {"pacing": "Acknowledged", "inFlight": "2"}),
        ({"clients": {"nodeClassNames": ["user"], "subscribers": {"type": "None"}}}, {"subscribers": "None"}),
        (
            {"pacing": {"type": "AsFastAsPossible"}, "maxInFlight": 64},
            {"pacing": "AsFastAsPossible", "maxInFlight": "64"},
        ),
        (
            {"pacing": {"type": "OpenLoop", "intervalMilliseconds": 2}},
            {"pacing": "OpenLoop", "messagesPerSecond": "500"},
        ),
        (
            {"pacing": {"type": "OpenLoop", "messagesPerSecond": 500}},
            {"pacing": "OpenLoop", "messagesPerSecond": "500"},
        ),
        ({}, {"connections": "EachTrial"}),
        ({"clients": {"nodeClassNames": ["user"], "connections": "Kept"}}, {"connections": "Kept"}),
        ({"load": {"durationSeconds": 30}}, {"load": "30 s"}),
        ({"access": "NodePort"}, {"access": "NodePort"}),
        (
            {"clients": {"nodeClassNames": ["user"], "subscribers": {"type": "Separate", "nodeClassName": "edge"}}},
            {"subscribers": "edge"},
        ),
    ],
)
def test_parameters_of_a_broker(spec: dict[str, Any], parameters: dict[str, str]) -> None:
    found = BrokerSpec.model_validate(BROKER | spec).parameters
    assert parameters.items() <= found.items()


def test_parameters_of_a_network() -> None:
    udp = NetworkSpec.model_validate({**PLACES, "protocols": ["UDP"], "udp": {"kilobitsPerSecond": 900}})
    assert (udp.parameters["udpKilobitsPerSecond"], udp.parameters["access"]) == ("900", "PodIP")
    assert NetworkSpec.model_validate(PLACES).parameters["udpKilobitsPerSecond"] == "None"


def test_results_keep_the_parameters_of_the_spec() -> None:
    world = World(benchmark(retry={"attempts": 3}, access="PodIP"))
    world.run()
    kept = [result.spec.settings for result in world.results.values()]
    assert kept
    assert all(each["attempts"] == "3" and each["access"] == "PodIP" for each in kept)
    assert all(each["waitMilliseconds"] == "1000" and "maxWaitMilliseconds" not in each for each in kept)


def test_longest_retry_wait_is_a_parameter() -> None:
    world = World(benchmark(retry={"maxWaitMilliseconds": 10000}))
    world.run()
    assert {result.spec.settings["maxWaitMilliseconds"] for result in world.results.values()} == {"10000"}
