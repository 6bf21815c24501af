"""An MQTT connection with paho-mqtt that reconnects and reports."""

import socket
import ssl
import sys
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Lock
from time import monotonic_ns
from typing import Any, Final

from paho.mqtt.client import Client, ConnectFlags, DisconnectFlags, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from tierbench_engine import tls
from tierbench_engine.content import Content
from tierbench_engine.pipe import ACKNOWLEDGED, ARRIVED, CORRUPT, SENT, FailureError, Json, Pipe
from tierbench_engine.run import Run
from tierbench_engine.sockets import local_address, tcp_info

from .envelope import Codec, CorruptError

DELIVERIES: Final = ("AtMostOnce", "AtLeastOnce", "ExactlyOnce")
VERSION5: Final = "5"

_CONNECT_SECONDS: Final = 5.0
_RECONNECT_SECONDS: Final = 1
_ANSWER_SECONDS: Final = 10.0
_FORGET_SECONDS: Final = 1.0
_CONFIRM_SECONDS: Final = 600.0  # longer than any harness waits
_KEEPALIVE_SECONDS: Final = 60
_SESSION_SECONDS: Final = 3600  # that a session of MQTT 5 outlives its connection
_REFUSALS: Final = {
    0x84: "MqttVersionRefused",  # unsupported protocol version
    0x86: "CredentialsRefused",  # bad user name or password
    0x87: "CredentialsRefused",  # not authorized
}
_ENVELOPE_BYTES: Final = 64 << 10  # of a packet besides its message: topic, and what codec and cipher add

_Outcome = FailureError | None
_receive = Client._sock_recv  # super() takes longer, and a message takes nine


class _Client(Client):
    """A client that refuses packets longer than the largest message needs."""

    most_bytes = _ENVELOPE_BYTES

    def _sock_recv(self, bufsize: int) -> bytes:
        """Receives bytes. Paho requests the whole rest of a packet, with the length that the broker announces."""
        if bufsize > self.most_bytes:
            raise ConnectionError(f"the broker announces a packet of {bufsize} bytes")
        return _receive(self, bufsize)


class Connection:
    """Requests are sequential, except for `release`, `count` and `close`. Paho's thread calls back."""

    def __init__(self, asked: Json, content: Content, pipe: Pipe) -> None:
        self.number: int = asked["connection"]
        self.content = content
        self._asked, self._pipe = asked, pipe
        self._qos = DELIVERIES.index(asked["delivery"])
        self._five = asked.get("mqttVersion") == VERSION5
        key = Path(asked["keyFile"]).read_bytes() if asked["encryption"] != "None" else None
        self._encoder, self._decoder = Codec(asked["compression"], key), Codec(asked["compression"], key)
        self._outcome: SimpleQueue[_Outcome] = SimpleQueue()  # of the first attempt to connect, then of subscriptions
        self._opened = self._up = self._closing = False
        self._topic = self._echo = ""
        self._attempted = self._handshake = self._down_since = 0
        self._made: Json = {}
        self._last_info = ""
        self._run: Run | None = None
        self.back: Run | None = None  # the run whose messages arrive here
        self._lock = Lock()
        self._unacknowledged: dict[int, tuple[int, int]] = {}  # number and time by paho's identifier
        self._early: set[int] = set()
        # At QoS 1 and 2 the session outlives the connection, as their guarantees need; close() ends it.
        self._client = self._make_client(clean=not self._qos)

    def _make_client(self, clean: bool) -> Client:
        asked = self._asked
        client = _Client(
            CallbackAPIVersion.VERSION2,
            asked["name"],
            clean_session=None if self._five else clean,
            protocol=MQTTProtocolVersion.MQTTv5 if self._five else MQTTProtocolVersion.MQTTv311,
        )
        client.most_bytes = self.content.largest + _ENVELOPE_BYTES
        client.max_inflight_messages_set(0)  # the run has its own window
        client.reconnect_delay_set(_RECONNECT_SECONDS, _RECONNECT_SECONDS)
        client.connect_timeout = _CONNECT_SECONDS
        if asked["username"]:
            client.username_pw_set(asked["username"], asked["password"] or None)
        if asked["tls"] != "None":
            client.tls_set_context(tls.client_context(asked["tls"], asked["caFile"], asked["serverName"]))
        return client

    def connect(self) -> Json:
        """Connects in a thread of paho.

        Raises:
            FailureError: the first attempt failed.
        """
        client = self._client
        client.on_pre_connect = self._on_pre_connect
        client.on_socket_open = self._on_socket_open
        client.on_socket_close = self._on_socket_close
        client.on_connect = self._on_connect
        client.on_connect_fail = self._on_connect_fail
        client.on_subscribe = self._on_subscribe
        client.on_disconnect = self._on_disconnect
        if self._qos:
            client.on_publish = self._on_acknowledged
        self._connect(client)
        client.loop_start()
        failure = self._await_outcome()
        if failure is not None:
            self._closing = True
            client.disconnect()
            client.loop_stop()
            raise failure
        return self._made

    def _connect(self, client: Client) -> None:
        client.connect_async(
            self._asked["host"],
            self._asked["port"],
            _KEEPALIVE_SECONDS,
            clean_start=not self._qos,  # of MQTT 5. Mosquitto 2.0 saves no session that began with it
            properties=self._session(PacketTypes.CONNECT, _SESSION_SECONDS),
        )

    def _session(self, kind: int, seconds: int) -> Properties | None:
        """Returns the properties of a packet, with the time for which MQTT 5 keeps the session of QoS 1 and 2."""
        if not (self._five and self._qos):
            return None
        properties = Properties(kind)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = seconds
        return properties

    def subscribe(self, topic: str, echo: str) -> None:
        """Receives messages of a topic from now on, and sends them back.

        Raises:
            FailureError: the broker refuses.
        """
        self._topic, self._echo = topic, echo
        self._client.on_message = self._on_echo if echo else self._on_message
        if echo:
            self._client.on_publish = None
        self._client.subscribe(topic, self._qos)
        failure = self._await_outcome()
        if failure is not None:
            raise failure

    def _await_outcome(self) -> _Outcome:
        try:
            return self._outcome.get(timeout=_ANSWER_SECONDS)
        except Empty:
            return FailureError("", f"the broker does not answer within {_ANSWER_SECONDS:g} s")

    def prepare(self, topic: str) -> None:
        """Does nothing: a connection is ready for every topic."""

    def send(self, run: Run) -> int:
        """Sends messages, and returns how many."""
        self._run = run
        if not self._qos:
            self._client.on_publish = self._on_written if run.frees == "Write" else None
        if self._closing:
            return 0
        return run.send_all(partial(self._publish, run))

    def _publish(self, run: Run, number: int, begun: int) -> None:
        encoded = self._encoder.encode(self.content.message(number, run.bytes))
        self._pipe.event(SENT, self.number, number, begun, len(encoded))
        identifier = self._client.publish(run.topic, encoded, self._qos).mid
        if self._qos:
            with self._lock:
                if identifier not in self._early:
                    self._unacknowledged[identifier] = number, begun
                    return
                self._early.remove(identifier)
            self._acknowledge(number, monotonic_ns())

    def release(self) -> None:
        """Forgets the messages in flight."""
        if self._run is not None:
            self._run.release()

    def confirm(self) -> None:
        """Returns when the broker has all messages: it acknowledges an unsubscribe after them.

        Raises:
            FailureError: the broker does not answer.
        """
        answered = Event()
        self._client.on_unsubscribe = lambda *_: answered.set()
        self._client.unsubscribe(self._asked["name"])
        if not answered.wait(_CONFIRM_SECONDS):
            raise FailureError("", "the broker does not answer")

    def count(self) -> Json:
        """Returns the costs of the connection so far."""
        return {
            "tcpInfo": tcp_info(self._client.socket()),
            "compressNanoseconds": self._encoder.compress_nanoseconds,
            "encryptNanoseconds": self._encoder.encrypt_nanoseconds,
            "decryptNanoseconds": self._decoder.decrypt_nanoseconds,
            "decompressNanoseconds": self._decoder.decompress_nanoseconds,
        }

    def close(self) -> Json:
        """Disconnects from the broker, ends its session, and returns the final costs."""
        self._closing = True
        self._outcome.put(FailureError("", "the connection is closed"))
        if self._run is not None:
            self._run.stop.set()
        up, counted = self._up, self.count()
        self._client.disconnect(properties=self._session(PacketTypes.DISCONNECT, 0))
        self._client.loop_stop()
        if self._qos and up and not self._five:
            self._forget()
        return counted

    def _forget(self) -> None:
        """Ends the session at the broker, if it answers in time."""
        over = Event()
        client = self._make_client(clean=True)
        client.on_connect = lambda *_: over.set()
        client.connect_async(self._asked["host"], self._asked["port"], _KEEPALIVE_SECONDS)
        client.loop_start()
        over.wait(_FORGET_SECONDS)
        client.disconnect()
        client.loop_stop()

    def _on_message(self, _client: Client, _data: Any, message: MQTTMessage) -> None:
        now = monotonic_ns()
        try:
            number = self.content.number(self._decoder.decode(bytes(message.payload)))
        except CorruptError:
            number = None
        if number is None:
            self._pipe.event(CORRUPT, self.number, 0, now)
            return
        self._pipe.event(ARRIVED, self.number, number, now)
        if self.back is not None:
            self.back.arrived(number)

    def _on_echo(self, client: Client, _data: Any, message: MQTTMessage) -> None:
        now = monotonic_ns()
        try:
            self._decoder.decode(bytes(message.payload))
        except CorruptError:
            self._pipe.event(CORRUPT, self.number, 0, now)
        else:
            client.publish(self._echo, message.payload, self._qos)

    def _on_acknowledged(
        self, _client: Client, _data: Any, identifier: int, code: ReasonCode, _properties: Properties
    ) -> None:
        now = monotonic_ns()
        if code.is_failure:
            return  # the broker refuses the message, which is lost
        with self._lock:
            number, _ = self._unacknowledged.pop(identifier, (None, 0))
            if number is None:
                self._early.add(identifier)
                return
        self._acknowledge(number, now)

    def _acknowledge(self, number: int, now: int) -> None:
        self._pipe.event(ACKNOWLEDGED, self.number, number, now)
        if self._run is not None:
            self._run.acknowledged(number)

    def _on_written(self, *_: Any) -> None:
        if self._run is not None:
            self._run.written()

    def _on_pre_connect(self, _client: Client, _data: Any) -> None:
        self._attempted = monotonic_ns()

    def _on_socket_open(self, _client: Client, _data: Any, connection: object) -> None:
        if not isinstance(connection, socket.socket):
            return
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if isinstance(connection, tls.TimedSocket):
            self._handshake = connection.handshake_nanoseconds
            self._made["cipher"] = tls.cipher(connection)
        self._made["local"] = local_address(connection)

    def _on_socket_close(self, _client: Client, _data: Any, connection: object) -> None:
        self._last_info = tcp_info(connection)

    def _on_connect_fail(self, _client: Client, _data: Any) -> None:
        error = sys.exception()
        if not self._opened:
            failed = tls.failure(error) if isinstance(error, ssl.SSLError) else FailureError("", str(error))
            self._outcome.put(failed)

    def _on_connect(
        self, client: Client, _data: Any, flags: ConnectFlags, code: ReasonCode, _properties: Properties | None
    ) -> None:
        if code.is_failure:
            self._settle(FailureError(_REFUSALS.get(code.value, ""), f"the broker refuses the connection: {code}"))
        elif not self._opened:
            self._made["tlsNanoseconds"] = self._handshake
            self._made["connectNanoseconds"] = max(monotonic_ns() - self._attempted - self._handshake, 0)
            self._opened = self._up = True
            self._outcome.put(None)
        elif self._topic and not flags.session_present:
            client.subscribe(self._topic, self._qos)
        else:
            self._is_up()

    def _settle(self, outcome: _Outcome) -> None:
        """Sets the outcome that a request waits for. Later attempts to connect continue until one succeeds."""
        if self._up or not self._opened:
            self._outcome.put(outcome)

    def _is_up(self) -> None:
        with self._lock:
            resent = sum(begun < self._down_since for _, begun in self._unacknowledged.values())
        self._up = True
        self._pipe.write({"up": self.number, "resent": resent})

    def _on_subscribe(
        self, _client: Client, _data: Any, _identifier: int, codes: list[ReasonCode], _properties: Properties | None
    ) -> None:
        (granted,) = codes
        if granted.is_failure:
            message = f"the broker refuses the subscription to {self._topic}: allow this account to read there"
            self._settle(FailureError("NotAuthorized", message))
        elif granted.value < self._qos:
            message = f"the broker grants QoS {granted.value} instead of {self._qos}: choose another delivery"
            self._settle(FailureError("LowerQosGranted", message))
        elif self._up:
            self._outcome.put(None)
        else:
            self._is_up()

    def _on_disconnect(
        self, _client: Client, _data: Any, _flags: DisconnectFlags, code: ReasonCode, _properties: Properties | None
    ) -> None:
        if self._closing:
            return
        if not self._opened:
            self._outcome.put(FailureError("", f"the connection broke off: {code}"))
        elif self._up:
            self._up = False
            self._down_since = monotonic_ns()
            self._pipe.write({"down": self.number, "tcpInfo": self._last_info})
