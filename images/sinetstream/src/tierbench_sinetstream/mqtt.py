"""Access to internals of the library's plugin for MQTT: sockets, confirmations and broken connections."""

import ssl
from queue import Empty, SimpleQueue
from threading import Event, Thread
from time import monotonic_ns
from typing import Any, ClassVar, Final

from paho.mqtt import client as paho
from sinetstream import SinetError
from sinetstreamplugin import mqtt as plugin

from tierbench_engine import tls
from tierbench_engine.pipe import FailureError, Json
from tierbench_engine.sockets import local_address, tcp_info

from .settings import parameters
from .sides import Changed, Make

_RECONNECT_SECONDS: Final = 1
_ANSWER_SECONDS: Final = 10.0
_CONFIRM_SECONDS: Final = 600.0  # longer than any harness waits
_ENVELOPE_BYTES: Final = 64 << 10  # of a packet besides its message: topic, and what the library adds
_BAD_CREDENTIALS: Final = (4, 5)  # bad user name or password, not authorized
_REFUSED: Final = 128

_receive = paho.Client._sock_recv  # super() takes longer, and a message takes nine


class _Client(paho.Client):
    """A client that refuses packets longer than the largest message needs."""

    most_bytes = _ENVELOPE_BYTES

    def _sock_recv(self, bufsize: int) -> bytes:
        """Receives bytes. Paho requests the whole rest of a packet, with the length that the broker announces."""
        if bufsize > self.most_bytes:
            raise ConnectionError(f"the broker announces a packet of {bufsize} bytes")
        received: bytes = _receive(self, bufsize)
        return received


plugin.Client = _Client  # the plugin creates its client


class _Link:
    """The connection of one side to an MQTT broker."""

    parameters: ClassVar[Json] = {}

    def __init__(self, make: Make, asked: Json, largest: int, changed: Changed) -> None:
        self.side = make({"type": "mqtt", "brokers": "broker", **self.parameters, **parameters(asked)})
        self._changed = changed
        self._plugin = self.side._plugin
        self._client: Any = self._plugin._mqttc
        self._answers: SimpleQueue[FailureError | None] = SimpleQueue()  # of subscriptions
        self._opened = self._closing = self._waits = False
        self._handshake, self._last_info = 0, ""
        self._made: Json = {}
        self._set(asked, largest)

    def _set(self, asked: Json, largest: int) -> None:
        self._plugin.host, self._plugin.port = asked["host"], asked["port"]
        self._plugin.topics = []  # a reader subscribes on request
        client = self._client
        client.most_bytes = largest + _ENVELOPE_BYTES
        client.reconnect_delay_set(_RECONNECT_SECONDS, _RECONNECT_SECONDS)
        if asked["username"]:
            client.username_pw_set(asked["username"], asked["password"] or None)
        if asked["tls"] != "None":
            client.tls_set_context(tls.client_context(asked["tls"], asked["caFile"], asked["serverName"]))
        client.on_socket_open, client.on_socket_close = self._on_socket_open, self._on_socket_close
        client.on_connect, client.on_disconnect = self._on_connect, self._on_disconnect
        client.on_subscribe = self._on_subscribe

    def open(self) -> Json:
        """Connects.

        Raises:
            FailureError: it cannot connect.
        """
        started = monotonic_ns()
        try:
            self.side.open()
        except SinetError as error:
            raise self._failure(error) from error
        self._made["connectNanoseconds"] = max(monotonic_ns() - started - self._handshake, 0)
        self._made["tlsNanoseconds"] = self._handshake
        self._opened = True
        return self._made

    def _failure(self, error: SinetError) -> FailureError:
        if isinstance(error.__cause__, ssl.SSLError):
            return tls.failure(error.__cause__)
        reason = "CredentialsRefused" if self._plugin._connection_result in _BAD_CREDENTIALS else ""
        return FailureError(reason, f"{error}: {error.__cause__}" if error.__cause__ else str(error))

    def subscribe(self, topic: str) -> None:
        """Returns when the broker has confirmed.

        Raises:
            FailureError: it refuses.
        """
        self._plugin.topics, self._waits = [topic], True
        self._client.subscribe(topic, self._plugin.qos)
        try:
            failure = self._answers.get(timeout=_ANSWER_SECONDS)
        except Empty:
            failure = FailureError("", f"the broker does not answer within {_ANSWER_SECONDS:g} s")
        self._waits = False
        if failure is not None:
            raise failure

    def write_to(self, topic: str) -> None:
        """Sends messages to this topic from now on."""
        self._plugin.topic = topic

    def connected(self) -> bool:
        """Returns whether a message can be sent."""
        connected: bool = self._client.is_connected()
        return connected

    def confirm(self) -> None:
        """Returns when the broker has all messages: it acknowledges an unsubscribe after them.

        Raises:
            FailureError: it does not answer.
        """
        answered = Event()
        self._client.on_unsubscribe = lambda *_: answered.set()
        self._client.unsubscribe("none")
        if not answered.wait(_CONFIRM_SECONDS):
            raise FailureError("", "the broker does not answer")

    def tcp_infos(self) -> list[str]:
        """Returns the counters of its socket."""
        return [tcp_info(self._client.socket())]

    def close(self, _: Thread) -> None:
        """Disconnects from the broker."""
        self._closing = True
        self.side.close()

    def _on_socket_open(self, _client: Any, _data: Any, connection: Any) -> None:
        if isinstance(connection, tls.TimedSocket):
            self._handshake = connection.handshake_nanoseconds
            self._made["cipher"] = tls.cipher(connection)
        self._made["local"] = local_address(connection)

    def _on_socket_close(self, _client: Any, _data: Any, connection: Any) -> None:
        self._last_info = tcp_info(connection)

    def _on_connect(self, client: Any, data: Any, flags: Any, code: int, properties: Any = None) -> None:
        self._plugin._on_connect(client, data, flags, code, properties)
        if self._opened and code == 0 and not getattr(self._plugin, "topics", None):
            self._changed(True, "")

    def _on_subscribe(self, _client: Any, _data: Any, _identifier: int, granted: list[int]) -> None:
        failure, topic = None, self._plugin.topics[0]
        if granted[0] >= _REFUSED:
            message = f"the broker refuses the subscription to {topic}: allow this account to read there"
            failure = FailureError("NotAuthorized", message)
        elif granted[0] < self._plugin.qos:
            message = f"the broker grants QoS {granted[0]} instead of {self._plugin.qos}: choose another delivery"
            failure = FailureError("LowerQosGranted", message)
        if self._waits:
            self._answers.put(failure)
        elif failure is None:
            self._changed(True, "")

    def _on_disconnect(self, _client: Any, _data: Any, _code: int) -> None:
        if self._opened and not self._closing:
            self._changed(False, self._last_info)


Writer = _Link


class Reader(_Link):
    """The connection of a reader, which ends soon after it is closed."""

    parameters: ClassVar[Json] = {"receive_timeout_ms": 500}
