"""Each fault is reported in time, with its own reason."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt.client import MQTTMessage

from tests.paho.broker import MESSAGE_SIZE_LIMIT, Mosquitto
from tests.paho.engine import HANG_SECONDS, Engine, Outcome, failure_of, plan, trial_of
from tests.paho.listener import listening
from tests.paho.strike import strike
from tests.plans import Plan

Run = Callable[..., Outcome]


def paced(broker: Mosquitto, messages: int, **changes: object) -> Plan:
    """Returns a plan for one pair that sends a message every 5 ms, and has at most eight in flight."""
    pace = {"in_flight": None, "interval_milliseconds": 5, "max_in_flight": 8, "pairs": 1}
    return plan(broker, **pace, messages=messages, **changes)


def test_wrong_password_is_reported(run: Run, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("wrong")
    outcome = run(password_file=tmp_path / "password")
    assert (outcome.code, outcome.trials, outcome.reason) == (1, [], "CredentialsRefused")


@pytest.mark.parametrize(
    ("ca", "name", "version", "listener", "reason"),
    [
        ("other-ca.crt", "localhost", "TLSv1.3", "secure", "CertificateUnknown"),
        ("ca.crt", "elsewhere", "TLSv1.3", "secure", "CertificateUnknown"),
        ("ca.crt", "localhost", "TLSv1.3", "expired", "CertificateExpired"),
        ("ca.crt", "localhost", "TLSv1.2", "expired", "TlsVersionRefused"),
    ],
)
def test_failed_tls_handshake_is_reported(
    broker: Mosquitto, ca: str, name: str, version: str, listener: str, reason: str
) -> None:
    url = f"mqtts://127.0.0.1:{getattr(broker, listener)}"
    failure = failure_of(broker, url=url, tls=version, ca_file=broker.folder / ca, server_name=name)
    assert failure["reason"] == reason


def test_unreachable_broker_is_reported(broker: Mosquitto) -> None:
    assert failure_of(broker, url="mqtt://127.0.0.1:1", ready_milliseconds=300)["reason"] == "BrokerUnreachable"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::ffff:127.0.0.1]"])
def test_broker_in_a_refused_network_is_not_used(broker: Mosquitto, host: str) -> None:
    failure = failure_of(broker, url=f"mqtt://{host}:{broker.plain}", refused_networks=["::1/128", "127.0.0.0/8"])
    assert failure["reason"] == "AddressRefused"


def test_broker_with_one_allowed_address_is_used(broker: Mosquitto) -> None:
    trial = trial_of(broker, url=f"mqtt://localhost:{broker.plain}", refused_networks=["169.254.0.0/16", "::1/128"])
    assert trial["outcome"] == "Completed"


def test_unknown_host_name_is_reported(broker: Mosquitto) -> None:
    failure = failure_of(broker, url="mqtt://no-such-host.invalid:1883", ready_milliseconds=300)
    assert failure["reason"] == "BrokerUnreachable"
    assert "no-such-host.invalid" in failure["message"]


@pytest.mark.timing
def test_forbidden_topic_is_reported(broker: Mosquitto) -> None:
    failure = failure_of(broker, topic="elsewhere", ready_milliseconds=1000)
    assert failure["reason"] in {"BrokerUnreachable", "NotAuthorized"}


@pytest.mark.timing
def test_payload_larger_than_the_brokers_limit_is_reported(broker: Mosquitto) -> None:
    failure = failure_of(broker, size_bytes=MESSAGE_SIZE_LIMIT + 1000, delivery_timeout_milliseconds=500)
    assert failure["reason"] == "PayloadNotDelivered"


@pytest.mark.timing
def test_terminated_client_seals_its_completed_trials(broker: Mosquitto, tmp_path: Path) -> None:
    outcome = strike(lambda load: Engine(tmp_path, paced(broker, 50 * load, trials=100)), Engine.terminate, trial=2)
    assert (outcome.code, outcome.reason) == (143, "Interrupted")
    assert outcome.seal["trials"] == len(outcome.trials) == 1


@pytest.mark.timing
def test_broker_that_loses_its_sessions_loses_few_messages(own_broker: Mosquitto, tmp_path: Path) -> None:
    def kill_and_start(_: Engine) -> None:
        own_broker.kill()
        own_broker.start()

    outcome = strike(
        lambda load: Engine(
            tmp_path, plan(own_broker, messages=1000 * load, pairs=1, delivery_timeout_milliseconds=4000)
        ),
        kill_and_start,
        sending_to=own_broker,
    )
    (trial,) = outcome.trials
    counts = trial["exchange"]
    assert trial["outcome"] == "Completed"
    assert counts["sent"] == counts["received"] + counts["lost"]
    assert counts["reconnects"] == counts["errorCauses"]["Disconnected"] == 2
    # Eight are in flight. One that is back makes room for another, perhaps before its acknowledgement.
    assert counts["lost"] <= 16
    assert 0 < counts["retried"] <= 16


@pytest.mark.timing
@pytest.mark.parametrize("delivery", ["AtLeastOnce", "ExactlyOnce"])
def test_a_broker_that_keeps_its_sessions_loses_nothing(own_broker: Mosquitto, tmp_path: Path, delivery: str) -> None:
    saved = b""

    def restart(_: Engine) -> None:
        nonlocal saved
        own_broker.restart()
        saved = own_broker.saved()

    outcome = strike(
        lambda load: Engine(tmp_path, plan(own_broker, messages=1000 * load, pairs=1, delivery=delivery)),
        restart,
        sending_to=own_broker,
    )
    assert b"-t1-0-s" in saved
    assert b"-t1-0-p" in saved
    counts = outcome.trials[0]["exchange"]
    assert (counts["received"], counts["lost"]) == (counts["sent"], 0)
    assert counts["reconnects"] == 2
    # At QoS 2 too, because Mosquitto 2.0 sends released messages again after a restart.
    assert counts["duplicated"] <= 16


def test_client_leaves_no_session_at_the_broker(own_broker: Mosquitto, tmp_path: Path) -> None:
    assert Engine(tmp_path, plan(own_broker, delivery="ExactlyOnce")).outcome().code == 0
    own_broker.restart()
    assert b"-t1-0-s" not in own_broker.saved()
    assert b"-t1-0-p" not in own_broker.saved()


@pytest.mark.timing
def test_messages_of_another_client_do_not_count_as_received(broker: Mosquitto, tmp_path: Path) -> None:
    with listening(broker, "tierbench/others/#") as (other_client, received):
        first: MQTTMessage

        def start(load: int) -> Engine:
            nonlocal first
            topic = f"tierbench/others/{load}"
            engine = Engine(tmp_path, paced(broker, 100 * load, topic=topic))
            messages = iter(lambda: received.get(timeout=HANG_SECONDS), None)
            first = next(message for message in messages if message.topic.startswith(f"{topic}/t1/"))
            return engine

        def send_copies(_: Engine) -> None:
            for payload in (first.payload, b"x" * 1024):
                other_client.publish(first.topic, payload, qos=1).wait_for_publish(HANG_SECONDS)

        counts = strike(start, send_copies).trials[0]["exchange"]
    assert (counts["received"], counts["duplicated"]) == (counts["sent"], 1)
    assert (counts["errors"], counts["errorCauses"]["Corrupt"]) == (1, 1)


@pytest.mark.timing
def test_trials_fail_if_the_broker_does_not_return(own_broker: Mosquitto, tmp_path: Path) -> None:
    def start(load: int) -> Engine:
        own_broker.start()
        return Engine(tmp_path, paced(own_broker, 200 * load, delivery_timeout_milliseconds=2000, trials=2))

    outcome = strike(start, lambda _: own_broker.kill(), sending_to=own_broker)
    assert outcome.code == 0
    assert [(trial["outcome"], trial["failure"]["reason"]) for trial in outcome.trials] == [
        ("Failed", "BrokerUnreachable"),
        ("Failed", "BrokerUnreachable"),
    ]


INVALID_PLANS: list[dict[str, Any]] = [
    {"url": "kafka://127.0.0.1:9092"},
    {"url": "mqtts://127.0.0.1:8883"},
    {"pacing": {"type": "OpenLoop", "inFlight": 1}},
    {"pacing": {"type": "ClosedLoop"}},
    {"in_flight": None},
    {"messages": None},
    {"size_bytes": 1},
    {"content": "Ratio0"},
    {"compression": "Zstd:23"},
    {"encryption": "AES128GCM"},
    {"trials": 0},
    {"max_in_flight": 70_000},
    {"warm_rounds": -1},
    {"pairs": 257},
    {"role": "Echo"},
    {"surprise": 1},
]


@pytest.mark.parametrize("changes", INVALID_PLANS, ids=",".join)
def test_invalid_plan_is_refused(broker: Mosquitto, changes: dict[str, Any]) -> None:
    assert failure_of(broker, **changes)["reason"] == "InvalidArguments"


def test_missing_own_messages_are_reported(broker: Mosquitto) -> None:
    assert failure_of(broker, content_folder="/absent")["reason"] == "MessagesUnusable"


def test_missing_secret_is_reported(broker: Mosquitto) -> None:
    assert failure_of(broker, username_file="/absent")["reason"] == "SecretUnusable"


def test_refusal_of_an_invalid_plan_is_sealed(run: Run) -> None:
    outcome = run(size_bytes=1)
    assert (outcome.code, outcome.trials, outcome.reason) == (1, [], "InvalidArguments")
