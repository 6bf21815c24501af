"""Runs an engine, which says hello and answers requests, each in its own thread."""

import json
import mmap
import os
import sys
from collections.abc import Callable
from threading import Thread
from time import monotonic_ns
from typing import Final, Protocol

from .content import Content
from .pipe import FailureError, Json, Pipe
from .run import Run

_CONTENT: Final = 3


class Connection(Protocol):
    """A connection to the broker. Requests are sequential, except for `release`, `count` and `close`."""

    number: int
    content: Content
    back: Run | None  # the run whose messages arrive here

    def connect(self) -> Json:
        """Connects."""

    def subscribe(self, topic: str, echo: str) -> None:
        """Receives messages of a topic from now on. With `echo`, sends them back to that topic."""

    def prepare(self, topic: str) -> None:
        """Returns when messages to a topic can be sent without further requests."""

    def send(self, run: Run) -> int:
        """Sends messages, and returns how many."""

    def release(self) -> None:
        """Forgets the messages in flight."""

    def confirm(self) -> None:
        """Returns when the broker has all messages."""

    def count(self) -> Json:
        """Returns the costs of the connection so far."""

    def close(self) -> Json:
        """Disconnects from the broker, and returns the final costs."""


Make = Callable[[Json, Content, Pipe], Connection]
"""Makes the connection that a request asks for."""


class _Engine:
    """The connections, by their numbers."""

    def __init__(self, file: memoryview, pipe: Pipe, make: Make) -> None:
        self._file, self._pipe, self._make = file, pipe, make
        self._connections: dict[int, Connection] = {}

    def answer(self, asked: Json) -> None:
        """Answers a request."""
        actions: dict[str, Callable[[Json], Json | None]] = {
            "connect": self._connect,
            "subscribe": lambda asked: self._of(asked).subscribe(asked["topic"], asked.get("echo", "")),
            "prepare": lambda asked: self._of(asked).prepare(asked["topic"]),
            "send": self._send,
            "release": lambda asked: self._of(asked).release(),
            "confirm": lambda asked: self._of(asked).confirm(),
            "count": lambda asked: self._of(asked).count(),
            "close": self._close,
        }
        try:
            answer = actions[asked["do"]](asked) or {}
        except FailureError as failure:
            answer = {"error": failure.to_json()}
        except Exception as error:
            answer = {"error": FailureError("", f"{type(error).__name__}: {error}").to_json()}
        self._pipe.write({"id": asked["id"], **answer})

    def _of(self, asked: Json) -> Connection:
        return self._connections[asked["connection"]]

    def _connect(self, asked: Json) -> Json:
        content = Content(self._file, asked["entries"], asked["sizes"])
        made = self._connections[asked["connection"]] = self._make(asked, content, self._pipe)
        try:
            return made.connect()
        except FailureError:
            self._connections.pop(made.number, None)
            raise

    def _send(self, asked: Json) -> Json:
        made = self._of(asked)
        run = Run(asked, made.content)
        back = self._connections.get(asked["back"])
        if back is not None:
            back.back = run
        return {"sent": made.send(run)}

    def _close(self, asked: Json) -> Json | None:
        made = self._connections.pop(asked["connection"], None)
        return None if made is None else made.close()


def serve(about: Json, make: Make) -> None:
    """Runs until the harness ends. `about` is the content of hello, besides the protocol version and the clock."""
    pipe = Pipe(sys.stdout.buffer)
    engine = _Engine(memoryview(mmap.mmap(_CONTENT, 0, prot=mmap.PROT_READ)), pipe, make)
    # Python runs one thread at a time.
    pipe.write({"hello": {"protocol": 1, "clock": monotonic_ns(), "processors": 1, **about}})
    Thread(target=pipe.report, daemon=True).start()
    for line in sys.stdin.buffer:
        Thread(target=engine.answer, args=(json.loads(line),), daemon=True).start()
    os._exit(0)  # without waiting for threads
