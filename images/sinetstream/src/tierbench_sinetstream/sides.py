"""A writer and a reader of the library, and the times of their steps."""

from collections.abc import Callable, Iterator
from threading import Thread
from time import monotonic_ns
from typing import Any, Protocol

from sinetstream import MessageReader, MessageWriter

from tierbench_engine.pipe import Json

Side = Any
"""A writer or a reader of the library, which has no types."""

Make = Callable[[Json], Side]
"""Makes a side with parameters."""

Changed = Callable[[bool, str], None]
"""Reports that a side reconnected, or broke, with the last counters of its socket."""


class Link(Protocol):
    """The connection of a side to the broker, with access to internals of its plugin."""

    side: Side

    def open(self) -> Json:
        """Connects, and returns the content of the answer."""

    def subscribe(self, topic: str) -> None:
        """Returns when a reader receives messages of a topic."""

    def write_to(self, topic: str) -> None:
        """Returns when a writer can send messages to a topic."""

    def connected(self) -> bool:
        """Returns whether a message can be sent."""

    def confirm(self) -> None:
        """Returns when the broker has all messages."""

    def tcp_infos(self) -> list[str]:
        """Returns the counters of its sockets, including closed ones."""

    def close(self, receiving: Thread) -> None:
        """Disconnects from the broker. The thread of the reader ends soon."""


class Spent:
    """The nanoseconds spent on each step."""

    def __init__(self) -> None:
        self.compress = self.encrypt = self.decrypt = self.decompress = 0

    def timed(self, step: str, do: Callable[..., bytes]) -> Callable[..., bytes]:
        """Returns the step with its times added up."""

        def does(*given: Any) -> bytes:
            started = monotonic_ns()
            try:
                return do(*given)
            finally:
                setattr(self, step, getattr(self, step) + monotonic_ns() - started)

        return does

    def to_json(self) -> Json:
        """Returns the times for an answer."""
        return {f"{step}Nanoseconds": spent for step, spent in vars(self).items()}


def make_writer(given: Json, spent: Spent, encoded: Callable[[int], None]) -> Side:
    """Returns a writer that reports the size of each encoded message before it is sent."""
    made = MessageWriter(no_config=True, topic="", **given)
    if given["data_compression"]:
        made.compressor = spent.timed("compress", made.compressor)
    if made.cipher is not None:
        made.cipher.encrypt = spent.timed("encrypt", made.cipher.encrypt)
    to_bytes = made._to_bytes

    def encode(message: bytes, stamp: int) -> bytes:
        found: bytes = to_bytes(message, stamp)
        encoded(len(found))
        return found

    made._to_bytes = encode
    return made


def make_reader(given: Json, spent: Spent, arrived: Callable[[bytes], None]) -> Side:
    """Returns a reader that reports each message as it arrived, before it is decoded."""
    made = MessageReader(no_config=True, topics="", **given)
    if given["data_compression"]:
        made.decompressor = spent.timed("decompress", made.decompressor)
    if made.cipher is not None:
        made.cipher.decrypt = spent.timed("decrypt", made.cipher.decrypt)
    to_message = made._make_message

    def decode(message: bytes, topic: str, raw: object) -> object:
        arrived(message)
        return to_message(message, topic, raw)

    made._make_message = decode
    return made


def messages(reader: Side, closing: Callable[[], bool]) -> Iterator[bytes | None]:
    """Yields the messages of a reader until it is closed, and None for each that it cannot decode."""
    while not closing():
        iterator = iter(reader)
        try:
            while True:
                yield next(iterator).value
        except StopIteration:
            continue  # none arrived for a while
        except Exception:  # of the library, of its codecs and of its ciphers
            if not closing():
                yield None
