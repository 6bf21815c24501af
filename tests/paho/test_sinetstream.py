"""The engine SINETStream sends what its library sends, and counts messages as the other engines do."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from paho.mqtt.client import MQTTMessage

from tests.paho.barrier import serving
from tests.paho.broker import Mosquitto
from tests.paho.engine import HANG_SECONDS, ROOT, Engine, failure_of, install_engine, plan, trial_of
from tests.paho.listener import listening
from tests.paho.strike import strike
from tests.paho.test_exchange import DELIVERIES, checked_counts, tls_changes
from tests.plans import Plan
from tierbench.kinds.broker.sinetstream import configuration

PLAIN = 1024 + (6 + 2 + 8) + 8 + 2
"""Bytes of a message of 1 KiB with what the library adds: its own header and Avro's, a time, and the length."""

SALT = 8
ADDED = {  # by a cipher: nonce or IV, tag, and padding of what the library encrypts, which is 1024 + 20 bytes
    "AES128GCM": 16 + 16,
    "AES256GCM": 16 + 16,
    "AES128EAX": 16 + 8,
    "AES256EAX": 16 + 8,
    "AES128CTR": 16,
    "AES256CTR": 16,
    "AES128CBC": 16 + 12,
    "AES256CBC": 16 + 12,
}
IN_GATE = ("AES128EAX", "AES256CBC")
Measure = Callable[..., dict[str, Any]]


LIBRARIES = ROOT / "build/sinetstream"
_ROUND_TRIP = """\
import sys
from sinetstream import MessageReader, MessageWriter
given = {"service": "lte", "config_file": sys.argv[1]}
with MessageReader(receive_timeout_ms=300, **given) as reader, MessageWriter(**given) as writer:
    for _ in range(200):  # until the reader has subscribed
        writer.publish(b"sent")
        for message in reader:
            print(message.value.decode())
            sys.exit(0)
sys.exit(1)
"""


@pytest.fixture(scope="module", autouse=True)
def _sinetstream(tmp_path_factory: pytest.TempPathFactory) -> None:
    subprocess.run([ROOT / "tools/sinetstream", LIBRARIES], check=True)
    folder = tmp_path_factory.mktemp("sinetstream")
    install_engine(folder, "sinetstream", LIBRARIES)
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"


def sinetstream_plan(broker: Mosquitto, **changes: Any) -> Plan:
    return plan(broker, engine="sinetstream", **changes)


@pytest.fixture
def measure(broker: Mosquitto, tmp_path: Path) -> Measure:
    """Returns a function that runs a trial, checks that it has no losses, and returns its counts."""
    (tmp_path / "key").write_bytes(bytes(range(16)))

    def measured(**changes: Any) -> dict[str, Any]:
        trial = trial_of(broker, engine="sinetstream", **{"key_file": tmp_path / "key", **changes})
        counts = checked_counts(trial)
        assert (counts["received"], counts["errors"], counts["duplicated"]) == (counts["sent"], 0, 0)
        return counts

    return measured


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_every_message_is_counted_once(broker: Mosquitto, tmp_path: Path, delivery: str) -> None:
    outcome = Engine(
        tmp_path, sinetstream_plan(broker, delivery=delivery, trials=2, warmup_trials=1, messages=100)
    ).outcome()
    assert (outcome.code, outcome.reason, len(outcome.trials)) == (0, None, 3)
    assert outcome.seal["engine"]["name"] == "tierbench-sinetstream"
    for trial in outcome.trials:
        counts = checked_counts(trial)
        assert (counts["pairs"], counts["sent"], counts["received"]) == (2, 200, 200)
        assert counts["acknowledged"] == (0 if delivery == "AtMostOnce" else 200)
        assert (counts["errors"], counts["duplicated"]) == (0, 0)
        assert (counts["sentBytes"], counts["receivedBytes"]) == (200 * 1024,) * 2
        assert 0 < counts["connectNanoseconds"] < trial["durationNanoseconds"] + counts["sessionNanoseconds"]
        assert counts["connections"] == 4


def test_message_has_the_header_of_the_library(measure: Measure) -> None:
    """The 1,044 bytes of paper 000 are those of the previous format, without the first six bytes."""
    counts = measure(messages=20)
    assert counts["encodedBytes"] / counts["sent"] == PLAIN == 1044 + 6
    assert counts["encryptNanoseconds"] + counts["decryptNanoseconds"] == 0


@pytest.mark.parametrize(
    "encryption",
    [pytest.param(each, marks=pytest.mark.release) if each not in IN_GATE else each for each in ADDED],
)
def test_an_encrypted_message_is_longer(measure: Measure, encryption: str) -> None:
    counts = measure(encryption=encryption, messages=20)
    assert counts["encodedBytes"] / counts["sent"] == PLAIN + SALT + ADDED[encryption]
    assert counts["encryptNanoseconds"] > 0
    assert counts["decryptNanoseconds"] > 0


@pytest.mark.timing
def test_an_encrypted_message_is_longer_on_the_wire(measure: Measure) -> None:
    """Thus a trial shows whether encryption was on, even if it takes no time."""
    load = {"delivery": "AtMostOnce", "pairs": 1, "in_flight": 1}
    plain, sealed = (measure(**load, encryption=encryption) for encryption in ("None", "AES128EAX"))
    ways, added = 2, SALT + ADDED["AES128EAX"]
    payload = [counts["loadBytes"] - 66 * counts["loadPackets"] for counts in (plain, sealed)]
    assert (payload[1] - payload[0]) / 200 == pytest.approx(ways * added, abs=1)


@pytest.mark.release
def test_broker_cannot_read_an_encrypted_message(broker: Mosquitto, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(bytes(range(16)))
    with listening(broker, "tierbench/seen/#") as (_, received):
        for encryption in ("None", "AES256CBC"):
            seen = {"topic": f"tierbench/seen/{encryption}", "content": "Zeros", "key_file": tmp_path / "key"}
            trial_of(broker, engine="sinetstream", encryption=encryption, messages=5, **seen)
        messages = [received.get(timeout=60) for _ in range(2 * (2 * 5 + 2))]
    readable = {message.topic.split("/")[2] for message in messages if bytes(1000) in message.payload}
    assert readable == {"None"}


@pytest.mark.parametrize("compression", ["Gzip:9", "Zstd"])
def test_compressed_and_encrypted_messages_arrive(measure: Measure, compression: str) -> None:
    counts = measure(compression=compression, encryption="AES128GCM", content="SensorJSON", size_bytes=10_000)
    assert counts["receivedBytes"] == 400 * 10_000
    assert counts["encodedBytes"] < 1_500_000
    times = ("compressNanoseconds", "encryptNanoseconds", "decryptNanoseconds", "decompressNanoseconds")
    assert all(counts[name] > 0 for name in times)


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_trial_with_tls_reports_the_cipher_and_the_handshake(broker: Mosquitto, measure: Measure, version: str) -> None:
    counts = measure(**tls_changes(broker, version))
    assert counts["cipher"].startswith("TLS_")
    assert counts["tlsNanoseconds"] > 0


@pytest.mark.parametrize("pace", [{"messages_per_second": 200}, {"as_fast_as_possible": True}, {"unacknowledged": 1}])
def test_each_pacing_sends_every_message(measure: Measure, pace: dict[str, Any]) -> None:
    assert measure(in_flight=None, **pace, messages=50)["acknowledged"] == 100


@pytest.mark.parametrize("delivery", ["AtMostOnce", "AtLeastOnce"])
def test_trial_without_subscribers_counts_what_the_broker_received(broker: Mosquitto, delivery: str) -> None:
    load = {"role": "Alone", "in_flight": None, "as_fast_as_possible": True, "messages": 100, "connections": "Kept"}
    counts = trial_of(broker, engine="sinetstream", delivery=delivery, **load)["exchange"]
    assert (counts["sent"], counts["acknowledged"], counts["errors"]) == (200, 200, 0)


def test_echo_returns_every_message(broker: Mosquitto, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(bytes(range(16)))
    with serving(tmp_path) as (agent_field, _):
        shared = {**agent_field, "barrier": "b", "parts": 2, "encryption": "AES128GCM", "key_file": tmp_path / "key"}
        publisher = Engine(tmp_path, sinetstream_plan(broker, **shared, role="Publisher", part=0))
        echo = Engine(tmp_path, sinetstream_plan(broker, **shared, role="Echo", part=1))
        published, echoed = publisher.outcome(), echo.outcome()
    assert (published.code, echoed.code) == (0, 0)
    assert checked_counts(published.trials[0])["received"] == 400
    counts = echoed.trials[0]["exchange"]
    assert counts["wireSentBytes"] > 400 * 1024, "both sockets of an echo count"
    assert counts["wireReceivedBytes"] > 400 * 1024


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"url": "kafka://127.0.0.1:1", "ready_milliseconds": 300}, "BrokerUnreachable"),
        ({"encryption": "AES128GCM", "key_file": "/absent"}, "InvalidArguments"),
        ({"compression": "Zstd:23"}, "InvalidArguments"),
        ({"url": "mqtt://127.0.0.1:1", "ready_milliseconds": 300}, "BrokerUnreachable"),
    ],
)
def test_failure_has_a_reason(broker: Mosquitto, changes: dict[str, Any], reason: str) -> None:
    assert failure_of(broker, engine="sinetstream", **changes)["reason"] == reason


def test_wrong_password_is_reported(broker: Mosquitto, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("wrong")
    failure = failure_of(broker, engine="sinetstream", password_file=tmp_path / "password")
    assert failure["reason"] == "CredentialsRefused"


@pytest.mark.parametrize(
    ("ca", "version", "listener", "reason"),
    [
        ("other-ca.crt", "TLSv1.3", "secure", "CertificateUnknown"),
        ("ca.crt", "TLSv1.3", "expired", "CertificateExpired"),
        ("ca.crt", "TLSv1.2", "expired", "TlsVersionRefused"),
    ],
)
def test_failed_tls_handshake_is_reported(broker: Mosquitto, ca: str, version: str, listener: str, reason: str) -> None:
    where = {"url": f"mqtts://127.0.0.1:{getattr(broker, listener)}", "server_name": "localhost"}
    failure = failure_of(broker, engine="sinetstream", **where, tls=version, ca_file=broker.folder / ca)
    assert failure["reason"] == reason


@pytest.mark.timing
def test_broker_that_loses_its_sessions_loses_few_messages(own_broker: Mosquitto, tmp_path: Path) -> None:
    """Sessions of the library end with their connections, so a message may be lost at every delivery."""

    def kill_and_start(_: Engine) -> None:
        own_broker.kill()
        own_broker.start()

    load = {"pairs": 1, "delivery_timeout_milliseconds": 4000}
    outcome = strike(
        lambda factor: Engine(tmp_path, sinetstream_plan(own_broker, messages=1000 * factor, **load)),
        kill_and_start,
        sending_to=own_broker,
    )
    (trial,) = outcome.trials
    counts = trial["exchange"]
    assert trial["outcome"] == "Completed"
    assert counts["sent"] == counts["received"] + counts["lost"]
    assert counts["reconnects"] == counts["errorCauses"]["Disconnected"] == 2
    assert counts["lost"] <= 16


@pytest.mark.timing
def test_packet_longer_than_any_message_ends_the_connection(broker: Mosquitto, tmp_path: Path) -> None:
    """The connection ends, and is made again."""
    pace = {"in_flight": None, "interval_milliseconds": 5, "max_in_flight": 8, "pairs": 1}
    with listening(broker, "tierbench/long/#") as (other_client, received):
        first: MQTTMessage

        def start(factor: int) -> Engine:
            nonlocal first
            topic = f"tierbench/long/{factor}"
            load = {"messages": 200 * factor, "delivery_timeout_milliseconds": 4000}
            engine = Engine(tmp_path, sinetstream_plan(broker, **pace, **load, topic=topic))
            messages = iter(lambda: received.get(timeout=HANG_SECONDS), None)
            first = next(message for message in messages if message.topic.startswith(f"{topic}/t1/"))
            return engine

        def send_long_message(_: Engine) -> None:
            other_client.publish(first.topic, bytes(150_000), qos=1).wait_for_publish(HANG_SECONDS)

        (trial,) = strike(start, send_long_message).trials
    counts = trial["exchange"]
    assert counts["reconnects"] == counts["errorCauses"]["Disconnected"] == 1
    assert "Corrupt" not in counts["errorCauses"]


@pytest.mark.timing
def test_trial_fails_if_the_broker_does_not_return(own_broker: Mosquitto, tmp_path: Path) -> None:
    pace = {"in_flight": None, "interval_milliseconds": 5, "max_in_flight": 8, "pairs": 1}

    def start(factor: int) -> Engine:
        own_broker.start()
        load = {"messages": 200 * factor, "delivery_timeout_milliseconds": 2000}
        return Engine(tmp_path, sinetstream_plan(own_broker, **pace, **load))

    outcome = strike(start, lambda _: own_broker.kill(), sending_to=own_broker)
    (trial,) = outcome.trials
    assert (trial["outcome"], trial["failure"]["reason"]) == ("Failed", "BrokerUnreachable")


@pytest.mark.parametrize(
    "levels",
    [
        {"delivery": "AtLeastOnce", "compression": "Zstd:9", "encryption": "AES256CBC", "tls": "TLSv1.3"},
        {"delivery": "AtMostOnce", "compression": "None", "encryption": "None", "tls": "None"},
    ],
)
def test_the_library_reads_the_configuration_of_an_advice(
    broker: Mosquitto, tmp_path: Path, levels: dict[str, str]
) -> None:
    port = broker.plain if levels["tls"] == "None" else broker.secure
    text = re.sub(r"BROKER:\d+", f"localhost:{port}", configuration("lte", levels, []))
    text = text.replace("ca.crt", str(broker.folder / "ca.crt")).replace("TOPIC", "tierbench/advice")
    body = yaml.safe_load(text)
    account = {
        "username": (broker.folder / "username").read_text(),
        "password": (broker.folder / "password").read_text(),
    }
    body["config"]["lte"]["type_spec"] = {"username_pw": account}
    (tmp_path / "config.yml").write_text(yaml.safe_dump(body))
    command = [sys.executable, "-c", _ROUND_TRIP, str(tmp_path / "config.yml")]
    outcome = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(LIBRARIES)}, capture_output=True, check=True)
    assert outcome.stdout == b"sent\n"
