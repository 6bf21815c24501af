"""An MQTT 3.1.1 connection with paho-mqtt that reconnects, and its costs."""

import socket
import ssl
import sys
from collections.abc import Callable, Iterable, Sequence
from threading import Event
from time import perf_counter_ns
from typing import Any, Final

from paho.mqtt.client import (
    Client,
    ConnectFlags,
    DisconnectFlags,
    MQTTMessage,
)
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from . import tls, wire
from .contract import FailureError
from .options import Target

OnMessage = Callable[[bytes], None]
OnPublished = Callable[[int], None]

_CONNECT_SECONDS: Final = 5.0
_READY_SECONDS: Final = 0.01
_RECONNECT_SECONDS: Final = 1
_FORGET_SECONDS: Final = 1.0
_KEEPALIVE_SECONDS: Final = 60
_BAD_CREDENTIALS: Final = (0x86, 0x87)  # bad user name or password, not authorized
_ENVELOPE_BYTES: Final = 64 << 10  # of a packet next to its message: topic, and what codec and cipher add


class _Client(Client):
    """A client that takes in no packet longer than the largest message needs."""

    most_bytes = _ENVELOPE_BYTES

    def _sock_recv(self, bufsize: int) -> bytes:
        """Paho asks for the whole rest of a packet at once, as long as the broker says that it is."""
        if bufsize > self.most_bytes:
            raise ConnectionError(f"the broker announces a packet of {bufsize} bytes")
        return super()._sock_recv(bufsize)


class Connection:
    """Opened, it has its subscription once `ready` is set, or a `refusal` that no further attempt would change."""

    def __init__(
        self,
        target: Target,
        client_id: str,
        qos: int,
        topic: str | None = None,
        on_message: OnMessage | None = None,
        on_published: OnPublished | None = None,
        on_reconnect: Callable[[int], None] | None = None,
    ) -> None:
        self.ready = Event()
        self.refusal: FailureError | None = None
        self.connect_nanoseconds = self.tls_nanoseconds = self.started = 0
        self.reconnects = self.breaks = 0
        self.cipher: str | None = None
        self._target, self._client_id, self._topic, self._qos = target, client_id, topic, qos
        self._on_reconnect = on_reconnect
        self._wire = self._before = wire.Counters()
        self._broken_before = 0
        self._error: FailureError | None = None
        self._attempted = self._handshake = 0
        self._up = self._up_at_last = self._closing = False
        self._down_since = 0
        self._counted: object = None
        # At QoS 1 and 2 the session outlives the connection, so that they keep their promise; forget() ends it.
        self._client = self._make_client(clean=not qos)
        if on_message is not None:
            self._client.on_message = lambda _client, _data, message: on_message(_payload(message))
        if on_published is not None:  # acknowledged; at QoS 0, given to the kernel
            self._client.on_publish = lambda _client, _data, identifier, *_: on_published(identifier)

    def _make_client(self, clean: bool) -> Client:
        client = _Client(CallbackAPIVersion.VERSION2, self._client_id, clean_session=clean)
        client.most_bytes = self._target.message_bytes + _ENVELOPE_BYTES
        client.max_inflight_messages_set(0)  # the window is the publisher's own
        client.reconnect_delay_set(_RECONNECT_SECONDS, _RECONNECT_SECONDS)
        client.connect_timeout = _CONNECT_SECONDS
        if self._target.username is not None:
            client.username_pw_set(self._target.username, self._target.password)
        if self._target.tls is not None:
            client.tls_set_context(self._target.tls)
        return client

    def open(self) -> None:
        """Begins to connect, in a thread of its own."""
        client = self._client
        client.on_pre_connect = self._on_pre_connect
        client.on_socket_open = self._on_socket_open
        client.on_socket_close = self._on_socket_close
        client.on_connect = self._on_connect
        client.on_connect_fail = self._on_connect_fail
        client.on_subscribe = self._on_subscribe
        client.on_disconnect = self._on_disconnect
        self.started = self._down_since = perf_counter_ns()
        client.connect_async(self._target.host, self._target.port, _KEEPALIVE_SECONDS)
        client.loop_start()

    def publish(self, topic: str, payload: bytes) -> int | None:
        """Publishes, and returns the identifier of the acknowledgement, or None if paho's queue is full."""
        info = self._client.publish(topic, payload, self._qos)
        return None if info.rc is MQTTErrorCode.MQTT_ERR_QUEUE_SIZE else info.mid

    def confirm(self, timeout_nanoseconds: int) -> bool:
        """Returns whether the broker has received all published messages of QoS 0.

        It acknowledges an unsubscribe after them, even without a subscription.
        """
        answered = Event()
        self._client.on_unsubscribe = lambda *_: answered.set()
        self._client.unsubscribe(self._client_id)
        return answered.wait(timeout_nanoseconds / 1e9) and self.breaks == self._broken_before

    def failed(self, timeout_nanoseconds: int) -> FailureError | None:
        """Returns the failure of a connection that was refused, or is down for longer than the timeout."""
        if self.refusal is not None:
            return self.refusal
        if (self._up and self.ready.is_set()) or perf_counter_ns() - self._down_since <= timeout_nanoseconds:
            return None
        seconds = timeout_nanoseconds / 1e9
        cause = FailureError("BrokerUnreachable", "it does not answer") if self._error is None else self._error
        message = f"no connection to {self._target.host}:{self._target.port} for {seconds:g} s: {cause.message}"
        return FailureError(cause.reason, message)

    def begin(self) -> None:
        """A trial begins with this connection of an earlier one: what kept it alive meanwhile is no trial's."""
        self._before += self.traffic()
        self._broken_before = self.breaks

    def settle(self) -> None:
        """A trial has ended: what befalls this connection from now on is the next one's."""
        self.reconnects = self.breaks = 0

    def disconnect(self) -> None:
        """Counts what went over the wire, and takes leave of the broker."""
        self._closing = True
        self._up_at_last = self._up
        connection = self._client.socket()
        if connection is not None:
            self._count(connection)
        self._client.disconnect()

    def traffic(self) -> wire.Counters:
        """What has gone over the wire so far in this trial."""
        counted = self._wire - self._before
        connection = self._client.socket()
        if connection is self._counted or not isinstance(connection, socket.socket):
            return counted
        try:
            return counted + wire.read(connection)
        except OSError:  # closed meanwhile: counted as it was closed
            return self._wire - self._before

    def join(self) -> None:
        """Waits until the connection's thread has ended."""
        self._client.loop_stop()

    def forget(self) -> Callable[[], None]:
        """Begins to end the session at the broker, which would keep it for a client that comes back. Call the answer
        to wait for that; a broker that is away is not waited for."""
        if not self._qos or not self._up_at_last:
            return lambda: None
        over = Event()
        client = self._make_client(clean=True)
        client.on_connect = lambda *_: over.set()
        client.connect_async(self._target.host, self._target.port, _KEEPALIVE_SECONDS)
        client.loop_start()

        def finish() -> None:
            over.wait(_FORGET_SECONDS)
            client.disconnect()
            client.loop_stop()

        return finish

    def _on_pre_connect(self, _client: Client, _data: Any) -> None:
        self._attempted = perf_counter_ns()

    def _on_socket_open(self, _client: Client, _data: Any, connection: object) -> None:
        if isinstance(connection, socket.socket):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if isinstance(connection, tls.TimedSocket):
            self._handshake = connection.handshake_nanoseconds
            self.cipher = tls.cipher(connection)

    def _on_socket_close(self, _client: Client, _data: Any, connection: object) -> None:
        self._count(connection)

    def _count(self, connection: object) -> None:
        if connection is self._counted or not isinstance(connection, socket.socket):
            return
        self._counted = connection
        try:
            self._wire += wire.read(connection)
        except OSError:  # closed meanwhile: counted as it was closed
            self._counted = None

    def _on_connect_fail(self, _client: Client, _data: Any) -> None:
        error = sys.exception()
        if isinstance(error, ssl.SSLError):
            self._error = tls.failure(error)
            if self._error.reason != "BrokerUnreachable":
                self._refuse(self._error)
        else:
            self._error = FailureError("BrokerUnreachable", str(error))

    def _on_connect(
        self, client: Client, _data: Any, flags: ConnectFlags, code: ReasonCode, _properties: Properties | None
    ) -> None:
        if code.value in _BAD_CREDENTIALS:
            self._refuse(FailureError("CredentialsRefused", f"the broker refuses the account: {code}"))
        elif code.is_failure:
            self._error = FailureError("BrokerUnreachable", f"the broker refuses the connection: {code}")
        else:
            self._connected(client, flags.session_present)

    def _connected(self, client: Client, session_present: bool) -> None:
        if self.connect_nanoseconds:
            self.reconnects += 1
            if self._on_reconnect is not None:
                self._on_reconnect(self._down_since)
        else:
            self.connect_nanoseconds = perf_counter_ns() - self._attempted - self._handshake
            self.tls_nanoseconds = self._handshake
        self._up = True
        if self._topic is None or session_present:
            self.ready.set()
        else:
            client.subscribe(self._topic, self._qos)

    def _on_subscribe(
        self, _client: Client, _data: Any, _identifier: int, codes: list[ReasonCode], _properties: Properties | None
    ) -> None:
        (granted,) = codes
        if granted.is_failure:
            message = f"the broker refuses the subscription to {self._topic}: allow this account to read there"
            self._refuse(FailureError("NotAuthorized", message))
        elif granted.value < self._qos:
            message = f"the broker grants QoS {granted.value} instead of {self._qos}: choose another delivery"
            self._refuse(FailureError("LowerQosGranted", message))
        else:
            self.ready.set()

    def _on_disconnect(
        self, _client: Client, _data: Any, _flags: DisconnectFlags, code: ReasonCode, _properties: Properties | None
    ) -> None:
        if self._up and not self._closing:
            self.breaks += 1
            self._down_since = perf_counter_ns()
            self.ready.clear()
        if self._error is None or self._up:
            self._error = FailureError("BrokerUnreachable", f"the connection broke off: {code}")
        self._up = False

    def _refuse(self, failure: FailureError) -> None:
        self.refusal = failure
        self._closing = True
        self._client.disconnect()


def open_all(connections: Iterable[Connection], timeout_nanoseconds: int) -> FailureError | None:
    """Opens connections and waits until all have what they asked for, or one of them has failed."""
    known = tuple(connections)
    for connection in known:
        connection.open()
    return await_all(known, timeout_nanoseconds)


def await_all(connections: Sequence[Connection], timeout_nanoseconds: int) -> FailureError | None:
    """Waits until all connections have what they asked for, or one of them has failed."""
    for connection in connections:
        while not connection.ready.wait(_READY_SECONDS):
            failure = first_failure(connections, timeout_nanoseconds)
            if failure is not None:
                return failure
    return None


def first_failure(connections: Iterable[Connection], timeout_nanoseconds: int) -> FailureError | None:
    """Why one of them is of no more use, if one is."""
    failures = (connection.failed(timeout_nanoseconds) for connection in connections)
    return next((failure for failure in failures if failure is not None), None)


def close_all(connections: Iterable[Connection]) -> None:
    """Ends connections, then their sessions, all at once."""
    known = tuple(connections)
    for connection in known:
        connection.disconnect()
    for connection in known:
        connection.join()
    for finish in [connection.forget() for connection in known]:
        finish()


def _payload(message: MQTTMessage) -> bytes:
    return bytes(message.payload)
