"""A connection of the protocol: a writer of the library, a reader, or both."""

import sys
from collections.abc import Iterator
from functools import partial
from threading import Event, Lock, Thread
from time import monotonic_ns
from typing import Final

from tierbench_engine.content import Content
from tierbench_engine.pipe import ACKNOWLEDGED, ARRIVED, CORRUPT, SENT, FailureError, Json, Pipe
from tierbench_engine.run import Run

from . import kafka, mqtt
from .sides import Link, Spent, make_reader, make_writer, messages

_POLL_SECONDS: Final = 0.05


class _OverError(Exception):
    """The run ended before this message was encoded."""


class Connection:
    """Requests are sequential, except for `release`, `count` and `close`. Threads of the library call back."""

    def __init__(self, asked: Json, content: Content, pipe: Pipe) -> None:
        self.number: int = asked["connection"]
        self.content = content
        self.back: Run | None = None  # the run whose messages arrive here
        self._asked, self._pipe, self._spent = asked, pipe, Spent()
        self._plugin = kafka if asked["scheme"].startswith("kafka") else mqtt
        self._acknowledges = asked["delivery"] != "AtMostOnce"
        self._links: dict[str, Link] = {}  # by the names of their sides
        self._made: Json = {}  # the answer to connect
        self._receiving = Thread(daemon=True)
        self._closing = Event()
        self._publishing = Lock()  # a writer sends one message at a time
        self._lock = Lock()
        self._run: Run | None = None
        self._sent = 0
        self._number = self._begun = self._down_since = 0
        self._unacknowledged = False
        self._broken: set[str] = set()  # sides
        self._arrived, self._at = b"", 0

    def connect(self) -> Json:
        """Opens the side of this connection. The other side is opened when it is needed.

        Raises:
            FailureError: it cannot connect.
        """
        if self._asked.get("receives"):
            self._reading()
        else:
            self._writing()
        return self._made

    def _reading(self) -> Link:
        return self._links.get("reader") or self._open(
            "reader",
            self._plugin.Reader(
                lambda given: make_reader(given, self._spent, self._has_arrived),
                self._asked,
                self.content.largest,
                lambda up, info: self._changed("reader", up, info),
            ),
        )

    def _writing(self) -> Link:
        return self._links.get("writer") or self._open(
            "writer",
            self._plugin.Writer(
                lambda given: make_writer(given, self._spent, self._is_encoded),
                self._asked | ({"name": f"{self._asked['name']}-w"} if self._links else {}),
                self.content.largest,
                lambda up, info: self._changed("writer", up, info),
            ),
        )

    def _open(self, side: str, link: Link) -> Link:
        """Opens a side, and closes it again if the connection was closed meanwhile."""
        self._made = link.open()
        with self._lock:
            if not self._closing.is_set():
                self._links[side] = link
                return link
        link.close(self._receiving)
        raise FailureError("", "the connection is closed")

    def prepare(self, topic: str) -> None:
        """Returns when messages to a topic can be sent.

        Raises:
            FailureError: the broker refuses.
        """
        self._writing().write_to(topic)

    def subscribe(self, topic: str, echo: str) -> None:
        """Receives messages of a topic from now on, and sends them back.

        Raises:
            FailureError: the broker refuses.
        """
        reads = self._reading()
        if echo:
            self._writing().write_to(echo)
        reads.subscribe(topic)
        self._receiving = Thread(target=self._return_all if echo else self._receive_all, daemon=True)
        self._receiving.start()

    def _has_arrived(self, message: bytes) -> None:
        self._arrived, self._at = message, monotonic_ns()

    def _messages(self) -> Iterator[bytes | None]:
        return messages(self._reading().side, self._closing.is_set)

    def _receive_all(self) -> None:
        for message in self._messages():
            number = None if message is None else self.content.number(message)
            if number is None:
                self._pipe.event(CORRUPT, self.number, 0, self._at)
                continue
            self._pipe.event(ARRIVED, self.number, number, self._at)
            if self.back is not None:
                self.back.arrived(number)

    def _return_all(self) -> None:
        """Sends back every message that the library can decode, unchanged."""
        writer = self._writing().side
        for message in self._messages():
            if message is None:
                self._pipe.event(CORRUPT, self.number, 0, self._at)
                continue
            try:
                writer._plugin.publish(self._arrived)
            except Exception as error:
                self._report(error)

    def send(self, run: Run) -> int:
        """Sends messages, and returns how many. `close` ends a message that the broker does not accept."""
        link = self._writing()
        link.write_to(run.topic)
        with self._lock:
            self._run, self._sent = run, 0
        sending = Thread(target=run.send_all, args=(partial(self._publish, run, link),), daemon=True)
        sending.start()
        while sending.is_alive() and not self._closing.is_set():
            sending.join(_POLL_SECONDS)
        with self._lock:
            self._run = None
            return self._sent

    def _publish(self, run: Run, link: Link, number: int, begun: int) -> None:
        with self._publishing:
            while not link.connected() and not run.is_over():
                run.stop.wait(_POLL_SECONDS)
            if run.is_over():
                return
            self._number, self._begun = number, begun
            self._unacknowledged = self._acknowledges
            try:
                link.side.publish(self.content.message(number, run.bytes))
            except _OverError:
                run.stop.set()
                return
            except Exception as error:  # of the library and its plugins
                self._report(error)
                return
            finally:
                self._unacknowledged = False
            if self._acknowledges:
                self._pipe.event(ACKNOWLEDGED, self.number, number, monotonic_ns())
                run.acknowledged(number)
            else:
                run.written()

    def _is_encoded(self, size: int) -> None:
        with self._lock:
            if self._run is None:
                raise _OverError
            self._sent += 1
            self._pipe.event(SENT, self.number, self._number, self._begun, size)

    def release(self) -> None:
        """Forgets the messages in flight."""
        with self._lock:
            run = self._run
        if run is not None:
            run.release()

    def confirm(self) -> None:
        """Returns when the broker has all messages.

        Raises:
            FailureError: the broker does not answer.
        """
        self._writing().confirm()

    def count(self) -> Json:
        """Returns the costs of the connection so far."""
        infos = [info for link in [*self._links.values()] for info in link.tcp_infos()]
        return {"otherTcpInfos": infos, **self._spent.to_json()}

    def close(self) -> Json:
        """Disconnects from the broker, and returns the final costs."""
        with self._lock:
            self._closing.set()
            if self._run is not None:
                self._run.stop.set()
        counted = self.count()
        for side in sorted(self._links):  # the reader first
            self._links[side].close(self._receiving)
        return counted

    def _changed(self, side: str, up: bool, info: str) -> None:
        """Records that a side broke or reconnected. The connection is down while one side is."""
        with self._lock:
            was = bool(self._broken)
            self._broken = self._broken - {side} if up else self._broken | {side}
            now = bool(self._broken)
            if now and not was:
                self._down_since = monotonic_ns()
            resent = int(self._unacknowledged and self._begun < self._down_since)
        if now and not was:
            self._pipe.write({"down": self.number, "tcpInfo": info})
        elif was and not now:
            self._pipe.write({"up": self.number, "resent": resent})

    @staticmethod
    def _report(error: Exception) -> None:
        print(f"a message is not sent: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
