"""Results of brokers: their counts, their display, and what makes them invalid."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.kinds.broker.trials import line, measured
from tierbench.results.client_output import PartOutput, merge_parts
from tierbench.results.units import show_with_deviation

PACKETS = "wirePacketsPerMessagePartsPerMillion"


def test_display_shows_case_times_rate_and_validity() -> None:
    display = measured(line(1), line(2), line(3), delivery="ExactlyOnce", pairs="4").display
    assert (display.case, display.mean, display.throughput, display.valid) == (
        "mosquitto 1Ki ExactlyOnce x4",
        "1.19 ms",
        "1.00 k msg/s",
        "Yes",
    )
    assert display.p99.startswith("4.0")


def test_display_names_the_levels_of_kafka() -> None:
    levels = {"broker": "kafka", "codec": "Lz4", "partitions": "4", "lingerMilliseconds": "5", "batchSize": "16Ki"}
    shown = measured(line(1), **levels).display.case
    assert shown == "kafka 1Ki AtLeastOnce Lz4 4 partitions linger 5 ms batches of 16Ki"


def test_batches_have_a_size() -> None:
    statistics = measured(line(1, batches=10, batchBytes=1_030_000), broker="kafka").statistics
    assert (statistics["batchMessages"].mean, statistics["batchBytes"].mean) == (100, 103_000)
    assert "batchMessages" not in measured(line(1)).statistics


def test_packets_and_bytes_are_counted_per_message_and_per_connection() -> None:
    """Messages count those of the load, connections those before it. Clients that count no packets have neither."""
    counted = {"connections": 4, "setupBytes": 5000, "setupPackets": 34, "loadBytes": 3_300_000, "loadPackets": 4100}
    statistics = measured(line(1, received=990, lost=10, **counted)).statistics
    assert statistics["wireBytesPerMessage"].mean == 3300
    assert statistics[PACKETS].mean == 4_100_000
    assert (statistics["setupBytes"].mean, statistics["setupPackets"].mean) == (1250, 8)
    assert not {"wireBytesPerMessage", "setupPackets"} & measured(line(1)).statistics.keys()


def test_small_messages_at_full_speed_share_packets() -> None:
    """Each of 32 messages that leave together takes a part of a packet, and not 0."""
    statistics = measured(line(1, connections=2, loadBytes=100_000, loadPackets=31)).statistics
    shown = show_with_deviation(PACKETS, statistics[PACKETS].mean, statistics[PACKETS].standard_deviation)
    assert shown == "0.0310"
    assert statistics[PACKETS].mean == 31_000


def test_counts_of_trials_add_up() -> None:
    messages = measured(line(1), line(2, received=990, lost=10)).counts.messages
    assert messages is not None
    assert (messages.sent, messages.received, messages.lost) == (2000, 1990, 10)


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("MessagesLost", {"received": 990, "lost": 10}),
        ("AcknowledgedLost", {"received": 990, "lost": 10, "acknowledgedLost": 10}),
        ("ClientSaturated", {"cpu": 37 * 10**8}),
    ],
)
def test_losses_and_a_saturated_client_make_a_result_invalid(reason: str, change: dict[str, int]) -> None:
    status = measured(line(1), line(2, **change))
    assert status.valid is False
    assert status.invalid[0].reason == reason


def test_a_client_of_one_thread_is_saturated_by_one_cpu() -> None:
    assert measured(line(1, cpu=95 * 10**7, limit=1000)).invalid[0].reason == "ClientSaturated"


@pytest.mark.parametrize(
    ("levels", "cores", "limit", "saturated"),
    [
        ({}, 0.95, None, True),
        ({}, 0.95, 4000, True),
        ({}, 0.7, None, False),
        ({"broker": "kafka", "codec": "None"}, 0.95, 4000, False),
        ({"broker": "kafka", "codec": "None"}, 3.3, 4000, True),
        ({"broker": "kafka", "codec": "None"}, 3.3, None, False),
    ],
)
def test_saturated_broker_is_reported(levels: dict[str, str], cores: float, limit: int | None, saturated: bool) -> None:
    """Mosquitto has one thread; a JVM has the CPU that its container may use."""
    trial = line(1)
    assert trial.server is not None
    used = {"process_cpu_nanoseconds": int(cores * 10**9), "cpu_limit_millicores": limit}
    busy = trial.model_copy(update={"server": trial.server.model_copy(update=used)})
    assert [fact.reason for fact in measured(busy, **levels).facts] == ["BrokerSaturated"] * saturated


@pytest.mark.parametrize("counts", [{"lateSends": 7}, {"unsent": 7}])
def test_missed_pace_is_reported(counts: dict[str, int]) -> None:
    assert [fact.reason for fact in measured(line(1, **counts)).facts] == ["BehindPace"]


def test_unsteady_round_trips_are_reported() -> None:
    assert [fact.reason for fact in measured(line(1, steady=False), line(2, steady=True)).facts] == ["NotSteady"]


@pytest.mark.parametrize(
    ("asked", "resumed", "messages"),
    [("Resumed", 3, ["1 of 4 TLS handshakes were full"]), ("Resumed", 4, []), ("Full", 0, [])],
)
def test_result_is_invalid_if_sessions_were_not_resumed(asked: str, resumed: int, messages: list[str]) -> None:
    trial = line(1, tlsHandshakes=4, resumedHandshakes=resumed)
    found = measured(trial, tls="TLSv1.3", handshake=asked).invalid
    assert [(note.reason, note.message.partition(",")[0]) for note in found] == [
        ("NotResumed", message) for message in messages
    ]


def test_unsent_and_discarded_messages_are_counted() -> None:
    messages = measured(line(1, unsent=5, discarded=40), line(2, unsent=1)).counts.messages
    assert messages is not None
    assert (messages.unsent, messages.discarded) == (6, 40)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=2, max_size=5))
def test_counts_of_parts_add_up(counts: list[tuple[int, int]]) -> None:
    parts = [
        PartOutput([line(1, sent=received + lost, received=received, lost=lost, nanoseconds=10**9 + index)])
        for index, (received, lost) in enumerate(counts)
    ]
    (merged,) = merge_parts(parts)
    assert merged.exchange is not None
    assert merged.exchange.received is not None
    assert merged.exchange.sent == merged.exchange.received + merged.exchange.lost == sum(map(sum, counts))
    assert merged.duration_nanoseconds == 10**9 + len(counts) - 1
    assert merged.distributions.round_trip is not None
    assert merged.distributions.round_trip.count == 4 * len(counts)


def test_a_trial_counts_once_all_parts_have_printed_it() -> None:
    merged = merge_parts([PartOutput([line(1), line(2)]), PartOutput([line(1)])])
    assert [trial.trial for trial in merged] == [1]


def test_echo_adds_its_wire_traffic_but_no_messages() -> None:
    wire = (
        *("wireSentBytes", "wireSentPackets", "connections", "setupBytes", "setupPackets", "loadBytes", "loadPackets"),
        *("tlsHandshakes", "resumedHandshakes"),
    )
    echo = line(1, sent=0, received=1000, reconnects=1, **dict.fromkeys(wire, 5))
    own = line(1, **dict.fromkeys(wire, 7))
    (merged,) = merge_parts([PartOutput([own]), PartOutput([echo], echo=True)])
    assert merged.exchange is not None
    assert (merged.exchange.received, merged.exchange.reconnects) == (1000, 1)
    assert {merged.exchange.to_json()[name] for name in wire} == {12}


def test_setup_is_reported_only_for_new_connections() -> None:
    """Kept connections have none; several parts have none if one of them kept its connections."""
    setup = {"connectNanoseconds": 10**6, "tlsNanoseconds": 0, "setupBytes": 5000, "setupPackets": 34}
    made, kept = line(1, connections=2, **setup), line(2, connections=2)
    statistics = measured(made, kept).statistics
    assert {name: (statistics[name].count, statistics[name].mean) for name in setup} == {
        "connectNanoseconds": (1, 10**6),
        "tlsNanoseconds": (1, 0),
        "setupBytes": (1, 2500),
        "setupPackets": (1, 17),
    }
    (mixed,) = merge_parts([PartOutput([made]), PartOutput([line(1, connections=2)])])
    assert mixed.exchange is not None
    assert not setup.keys() & mixed.exchange.to_json().keys()
    (both,) = merge_parts([PartOutput([made]), PartOutput([made])])
    assert both.exchange is not None
    assert (both.exchange.setup_packets, both.exchange.connect_nanoseconds) == (68, 10**6)
