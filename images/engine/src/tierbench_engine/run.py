"""A run of messages: sent when they are due, with at most as many in flight as the window allows."""

import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Event
from time import monotonic_ns
from typing import Final

from .content import Content
from .pipe import Json

_POLL_SECONDS: Final = 0.1
_SPIN_DOWN_SECONDS: Final = 0.05  # before a send: from here on the sleep cannot be interrupted


class Window:
    """Limits how many messages are in flight. One thread takes, others give back."""

    def __init__(self, size: int) -> None:
        self._free: SimpleQueue[None] = SimpleQueue()
        self._out: set[int] = set()
        self._put(size)

    def take(self, until: int, stop: Event) -> bool:
        """Waits until one more message may be in flight. Returns False if the run ends before."""
        try:
            self._free.get_nowait()
        except Empty:
            return self._wait(until, stop)
        return True

    def _wait(self, until: int, stop: Event) -> bool:
        while not stop.is_set():
            left = until - monotonic_ns() if until else None
            if left is not None and left <= 0:
                return False
            try:
                self._free.get(timeout=_POLL_SECONDS if left is None else min(_POLL_SECONDS, left / 1e9))
            except Empty:
                continue
            return True
        return False

    def out(self, number: int) -> None:
        """Records that a message is in flight."""
        self._out.add(number)

    def back(self, number: int) -> None:
        """Frees the place of a message, if it was in flight."""
        try:
            self._out.remove(number)
        except KeyError:
            return
        self._free.put(None)

    def release(self, most: int | None = None) -> None:
        """Frees the places of all messages, or of as many as `most`."""
        while most is None or most > 0:
            try:
                self._out.pop()
            except KeyError:
                return
            self._free.put(None)
            most = None if most is None else most - 1

    def _put(self, number: int) -> None:
        for _ in range(number):
            self._free.put(None)


Send = Callable[[int, int], None]
"""Sends the message with a number, given also the time at which the send began."""


class Run:
    """The run of messages that a `send` asks for."""

    def __init__(self, asked: Json, content: Content) -> None:
        self.topic: str = asked["topic"]
        self.frees: str = asked["frees"]
        self.bytes: int = asked["bytes"]
        self.window = Window(asked["window"])
        self.answers = Window(asked["unacknowledged"]) if asked["unacknowledged"] else None
        self.stop = Event()
        self._first, self._messages = asked["first"], asked["messages"]
        self._start, self._interval = asked["startNanoseconds"], asked["intervalNanoseconds"]
        self._until: int = asked["untilNanoseconds"]
        self._span = 256**content.number_bytes

    def send_all(self, send: Send) -> int:
        """Returns how many messages were sent, when the run is over. The measured times contain its own overhead."""
        sent, span = 0, self._span if self.frees == "Arrival" else 0
        while not self._messages or sent < self._messages:
            due = self._start + sent * self._interval
            if self._until and due >= self._until:
                break
            if due > monotonic_ns():
                _sleep_until(due, self.stop)
            if self.is_over() or not self._may_send():
                break
            number = self._first + sent
            begun = monotonic_ns()
            if self.answers is not None:
                self.answers.out(number)
            self.window.out(number % span if span else number)
            send(number, begun)
            sent += 1
        return sent

    def is_over(self) -> bool:
        """Returns whether no message may be sent any more."""
        return self.stop.is_set() or 0 < self._until <= monotonic_ns()

    def _may_send(self) -> bool:
        if self.answers is not None and not self.answers.take(self._until, self.stop):
            return False
        return self.window.take(self._until, self.stop)

    def acknowledged(self, number: int) -> None:
        """Records that the broker has acknowledged a message."""
        if self.answers is not None:
            self.answers.back(number)
        if self.frees == "Acknowledgement":
            self.window.back(number)

    def arrived(self, low: int) -> None:
        """Records that a message has arrived."""
        if self.frees == "Arrival":
            self.window.back(low)

    def written(self) -> None:
        """Records that the kernel has accepted a message."""
        if self.frees == "Write":
            self.window.release(1)

    def release(self) -> None:
        """Forgets the messages in flight."""
        self.window.release()
        if self.answers is not None:
            self.answers.release()


def _sleep_until(moment: int, stop: Event) -> None:
    remaining = (moment - monotonic_ns()) / 1e9
    if remaining > 2 * _SPIN_DOWN_SECONDS:
        stop.wait(remaining - _SPIN_DOWN_SECONDS)
        remaining = (moment - monotonic_ns()) / 1e9
    if remaining > 0 and not stop.is_set():
        time.sleep(remaining)
