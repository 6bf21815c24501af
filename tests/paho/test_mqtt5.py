"""MQTT 5: what is on the wire, and that messages are counted as with 3.1.1."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread

import pytest

from tests.paho.broker import Mosquitto
from tests.paho.engine import outcome_of, trial_of

LEVEL_AT = 8  # in a CONNECT, after its length, and MQTT with the length of this
REFUSED = bytes([0x20, 3, 0, 0x84, 0])  # unsupported protocol version


@contextmanager
def refusing() -> Iterator[tuple[int, "SimpleQueue[bytes]"]]:
    """The port of a broker that refuses the version of every CONNECT, and what has come."""
    came = SimpleQueue[bytes]()

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                if first := connection.recv(1024):
                    came.put(first)
                    connection.sendall(REFUSED)

    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1], came
        server.shutdown(socket.SHUT_RDWR)


def test_a_broker_without_this_version_is_named(broker: Mosquitto) -> None:
    with refusing() as (port, came):
        outcome = outcome_of(broker, url=f"mqtt://127.0.0.1:{port}", mqtt={"version": "5"}, pairs=1)
        assert came.get()[LEVEL_AT] == 5
    assert outcome.reason == "MqttVersionRefused"


@pytest.mark.parametrize("delivery", ["AtMostOnce", "AtLeastOnce", "ExactlyOnce"])
def test_every_message_is_counted_once(broker: Mosquitto, delivery: str) -> None:
    counts = trial_of(broker, mqtt={"version": "5"}, delivery=delivery)["exchange"]
    assert (counts["sent"], counts["received"], counts["errors"], counts["duplicated"]) == (400, 400, 0, 0)
    assert counts["acknowledged"] == (0 if delivery == "AtMostOnce" else 400)
