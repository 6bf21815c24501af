"""Access to internals of the library's plugin for Kafka: sockets, topics, positions and broken connections."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Event, Lock, Thread
from time import monotonic_ns
from typing import Any, Final

from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from kafka.client_async import KafkaClient
from kafka.errors import (
    AuthenticationFailedError,
    ClusterAuthorizationFailedError,
    IncompatibleBrokerVersion,
    KafkaError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    UnrecognizedBrokerVersion,
    UnsupportedVersionError,
)
from sinetstream import SinetError

from tierbench_engine import tls
from tierbench_engine.pipe import FailureError, Json
from tierbench_engine.sockets import local_address, tcp_info

from .settings import parameters
from .sides import Changed, Make

_CONFIRM_SECONDS: Final = 600.0  # longer than any harness waits
_RECEIVE_MILLISECONDS: Final = 100
_CLOSE_SECONDS: Final = 5.0
_REMOVE_SECONDS: Final = 10.0
_ENVELOPE_BYTES: Final = 64 << 10  # of a message: what the library and Kafka add
_TOO_OLD: Final = (IncompatibleBrokerVersion, UnrecognizedBrokerVersion, UnsupportedVersionError)
_FORBIDDEN: Final = (ClusterAuthorizationFailedError, TopicAuthorizationFailedError)


class _Client(KafkaClient):  # type: ignore[misc]  # it has no types
    """A client that connects to one address, whatever the broker advertises, and reports its sockets."""

    def __init__(self, host: str, port: int, changed: Callable[[Any, Any, Any], None], **configs: Any) -> None:
        self._changed = changed
        super().__init__(**configs)
        known = self.cluster.broker_metadata

        def pinned(broker: Any) -> Any:
            found = known(broker)
            return None if found is None else found._replace(host=host, port=port)

        self.cluster.broker_metadata = pinned

    def _conn_state_change(self, node_id: Any, sock: Any, conn: Any) -> None:
        self._changed(node_id, sock, conn)
        super()._conn_state_change(node_id, sock, conn)


class _Link:
    """The connections of one side to a Kafka with one broker."""

    def __init__(self, make: Make, asked: Json, largest: int, changed: Changed) -> None:
        if asked["delivery"] == "ExactlyOnce":
            raise FailureError("InvalidArguments", "SINETStream has no ExactlyOnce for Kafka: choose another delivery")
        self._asked, self._changed = asked, changed
        self._opened = self._closing = self._down = False
        self._handshake = 0
        self._made: Json = {}
        self._sockets: dict[Any, Any] = {}  # by Kafka's name of a node
        self._closed: list[str] = []  # the counters of bootstrap connections
        self._admin: Any = None  # of a side that has ensured a topic
        self._created: set[str] = set()
        self._managing = Lock()  # creates or deletes topics
        spec = {"kafka_client": partial(_Client, self._host, asked["port"], self._socket_changed), **_account(asked)}
        given = {"type": "kafka", "brokers": self._address, **parameters(asked)}
        self.side = make(self._complete(given, spec, largest))
        self._plugin = self.side._plugin
        self._plugin._topics = ()  # a reader subscribes on request

    def _complete(self, given: Json, spec: Json, _: int) -> Json:
        """Returns the parameters with those of the plugin."""
        return {**given, "receive_timeout_ms": _RECEIVE_MILLISECONDS, "type_spec": spec}

    @property
    def _host(self) -> str:
        host: str = self._asked["host"]
        return f"[{host}]" if ":" in host else host

    @property
    def _address(self) -> str:
        return f"{self._host}:{self._asked['port']}"

    def open(self) -> Json:
        """Connects.

        Raises:
            FailureError: it cannot connect.
        """
        started = monotonic_ns()
        try:
            self.side.open()
        except SinetError as error:
            raise _failure(error.__cause__ or error) from error
        self._made["connectNanoseconds"] = max(monotonic_ns() - started - self._handshake, 0)
        self._made["tlsNanoseconds"] = self._handshake
        self._opened = True
        return self._made

    def subscribe(self, topic: str) -> None:
        """Returns when messages from now on will be read.

        Raises:
            FailureError: the broker refuses.
        """
        consumer, name = self._plugin._client, self._ensure(topic)
        try:
            consumer.subscribe([name])
            self.side.seek_to_end()
            for partition in consumer.assignment():
                consumer.position(partition)
        except (KafkaError, SinetError) as error:
            raise _failure(error) from error

    def write_to(self, topic: str) -> None:
        """Sends messages to this topic from now on.

        Raises:
            FailureError: the broker refuses.
        """
        if self._plugin._comm_params["topic"] == topic_name(topic):
            return
        name = self._ensure(topic)
        try:
            self._plugin._client.partitions_for(name)
        except KafkaError as error:
            raise _failure(error) from error
        self._plugin._comm_params["topic"] = name

    def _ensure(self, topic: str) -> str:
        """Creates a topic if it does not exist. A closed side creates none, because it would stay."""
        name = topic_name(topic)
        with self._managing:
            if self._closing:
                raise FailureError("", "the connection is closed")
            try:
                if self._admin is None:
                    self._admin = self._connect_admin()
                with suppress(TopicAlreadyExistsError):
                    self._admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=1)])
                    self._created.add(name)
            except KafkaError as error:
                raise _failure(error) from error
        return name

    def _remove(self) -> None:
        """Deletes its topics once they are created.

        It uses the connection that created them, because a busy broker may accept no other one in time.
        """
        with self._managing:
            if self._admin is None:
                return
            with suppress(KafkaError):
                if self._created:
                    self._admin.delete_topics([*self._created])
            self._admin.close()

    def _connect_admin(self) -> Any:
        client = partial(_Client, self._host, self._asked["port"], lambda *_: None)
        admin = KafkaAdminClient(bootstrap_servers=self._address, kafka_client=client, **_account(self._asked))
        brokers = len(admin._client.cluster.brokers())
        if brokers > 1:
            admin.close()
            message = f"this Kafka has {brokers} brokers, and the engine SINETStream supports one: measure with Native"
            raise FailureError("SeveralBrokers", message)
        return admin

    def connected(self) -> bool:
        """Returns whether a message can be sent."""
        return not self._down

    def confirm(self) -> None:
        """Returns when the broker has all messages: it answers a question after them, on the same connection.

        Raises:
            FailureError: it does not answer.
        """
        producer, answered = self._plugin._client, Event()
        asked = producer._metadata.request_update()
        asked.add_callback(lambda _: answered.set())
        producer._sender.wakeup()
        if not answered.wait(_CONFIRM_SECONDS):
            raise FailureError("", "the broker does not answer")

    def tcp_infos(self) -> list[str]:
        """Returns the counters of its sockets, including earlier ones."""
        return [*map(tcp_info, [*self._sockets.values()]), *self._closed]

    def close(self, receiving: Thread) -> None:
        """Disconnects from the broker when nothing reads any more, and deletes its topics."""
        self._closing = True
        if receiving.ident is not None:
            receiving.join(_CLOSE_SECONDS)
        self.side.close()
        removing = Thread(target=self._remove, daemon=True)  # waits without end for a broker that is gone
        removing.start()
        removing.join(_REMOVE_SECONDS)

    def _socket_changed(self, node: Any, sock: Any, conn: Any) -> None:
        bootstraps = str(node).startswith("bootstrap")
        if conn.connected():
            self._sockets[node] = sock
            if not self._opened:
                self._describe(sock)
            if self._down and not bootstraps:
                self._down = False
                self._changed(True, "")
        elif conn.disconnected() and self._sockets.pop(node, None) is not None:
            if bootstraps or self._closing:
                self._closed.append(tcp_info(sock))
            elif not self._down:
                self._down = True
                self._changed(False, tcp_info(sock))

    def _describe(self, sock: Any) -> None:
        self._made["local"] = local_address(sock)
        if isinstance(sock, tls.TimedSocket):
            self._handshake = sock.handshake_nanoseconds
            self._made["cipher"] = tls.cipher(sock)


Reader = _Link


class Writer(_Link):
    """The connections of a writer."""

    def _complete(self, given: Json, spec: Json, largest: int) -> Json:
        return {**given, "type_spec": {**spec, "max_request_size": largest + _ENVELOPE_BYTES}}

    def close(self, receiving: Thread) -> None:
        """Disconnects without waiting for a message that the broker does not accept."""
        self._closing = True
        if self._opened:
            self._plugin._client.close(timeout=_CLOSE_SECONDS)
        super().close(receiving)


def topic_name(topic: str) -> str:
    """Returns the topic without characters that Kafka does not allow."""
    return topic.replace("/", ".")


def _account(asked: Json) -> Json:
    """Returns how Kafka's clients identify the broker and themselves."""
    secure, account = asked["tls"] != "None", asked["username"] != ""
    given: Json = {"security_protocol": ("SASL_" if account else "") + ("SSL" if secure else "PLAINTEXT")}
    if secure:
        given["ssl_context"] = tls.client_context(asked["tls"], asked["caFile"], asked["serverName"])
    if account:
        given["sasl_mechanism"] = "SCRAM-SHA-512"
        given["sasl_plain_username"], given["sasl_plain_password"] = asked["username"], asked["password"]
    return given


def _failure(error: BaseException) -> FailureError:
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, AuthenticationFailedError):
        return FailureError("CredentialsRefused", f"the broker refuses the user or the password: {text}")
    if isinstance(error, _TOO_OLD):
        message = (
            f"SINETStream's plugin does not speak to this version of Kafka: {text}: measure with clients.engine: Native"
        )
        return FailureError("KafkaVersionUnsupported", message)
    if isinstance(error, _FORBIDDEN):
        return FailureError("NotAuthorized", f"the broker does not let this user use the topic: {text}")
    return FailureError("", text)
