"""Another client of the broker, which receives what the engine sends."""

from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Event

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion

from tests.paho.broker import PASSWORD, USERNAME, Mosquitto
from tests.paho.engine import HANG_SECONDS


@contextmanager
def listening(broker: Mosquitto, topic: str) -> Iterator[tuple[Client, "SimpleQueue[MQTTMessage]"]]:
    """Yields a client that is subscribed to a topic, and a queue of the messages that it receives."""
    subscribed, received = Event(), SimpleQueue[MQTTMessage]()
    client = Client(CallbackAPIVersion.VERSION2)
    client.username_pw_set(USERNAME, PASSWORD)
    client.on_subscribe = lambda *_: subscribed.set()
    client.on_connect = lambda client, *_: client.subscribe(topic)
    client.on_message = lambda _client, _data, message: received.put(message)
    client.connect("127.0.0.1", broker.plain)
    client.loop_start()
    assert subscribed.wait(HANG_SECONDS)
    yield client, received
    client.disconnect()
    client.loop_stop()
