"""The engine speaks MQTT 5, and counts messages as with 3.1.1."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread

import pytest

from tests.paho.broker import Mosquitto
from tests.paho.engine import outcome_of, trial_of

LEVEL_OFFSET = 8  # in a CONNECT, after its header and the name MQTT
REFUSED = bytes([0x20, 3, 0, 0x84, 0])  # unsupported protocol version


@contextmanager
def refusing() -> Iterator[tuple[int, "SimpleQueue[bytes]"]]:
    """Runs a broker that refuses the version of every CONNECT. Yields its port and a queue of what it receives."""
    received = SimpleQueue[bytes]()

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                if first := connection.recv(1024):
                    received.put(first)
                    connection.sendall(REFUSED)

    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1], received
        server.shutdown(socket.SHUT_RDWR)


def test_broker_without_mqtt_5_is_reported(broker: Mosquitto) -> None:
    with refusing() as (port, received):
        outcome = outcome_of(broker, url=f"mqtt://127.0.0.1:{port}", mqtt={"version": "5"}, pairs=1)
        assert received.get()[LEVEL_OFFSET] == 5
    assert outcome.reason == "MqttVersionRefused"


@pytest.mark.parametrize("delivery", ["AtMostOnce", "AtLeastOnce", "ExactlyOnce"])
def test_every_message_is_counted_once(broker: Mosquitto, delivery: str) -> None:
    counts = trial_of(broker, mqtt={"version": "5"}, delivery=delivery)["exchange"]
    assert (counts["sent"], counts["received"], counts["errors"], counts["duplicated"]) == (400, 400, 0, 0)
    assert counts["acknowledged"] == (0 if delivery == "AtMostOnce" else 400)
