"""The engine counts and times messages through a real Mosquitto."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.paho.barrier import serving
from tests.paho.broker import Mosquitto
from tests.paho.engine import Engine, Outcome, plan, trial_of

Run = Callable[..., Outcome]
DELIVERIES = ("AtMostOnce", "AtLeastOnce", "ExactlyOnce")
# Bytes per message: Ethernet, IPv4 and TCP with timestamps; MQTT's own header and a topic of two dozen letters.
SEGMENT, MQTT = 66, 32


def checked_counts(trial: dict[str, Any]) -> dict[str, Any]:
    exchange: dict[str, Any] = trial["exchange"]
    assert exchange["sent"] == exchange["received"] + exchange["lost"]
    assert exchange["errors"] == sum(exchange["errorCauses"].values())
    return exchange


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_every_message_is_counted_once(run: Run, delivery: str) -> None:
    outcome = run(delivery=delivery, trials=2, warmup_trials=1, messages=300)
    assert (outcome.code, outcome.reason) == (0, None)
    assert [(trial["trial"], trial["warmup"]) for trial in outcome.trials] == [(1, True), (1, False), (2, False)]
    for trial in outcome.trials:
        counts = checked_counts(trial)
        acknowledged = 0 if delivery == "AtMostOnce" else 600
        assert (counts["pairs"], counts["sent"], counts["received"]) == (2, 600, 600)
        assert (counts["acknowledged"], counts["errors"], counts["duplicated"]) == (acknowledged, 0, 0)
        assert (counts["sentBytes"], counts["encodedBytes"], counts["receivedBytes"]) == (600 * 1024,) * 3
        assert trial["distributions"]["roundTrip"]["count"] + counts["discarded"] == 600
        assert ("acknowledge" in trial["distributions"]) == (acknowledged > 0)
        assert 0 < trial["durationNanoseconds"] < counts["sessionNanoseconds"]
        assert trial["client"]["cpuLimitMillicores"] == 1000


def test_sending_as_fast_as_possible_at_qos_0_loses_nothing(broker: Mosquitto) -> None:
    load = {"in_flight": None, "as_fast_as_possible": True, "messages": 5000, "max_in_flight": 256}
    assert checked_counts(trial_of(broker, **load, delivery="AtMostOnce"))["received"] == 10_000


def test_seal_counts_and_hashes_the_trial_lines(run: Run) -> None:
    outcome = run(trials=2)
    lines = [line for line in outcome.log.splitlines(keepends=True) if json.loads(line)["record"] == "Trial"]
    assert outcome.seal["trials"] == len(lines) == 2
    assert outcome.seal["sha256"] == hashlib.sha256("".join(lines).encode()).hexdigest()
    assert outcome.seal["engine"]["name"] == "tierbench-paho"


def test_open_loop_does_not_exceed_its_rate(broker: Mosquitto) -> None:
    trial = trial_of(broker, in_flight=None, messages_per_second=200, messages=101)
    assert trial["durationNanoseconds"] >= 500_000_000
    spread = trial["distributions"]
    assert spread["roundTrip"]["sumNanoseconds"] > spread["roundTripActual"]["sumNanoseconds"]


@pytest.mark.measures
def test_open_loop_keeps_its_rate(run: Run) -> None:
    """A busy machine may delay the last message of a trial, but not of every trial."""
    outcome = run(in_flight=None, messages_per_second=200, messages=201, trials=3)
    assert min(trial["durationNanoseconds"] for trial in outcome.trials) == pytest.approx(1e9, rel=0.01)


def test_a_duration_ends_the_load(broker: Mosquitto) -> None:
    load = {"in_flight": None, "interval_milliseconds": 10, "messages": None, "duration_seconds": 1, "pairs": 1}
    counts = checked_counts(trial_of(broker, **load))
    assert counts["sent"] + counts["unsent"] == 100


@pytest.mark.timing
def test_round_trip_of_a_late_message_starts_when_it_was_due(broker: Mosquitto) -> None:
    trial = trial_of(broker, in_flight=None, messages_per_second=20_000, max_in_flight=2, messages=1000, pairs=1)
    spread = trial["distributions"]
    assert checked_counts(trial)["lateSends"] > 500
    assert spread["roundTrip"]["sumNanoseconds"] > 5 * spread["roundTripActual"]["sumNanoseconds"]


def tls_changes(broker: Mosquitto, version: str) -> dict[str, object]:
    """Returns the changes of a plan for connections with TLS."""
    url, ca = f"mqtts://127.0.0.1:{broker.secure}", broker.folder / "ca.crt"
    return {"url": url, "tls": version, "ca_file": ca, "server_name": "localhost"}


@pytest.mark.parametrize(
    ("version", "cipher"),
    [("TLSv1.2", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"), ("TLSv1.3", "TLS_AES_256_GCM_SHA384")],
)
def test_trial_with_tls_reports_the_cipher_and_the_handshake(broker: Mosquitto, version: str, cipher: str) -> None:
    counts = checked_counts(trial_of(broker, **tls_changes(broker, version)))
    assert (counts["received"], counts["cipher"]) == (400, cipher)
    assert counts["tlsNanoseconds"] > 0
    assert counts["connectNanoseconds"] > 0


@pytest.mark.parametrize("compression", ["Gzip:9", "Zstd"])
def test_compressed_and_encrypted_messages_arrive(broker: Mosquitto, tmp_path: Path, compression: str) -> None:
    (tmp_path / "key").write_bytes(bytes(range(16)))
    codec = {"compression": compression, "encryption": "AES128GCM", "key_file": tmp_path / "key"}
    counts = checked_counts(trial_of(broker, **codec, content="SensorJSON", size_bytes=10_000))
    assert (counts["received"], counts["errors"]) == (400, 0)
    assert counts["receivedBytes"] == 4_000_000
    assert counts["encodedBytes"] < 1_500_000
    times = ("compressNanoseconds", "encryptNanoseconds", "decryptNanoseconds", "decompressNanoseconds")
    assert all(counts[name] > 0 for name in times)


@pytest.mark.parametrize("compression", ["None", "Gzip"])
def test_own_messages_are_counted_by_their_sizes(broker: Mosquitto, tmp_path: Path, compression: str) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "1").write_bytes(b"message 1")
    (folder / "2").write_bytes(b"0" * 2000)
    counts = checked_counts(trial_of(broker, content_folder=folder, compression=compression, pairs=1, messages=40))
    assert (counts["received"], counts["errors"]) == (40, 0)
    assert counts["sentBytes"] == counts["receivedBytes"] == 20 * 2009
    assert (counts["encodedBytes"] == counts["sentBytes"]) == (compression == "None")


@pytest.mark.parametrize("size", [2, 9])
def test_small_messages_are_not_mistaken_for_duplicates(broker: Mosquitto, size: int) -> None:
    counts = checked_counts(trial_of(broker, size_bytes=size, delivery="AtMostOnce", messages=1000, in_flight=100))
    assert (counts["received"], counts["duplicated"]) == (2000, 0)


@pytest.mark.timing
def test_bytes_on_the_wire_match_the_messages_and_their_headers(broker: Mosquitto) -> None:
    counts = checked_counts(trial_of(broker, delivery="AtMostOnce", size_bytes=1400, in_flight=1, pairs=1))
    message = 1400 + MQTT + SEGMENT
    for name in ("wireSentBytes", "wireReceivedBytes"):
        most = 200 * (message + SEGMENT) + 2000 + counts["tcpRetransmits"] * message
        assert 200 * message < counts[name] < most


CONTROLS = {"AtMostOnce": 2, "AtLeastOnce": 4, "ExactlyOnce": 8}
"""Control packets per message, on its way to the broker and back."""


@pytest.mark.timing
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_packets_and_bytes_match_the_control_packets(broker: Mosquitto, delivery: str) -> None:
    load = {"delivery": delivery, "size_bytes": 100, "pairs": 1, "in_flight": 1}
    plain = checked_counts(trial_of(broker, **load))
    tls = checked_counts(trial_of(broker, **load, **tls_changes(broker, "TLSv1.2")))
    controls = CONTROLS[delivery]
    for counts in (plain, tls):
        # Each control packet is a segment. TCP acknowledges each with a segment of its own, or with the next.
        assert controls - 1 <= counts["loadPackets"] / 200 <= 2 * controls + 1
        packets = counts["wireSentPackets"] + counts["wireReceivedPackets"]
        assert 0 <= packets - counts["setupPackets"] - counts["loadPackets"] <= 12
    # Each control packet is a record of TLS 1.2. The last ones may come too late to count.
    data = [counts["loadBytes"] - SEGMENT * counts["loadPackets"] for counts in (plain, tls)]
    assert (data[1] - data[0]) / 200 == pytest.approx(controls * (5 + 8 + 16), abs=3)
    # Both connections have three segments of TCP, two to connect, and with TLS four more. One has two to subscribe.
    assert plain["setupPackets"] >= 2 * (3 + 2) + 2
    assert tls["setupPackets"] >= 2 * (3 + 2 + 4) + 2
    assert tls["setupBytes"] - plain["setupBytes"] >= 2 * 1000
    assert (plain["connections"], tls["connections"]) == (2, 2)


@pytest.mark.measures
@pytest.mark.parametrize(
    ("delivery", "least", "most"), [("AtMostOnce", 4, 4), ("AtLeastOnce", 6, 8), ("ExactlyOnce", 10, 16)]
)
def test_packets_per_message_are_bounded_on_an_idle_connection(
    broker: Mosquitto, delivery: str, least: int, most: int
) -> None:
    """TCP may send an acknowledgement with the next control packet, or alone."""
    load = {"delivery": delivery, "size_bytes": 100, "pairs": 1, "in_flight": None, "interval_milliseconds": 100}
    for tls in ({}, tls_changes(broker, "TLSv1.2")):
        counts = checked_counts(trial_of(broker, **load, **tls, messages=10))
        assert least - 1 <= counts["loadPackets"] / 10 <= most + 1


def test_each_pair_has_its_own_share(broker: Mosquitto) -> None:
    trial = trial_of(broker, pairs=3, messages=50, in_flight=1)
    shares = trial["pairShares"]
    assert shares["received"] == [50, 50, 50]
    assert max(shares["nanoseconds"]) == trial["durationNanoseconds"]
    assert min(shares["nanoseconds"]) > 0


def test_echo_returns_every_message(broker: Mosquitto, tmp_path: Path) -> None:
    with serving(tmp_path) as (agent_field, agent):
        shared = {**agent_field, "barrier": "b", "parts": 2, "trials": 2, "connections": "Kept"}
        publisher = Engine(tmp_path, plan(broker, **shared, role="Publisher", part=0))
        echo = Engine(tmp_path, plan(broker, **shared, role="Echo", part=1, warmup_trials=0))
        published, echoed = publisher.outcome(), echo.outcome()
    assert (published.code, echoed.code, agent.connections) == (0, 0, 2)
    barriers = [f"b-t{trial}{place}" for trial in (1, 2) for place in ("", "-begin", "-end")]
    assert [name for name, part in agent.requests if part == 1] == barriers
    for trial in published.trials:
        assert checked_counts(trial)["received"] == 400
        assert trial["server"] == {"cpuPartsPerMillion": 1}
    for trial in echoed.trials:
        assert trial["outcome"] == "Completed"
        assert checked_counts(trial)["wireSentBytes"] > 400 * 1024
        assert "server" not in trial


def test_engine_supports_more_connections_than_select(broker: Mosquitto) -> None:
    """Each connection has three files, and select(2) supports only 1024."""
    counts = checked_counts(trial_of(broker, pairs=180, messages=3, in_flight=1))
    assert (counts["received"], counts["acknowledged"], counts["connections"]) == (540, 540, 360)
    assert counts["errors"] == counts["reconnects"] == 0
