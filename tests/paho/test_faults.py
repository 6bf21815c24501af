"""What goes wrong has a reason of its own, in time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion

from images.paho.src.tierbench_paho.arguments import parse
from images.paho.src.tierbench_paho.contract import FailureError
from tests.paho.broker import MESSAGE_SIZE_LIMIT, PASSWORD, USERNAME, Mosquitto
from tests.paho.engine import PATIENCE_SECONDS, Engine, Said, flags

Run = Callable[..., Said]


@contextmanager
def listening(
    broker: Mosquitto, on_message: Callable[[Client, object, MQTTMessage], None], trial: str = "t1"
) -> Iterator[None]:
    """Another client that hears the messages of a trial."""
    ready = Event()
    client = Client(CallbackAPIVersion.VERSION2)
    client.username_pw_set(USERNAME, PASSWORD)
    client.on_subscribe = lambda *_: ready.set()
    client.on_connect = lambda client, *_: client.subscribe(f"tierbench/test/{trial}/#")
    client.on_message = on_message
    client.connect("127.0.0.1", broker.plain)
    client.loop_start()
    assert ready.wait(PATIENCE_SECONDS)
    yield
    client.disconnect()
    client.loop_stop()


def await_first_message(broker: Mosquitto) -> None:
    came = Event()
    with listening(broker, lambda *_: came.set()):
        assert came.wait(PATIENCE_SECONDS)


def test_a_wrong_password(run: Run, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("wrong")
    said = run(password_file=tmp_path / "password")
    assert (said.code, said.trials, said.reason) == (1, [], "CredentialsRefused")


@pytest.mark.parametrize(
    ("ca", "name", "version", "listener", "reason"),
    [
        ("other-ca.crt", "localhost", "TLSv1.3", "secure", "CertificateUnknown"),
        ("ca.crt", "elsewhere", "TLSv1.3", "secure", "CertificateUnknown"),
        ("ca.crt", "localhost", "TLSv1.3", "expired", "CertificateExpired"),
        ("ca.crt", "localhost", "TLSv1.2", "expired", "TlsVersionRefused"),
    ],
)
def test_a_certificate_that_is_not_to_be_trusted(
    run: Run, broker: Mosquitto, ca: str, name: str, version: str, listener: str, reason: str
) -> None:
    url = f"mqtts://127.0.0.1:{getattr(broker, listener)}"
    said = run(url=url, tls=version, ca_file=broker.folder / ca, server_name=name)
    assert (said.code, said.trials, said.reason) == (1, [], reason)


def test_an_unreachable_broker(run: Run) -> None:
    said = run(url="mqtt://127.0.0.1:1", ready_milliseconds=500)
    assert (said.code, said.trials, said.reason) == (1, [], "BrokerUnreachable")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1", "[::ffff:127.0.0.1]"])
def test_a_name_that_leads_to_a_network_that_is_refused(run: Run, broker: Mosquitto, host: str) -> None:
    said = run(url=f"mqtt://{host}:{broker.plain}", refused_networks="::1/128,127.0.0.0/8")
    assert (said.code, said.trials, said.reason) == (1, [], "AddressRefused")


def test_a_name_that_leads_elsewhere_as_well(run: Run, broker: Mosquitto) -> None:
    said = run(url=f"mqtt://localhost:{broker.plain}", refused_networks="169.254.0.0/16,::1/128")
    assert (said.code, len(said.trials), said.reason) == (0, 1, None)


def test_a_name_that_is_not_known(run: Run) -> None:
    said = run(url="mqtt://no-such-host.invalid:1883", refused_networks="169.254.0.0/16")
    assert (said.code, said.trials, said.reason) == (1, [], "LookupFailed")


def test_a_topic_that_the_account_may_not_use(run: Run) -> None:
    said = run(topic="elsewhere", ready_milliseconds=500, patience_milliseconds=300)
    assert (said.code, said.reason) in {(1, "NothingDelivered"), (1, "NotAuthorized")}


def test_a_payload_that_the_broker_does_not_take(run: Run) -> None:
    said = run(size=MESSAGE_SIZE_LIMIT + 1000, patience_milliseconds=500)
    assert (said.code, said.reason) == (1, "PayloadNotDelivered")


def test_told_to_end(broker: Mosquitto, tmp_path: Path) -> None:
    slow = flags(broker, in_flight=None, interval_milliseconds=50, messages=20, trials="1-100")
    engine = Engine(tmp_path, *slow)
    engine.await_line("Trial")
    engine.await_line("TrialStarted")
    engine.tell_to_end()
    said = engine.said()
    assert (said.code, said.reason) == (143, "Interrupted")
    assert said.seal["trials"] == len(said.trials) == 1


def test_a_broker_that_forgets(own_broker: Mosquitto, tmp_path: Path) -> None:
    engine = Engine(tmp_path, *flags(own_broker, messages=4000, patience_milliseconds=2500, pairs=1))
    await_first_message(own_broker)
    own_broker.kill_with_messages_under_way()
    own_broker.start()
    trial = engine.said().trials[0]
    counts = trial["exchange"]
    assert trial["outcome"] == "Completed"
    assert counts["sent"] == counts["received"] + counts["lost"] == 4000
    assert counts["received"] > 3000
    assert counts["reconnects"] == counts["errorCauses"]["Disconnected"] == 2
    # Eight are under way, and each makes room for another once it is back, which may be before it is acknowledged.
    assert 0 < counts["retried"] <= 16


@pytest.mark.parametrize("delivery", ["AtLeastOnce", "ExactlyOnce"])
def test_a_broker_that_keeps_its_sessions_loses_nothing(own_broker: Mosquitto, tmp_path: Path, delivery: str) -> None:
    engine = Engine(tmp_path, *flags(own_broker, messages=4000, patience_milliseconds=4000, pairs=1, delivery=delivery))
    await_first_message(own_broker)
    own_broker.restart()
    counts = engine.said().trials[0]["exchange"]
    assert (counts["sent"], counts["received"], counts["lost"]) == (4000, 4000, 0)
    assert counts["reconnects"] == 2
    # At QoS 2 too: Mosquitto 2.0 forgets over a restart which messages it had released, and sends them once more.
    assert counts["duplicated"] <= 16


def test_no_session_stays_behind(own_broker: Mosquitto, tmp_path: Path) -> None:
    assert Engine(tmp_path, *flags(own_broker, delivery="ExactlyOnce")).said().code == 0
    own_broker.restart()
    kept = (own_broker.folder / "mosquitto.db").read_bytes()
    assert b"-1-0-s" not in kept
    assert b"-1-0-p" not in kept


def test_what_others_send_is_not_taken_for_ours(broker: Mosquitto, tmp_path: Path) -> None:
    meddled = Event()

    def meddle(client: Client, _data: object, message: MQTTMessage) -> None:
        if not meddled.is_set():
            meddled.set()
            client.publish(message.topic, message.payload)
            client.publish(message.topic, b"x" * 1024)

    with listening(broker, meddle):
        paced = flags(broker, in_flight=None, interval_milliseconds=10, messages=100, pairs=1)
        counts = Engine(tmp_path, *paced).said().trials[0]["exchange"]
    assert (counts["received"], counts["duplicated"]) == (100, 1)
    assert (counts["errors"], counts["errorCauses"]["Corrupt"]) == (1, 1)


def test_a_broker_that_stays_away(own_broker: Mosquitto, tmp_path: Path) -> None:
    engine = Engine(tmp_path, *flags(own_broker, in_flight=None, interval_milliseconds=10, messages=1000, trials="1-2"))
    await_first_message(own_broker)
    own_broker.kill()
    said = engine.said()
    assert said.code == 0
    assert [(trial["outcome"], trial["failure"]["reason"]) for trial in said.trials] == [
        ("Failed", "BrokerUnreachable"),
        ("Failed", "BrokerUnreachable"),
    ]


USAGE: list[dict[str, Any]] = [
    {"url": "kafka://127.0.0.1:9092"},
    {"url": "mqtts://127.0.0.1:8883"},
    {"as_fast_as_possible": True},
    {"in_flight": None},
    {"messages": None},
    {"size": 1},
    {"content": "Ratio5"},
    {"compression": "Zstd:23"},
    {"encryption": "AES128GCM"},
    {"trials": "2-1"},
    {"window": 70_000},
    {"pairs": 200},
    {"role": "Echo"},
    {"username_file": "/absent"},
    {"surprise": 1},
]


@pytest.mark.parametrize("changes", USAGE, ids=",".join)
def test_nonsense_on_the_command_line(broker: Mosquitto, changes: dict[str, Any]) -> None:
    with pytest.raises(FailureError) as raised:
        parse(["broker", *flags(broker, **changes)])
    assert raised.value.reason == "InvalidArguments"


def test_own_messages_that_are_missing_are_named(run: Run) -> None:
    assert run(content_folder="/absent").reason == "MessagesUnusable"


def test_nonsense_is_sealed(run: Run) -> None:
    said = run(size=1)
    assert (said.code, said.trials, said.reason) == (1, [], "InvalidArguments")
