"""The network before the first case: read, said, and held against what the service did."""

from typing import Any

import pytest

from tests.unit.kinds.broker import trials as broker
from tests.unit.kinds.network import trials as network
from tests.unit.results.preflights import blocked, node_network
from tests.unit.results.test_record import line, spec
from tierbench.api.contract import TrialLine
from tierbench.api.measurements import NodeNetwork, TcpRate
from tierbench.api.result import ResultSpec, ResultStatus
from tierbench.results.node_network import figures, in_words, worst
from tierbench.results.record import record
from tierbench.results.validity import facts

EMPTY = NodeNetwork(server_node="cloud-1", client_node="user-1")


def bound(wanted: ResultSpec, *lines: TrialLine) -> list[str]:
    """The messages that the network was the limit."""
    status = record(wanted, ResultStatus(), lines, 1)
    return [fact.message for fact in facts(wanted, status.trials, 0) if fact.reason == "NetworkBound"]


def on(wanted: ResultSpec, *networks: NodeNetwork) -> ResultSpec:
    return wanted.model_copy(update={"networks": networks})


def test_each_way_adds_what_it_tells() -> None:
    up = network.line(1, upload=network.flow(90, retransmits=3))
    down = network.line(1, download=network.flow(80)).to_json()
    del down["network"]["ping"]
    found = figures(figures(EMPTY, up), TrialLine.model_validate(down))
    assert found.upload == TcpRate(bits_per_second=90_000_000, retransmits=3)
    assert found.download == TcpRate(bits_per_second=80_000_000, retransmits=0)
    assert found.ping is not None
    assert (found.ping.sent, found.ping.minimum_nanoseconds, found.ping.maximum_nanoseconds) == (3, 900_000, 4_000_000)
    assert found.ping.standard_deviation_nanoseconds == 1_438_000
    assert found.ping.p50_nanoseconds == pytest.approx(1_000_000, rel=0.02)
    assert found.ping.p99_nanoseconds == 4_000_000, "no more than the longest, whatever the bucket's end"


def test_words() -> None:
    assert in_words(node_network()) == "user-1 to cloud-1: 90.0 Mbit/s up, 80.0 Mbit/s down, ping 500 µs"
    missing = "not all is measured (ServerUnreachable): no route: see network policies."
    assert in_words(blocked()) == f"user-1 to jetson-1: {missing}"


def test_of_several_pairs_the_worst_of_each_figure() -> None:
    networks = node_network(), node_network(client="user-2", down=10, ping={"sent": 2, "received": 2}), blocked()
    assert worst(networks) == {
        "uploadBitsPerSecond": 90_000_000,
        "downloadBitsPerSecond": 10,
        "pingNanoseconds": 500_000,
        "pingLostPartsPerMillion": 100_000,
    }
    assert worst([blocked()]) == {}


@pytest.mark.parametrize(("share", "said"), [(0.89, False), (0.91, True), (1.09, True), (1.2, False)])
def test_a_transfer_as_fast_as_the_network_was_limited_by_it(share: float, said: bool) -> None:
    trial = line(1, nanoseconds=10**9, transfer={"bytes": round(share * 10_000_000), "downloads": 1})
    messages = bound(on(spec(trials=1, warmup=0), node_network()), trial)
    assert messages == (
        ["In 1 of 1 trials at least 90 % of the 80.0 Mbit/s down that iperf3 got before: the network was the limit."]
        if said
        else []
    )


@pytest.mark.parametrize("networks", [(), (blocked(),), (node_network(), node_network(client="user-2"))])
def test_nothing_is_said_of_a_network_that_is_not_known(networks: tuple[NodeNetwork, ...]) -> None:
    trial = line(1, nanoseconds=10**9, transfer={"bytes": 10_000_000, "downloads": 1})
    assert bound(on(spec(trials=1, warmup=0), *networks), trial) == []


@pytest.mark.parametrize(("way", "word"), [("wireSentBytes", "up"), ("wireReceivedBytes", "down")])
def test_a_broker_is_held_against_each_way(way: str, word: str) -> None:
    rate = {"up": 90_000_000, "down": 80_000_000}[word]
    exchange: dict[str, Any] = {"sessionNanoseconds": 10**9, "wireSentBytes": 1, "wireReceivedBytes": 1}
    trial = broker.line(1, **{**exchange, way: rate // 8}).model_copy(update={"transfer": None})
    (message,) = bound(on(broker.spec(1), node_network()), trial)
    assert f"{rate / 1e6:.1f} Mbit/s {word} " in message
