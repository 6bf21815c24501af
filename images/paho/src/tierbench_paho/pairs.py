"""What a part of a client does for each of its pairs: publish and receive, or echo."""

import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Thread
from time import perf_counter_ns
from typing import Protocol

from .connection import Connection
from .envelope import Codec, CorruptError
from .ledger import Ledger
from .options import Message, Options
from .pool import Pool
from .publisher import Publisher
from .schedule import phase


class Pair(Protocol):
    """One pair, or the half of it that runs in this process."""

    @property
    def ledger(self) -> Ledger:
        """The ledger of the current trial."""

    @property
    def connections(self) -> tuple[Connection, ...]:
        """Its own."""

    @property
    def codecs(self) -> tuple[Codec, ...]:
        """One for each thread."""

    @property
    def sent_bytes(self) -> int:
        """Of messages sent."""

    @property
    def encoded_bytes(self) -> int:
        """Of the same, as they were sent."""

    @property
    def refused(self) -> int:
        """Messages that could not be handed over."""

    @property
    def unsent(self) -> int:
        """Messages that were due, and were not sent."""

    def start(self, started: int, stop: Event) -> None:
        """Begins the load, in a thread of its own."""

    def over(self) -> bool:
        """Whether the load is over."""

    def renew(self, first: int) -> None:
        """Begins another trial with the same connections; its messages are numbered from `first` on."""


@dataclass(frozen=True)
class _Place:
    """Where a pair talks, what its clients are called, and where in an interval it starts."""

    topic: str
    client_id: str
    phase: float

    @property
    def echo(self) -> str:
        """Where messages come back if their subscriber runs elsewhere."""
        return f"{self.topic}/echo"


class _Publishing:
    """A publisher whose messages come back: to a subscriber of its own, or as echoes to the same connection. Alone,
    none does."""

    def __init__(self, options: Options, place: _Place, pool: Pool, first: int) -> None:
        self._options, self._place, self._pool = options, place, pool
        self.renew(first)
        self.connections = self._connect()

    def renew(self, first: int) -> None:
        """All but the connections is a trial's own."""
        options, message = self._options, self._options.message
        late, alone = options.pacing.late_nanoseconds, options.role == "Alone"
        self.ledger = Ledger(self._pool.number_bytes, late, alone=alone, first=first)
        self.codecs = (_codec(message), _codec(message))
        self._publisher = Publisher(
            self._place.topic,
            self._pool,
            self.codecs[0],
            self.ledger,
            options.pacing,
            options.load,
            options.timeout_nanoseconds,
            self._place.phase,
            message.qos,
        )
        self._thread: Thread | None = None

    def _connect(self) -> tuple[Connection, ...]:
        options, place = self._options, self._place
        target, qos, echoed = options.target, options.message.qos, options.role == "Publisher"
        outward = Connection(
            target,
            f"{place.client_id}-p",
            qos,
            topic=place.echo if echoed else None,
            on_message=self._receive if echoed else None,
            on_published=self._published if qos or self.ledger.alone else None,
            on_reconnect=self._sent_again,
        )
        if options.role != "Both":
            return (outward,)
        inward = Connection(target, f"{place.client_id}-s", qos, topic=place.topic, on_message=self._receive)
        return (outward, inward)

    @property
    def sent_bytes(self) -> int:
        """Of messages sent."""
        return self._publisher.sent_bytes

    @property
    def encoded_bytes(self) -> int:
        """Of the same, as they were sent."""
        return self._publisher.encoded_bytes

    @property
    def refused(self) -> int:
        """Messages that could not be handed over."""
        return self._publisher.refused

    @property
    def unsent(self) -> int:
        """Messages that were due, and were not sent."""
        return self._publisher.unsent

    def start(self, started: int, stop: Event) -> None:
        """Begins the load, in a thread of its own."""
        arguments = (self.connections[0], started, stop)
        self._thread = Thread(target=self._publisher.run, args=arguments, daemon=True)
        self._thread.start()

    def over(self) -> bool:
        """Whether all was sent, and has come back or was given up."""
        return self._thread is not None and not self._thread.is_alive()

    def _published(self, identifier: int) -> None:
        self._publisher.published(identifier)

    def _sent_again(self, broken: int) -> None:
        self.ledger.sent_again(broken)

    def _receive(self, message: bytes) -> None:
        now = perf_counter_ns()
        try:
            plain = self.codecs[1].decode(message)
            number = self._pool.number(plain)
        except CorruptError:
            number = None
        if number is None:
            self.ledger.arrive_corrupt()
        elif self.ledger.arrive(number, now, len(plain)):
            self._publisher.freed()


class _Echoing:
    """A subscriber that sends each message back, as it came, after it has looked at it."""

    sent_bytes = encoded_bytes = refused = unsent = 0

    def __init__(self, options: Options, place: _Place) -> None:
        self._message, self._echo = options.message, place.echo
        self.renew(0)
        self.connections: tuple[Connection, ...] = (
            Connection(
                options.target,
                f"{place.client_id}-e",
                options.message.qos,
                topic=place.topic,
                on_message=self._receive,
            ),
        )

    def renew(self, first: int) -> None:
        """All but the connection is a trial's own."""
        self.ledger = Ledger()
        self.codecs = (_codec(self._message),)

    def start(self, started: int, stop: Event) -> None:
        """Nothing: messages come by themselves."""

    def over(self) -> bool:
        """Always: how long there are echoes, the other parts say."""
        return True

    def _receive(self, message: bytes) -> None:
        with suppress(CorruptError):  # the publisher sees it too, and counts it
            self.codecs[0].decode(message)
        self.connections[0].publish(self._echo, message)


def _codec(message: Message) -> Codec:
    return Codec(message.compression, message.key)


def make_pairs(options: Options, name: str, pool: Pool, first: int = 0) -> Sequence[Pair]:
    """The pairs of the trial with a name, or the halves of them that run in this process; messages are numbered from
    `first` on."""
    run, trial = secrets.token_hex(4), "kept" if options.keeps_connections else f"t{name}"
    places = [
        _Place(f"{options.topic}/{trial}/{pair}", f"{run}-{name}-{pair}", phase(options.message.seed, pair))
        for pair in options.pairs
    ]
    if options.role == "Echo":
        return [_Echoing(options, place) for place in places]
    return [_Publishing(options, place, pool, first) for place in places]
