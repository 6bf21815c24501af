"""The computers of nodes, and the network between two nodes."""

from typing import Any

import pytest

from tests.unit.kinds.broker import trials as broker
from tests.unit.kinds.network import trials as network
from tests.unit.results.preflights import blocked, node_network
from tests.unit.results.trials import line, recorded, sample, spec
from tierbench.api.contract import TrialLine
from tierbench.api.measurements import NodeNetwork, TcpRate
from tierbench.api.record import RecordStatus
from tierbench.api.result import BenchmarkResult, ResultSpec
from tierbench.results.aggregate import add_trials
from tierbench.results.export import trial_table
from tierbench.results.nodes import (
    add_network_trial,
    describe_computer,
    describe_network,
    node_computers,
    worst_network,
)
from tierbench.results.validity import facts

JETSON: dict[str, Any] = {
    "cpuGovernor": "schedutil",
    "cpuFrequencyKilohertz": 1_200_000,
    "cpuMaxKilohertz": 1_479_000,
    "powerMode": "MAXN",
    "temperatureMillidegrees": 61_500,
    "thermalThrottles": 1,
    "interface": "eth0",
    "mtuBytes": 1450,
    "congestionControl": "cubic",
}


def result(server: dict[str, Any] | None, **fields: Any) -> BenchmarkResult:
    return recorded([line(1, server=sample(computer=server), client={"computer": {"interface": "eth1"}, **fields})])


def test_a_computer_is_described_in_one_line() -> None:
    again = {**JETSON, "cpuFrequencyKilohertz": 1_479_000, "thermalThrottles": 0}
    lines = [describe_computer(node) for node in node_computers([result(JETSON), result(again)])]
    assert lines == [
        "j1: governor schedutil, frequency 1.20 to 1.48 of 1.48 GHz, power mode MAXN, temperature up to 62 °C, "
        "throttled for heat in 1 of 2 trials, interface eth0 (MTU 1450), congestion control cubic",
        "u1: interface eth1",
    ]


def test_unknown_facts_of_a_computer_are_left_out() -> None:
    assert [node.node for node in node_computers([result(None)])] == ["u1"]
    assert not {
        name for name in trial_table([result(None)]).columns if name.startswith("server") and "Kilohertz" in name
    }


def test_the_table_has_a_column_for_each_side() -> None:
    table = trial_table([result(JETSON, cpuLimitMillicores=500)])
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert (row["serverCpuGovernor"], row["serverMtuBytes"], row["clientInterface"]) == ("schedutil", 1450, "eth1")
    assert row["clientCpuLimitMillicores"] == 500


EMPTY = NodeNetwork(server_node="cloud-1", client_node="user-1")


def bound(wanted: ResultSpec, *lines: TrialLine) -> list[str]:
    """Returns the messages of facts that the network was the limit."""
    status = add_trials(wanted, RecordStatus(), lines, 1)
    return [fact.message for fact in facts(wanted, status.trials, 0) if fact.reason == "NetworkBound"]


def spec_with_networks(wanted: ResultSpec, *networks: NodeNetwork) -> ResultSpec:
    return wanted.model_copy(update={"networks": networks})


def test_each_trial_adds_its_direction_to_the_network() -> None:
    up = network.line(1, upload=network.flow(90, retransmits=3))
    down = network.line(1, download=network.flow(80)).to_json()
    del down["network"]["ping"]
    found = add_network_trial(add_network_trial(EMPTY, up), TrialLine.model_validate(down))
    assert found.upload == TcpRate(bits_per_second=90_000_000, retransmits=3)
    assert found.download == TcpRate(bits_per_second=80_000_000, retransmits=0)
    assert found.ping is not None
    assert (found.ping.sent, found.ping.min_nanoseconds, found.ping.max_nanoseconds) == (3, 900_000, 4_000_000)
    assert found.ping.standard_deviation_nanoseconds == 1_438_000
    assert found.ping.p50_nanoseconds == pytest.approx(1_000_000, rel=0.02)
    assert found.ping.p99_nanoseconds == 4_000_000, "no more than the longest, whatever the bucket's end"


def test_a_network_is_described_in_one_line() -> None:
    assert describe_network(node_network()) == "user-1 to cloud-1: 90.0 Mbit/s up, 80.0 Mbit/s down, ping 500 µs"
    missing = "incomplete (ServerUnreachable): no route: see network policies."
    assert describe_network(blocked()) == f"user-1 to jetson-1: {missing}"


def test_worst_network_has_the_worst_of_each_quantity() -> None:
    networks = node_network(), node_network(client="user-2", down=10, ping={"sent": 2, "received": 2}), blocked()
    assert worst_network(networks) == {
        "uploadBitsPerSecond": 90_000_000,
        "downloadBitsPerSecond": 10,
        "pingNanoseconds": 500_000,
        "pingLostPartsPerMillion": 100_000,
    }
    assert worst_network([blocked()]) == {}


@pytest.mark.parametrize(("share", "bound_expected"), [(0.89, False), (0.91, True), (1.09, True), (1.2, False)])
def test_a_transfer_as_fast_as_the_network_is_network_bound(share: float, bound_expected: bool) -> None:
    trial = line(1, nanoseconds=10**9, transfer={"bytes": round(share * 10_000_000), "downloads": 1})
    messages = bound(spec_with_networks(spec(trials=1, warmup=0), node_network()), trial)
    assert messages == (
        [
            "The network was the limit in 1 of 1 trials: at least 90% of the 80.0 Mbit/s down that iperf3 measured in "
            "the preflight."
        ]
        if bound_expected
        else []
    )


@pytest.mark.parametrize("networks", [(), (blocked(),), (node_network(), node_network(client="user-2"))])
def test_without_a_known_network_nothing_is_network_bound(networks: tuple[NodeNetwork, ...]) -> None:
    trial = line(1, nanoseconds=10**9, transfer={"bytes": 10_000_000, "downloads": 1})
    assert bound(spec_with_networks(spec(trials=1, warmup=0), *networks), trial) == []


@pytest.mark.parametrize(("way", "word"), [("wireSentBytes", "up"), ("wireReceivedBytes", "down")])
def test_a_broker_is_compared_with_each_direction(way: str, word: str) -> None:
    rate = {"up": 90_000_000, "down": 80_000_000}[word]
    exchange: dict[str, Any] = {"sessionNanoseconds": 10**9, "wireSentBytes": 1, "wireReceivedBytes": 1}
    trial = broker.line(1, **{**exchange, way: rate // 8}).model_copy(update={"transfer": None})
    (message,) = bound(spec_with_networks(broker.spec(1), node_network()), trial)
    assert f"{rate / 1e6:.1f} Mbit/s {word} " in message
