"""A publisher: sends what it is told to, when it is told to, and never has more under way than its window."""

import time
from queue import Empty, SimpleQueue
from threading import Event
from time import perf_counter_ns
from typing import Final

from .connection import Connection
from .envelope import Codec
from .ledger import NUMBER_BYTES, Ledger
from .options import Load, Pacing

_POLL_SECONDS: Final = 0.1
_SPIN_DOWN_SECONDS: Final = 0.05  # before a send: from here on the sleep is one that nothing interrupts
_ACKNOWLEDGEMENT_POLL_SECONDS: Final = 0.005


class Publisher:
    """One thread runs it; `freed` is for the thread that receives."""

    def __init__(
        self, topic: str, plain: bytes, codec: Codec, ledger: Ledger, pacing: Pacing, load: Load, patience: int
    ) -> None:
        self.refused = self.encoded_bytes = 0
        self._topic, self._codec, self._ledger = topic, codec, ledger
        self._number_bytes = min(NUMBER_BYTES, len(plain))
        self._tail = plain[self._number_bytes :]
        self._pacing, self._load, self._patience = pacing, load, patience
        self._credits: SimpleQueue[None] = SimpleQueue()
        self.freed(pacing.window)

    def freed(self, messages: int = 1) -> None:
        """So many are no longer under way."""
        for _ in range(messages):
            self._credits.put(None)

    def run(self, connection: Connection, qos: int, started: int, stop: Event) -> None:
        """The load, from a time on, and then until all of it has come back, or is given up."""
        end = None if self._load.seconds is None else started + self._load.seconds * 1_000_000_000
        number = 0
        while number != self._load.messages and not stop.is_set():
            intended = self._await_turn(number, started, end, stop)
            if intended is None:
                break
            self._send(connection, qos, number, intended)
            number += 1
        self._drain(qos, stop)

    def _await_turn(self, number: int, started: int, end: int | None, stop: Event) -> int | None:
        """When the next message is intended to leave (0: at once); None if the load is over."""
        intended = 0
        if self._pacing.interval_nanoseconds is not None:
            intended = started + round(number * self._pacing.interval_nanoseconds)
            if end is not None and intended >= end:
                return None
            _sleep_until(intended, stop)
        return intended if self._take_credit(end, stop) else None

    def _send(self, connection: Connection, qos: int, number: int, intended: int) -> None:
        low = (number % 256**self._number_bytes).to_bytes(self._number_bytes, "big")
        encoded = self._codec.encode(low + self._tail)
        now = perf_counter_ns()
        message = self._ledger.depart(intended or now, now)
        identifier = connection.publish(self._topic, encoded)
        self.encoded_bytes += len(encoded)
        if identifier is None:
            self.refused += 1
        elif qos:
            self._ledger.await_acknowledgement(message, identifier)

    def _take_credit(self, end: int | None, stop: Event) -> bool:
        """Waits until one more message may be under way. False: the load is over before that."""
        while not stop.is_set() and (end is None or perf_counter_ns() < end):
            try:
                self._credits.get(timeout=self._poll_seconds(end))
            except Empty:
                self._lose_patience()
            else:
                return True
        return False

    def _poll_seconds(self, end: int | None) -> float:
        return _POLL_SECONDS if end is None else min(_POLL_SECONDS, max(end - perf_counter_ns(), 0) / 1e9)

    def _lose_patience(self) -> None:
        now = perf_counter_ns()
        if now - self._ledger.last_event > self._patience:
            self.freed(self._ledger.give_up(now))

    def _drain(self, qos: int, stop: Event) -> None:
        for _ in range(self._pacing.window):
            if not self._take_credit(None, stop):
                return
        while qos and self._ledger.unacknowledged and not stop.is_set():
            if perf_counter_ns() - self._ledger.last_event > self._patience:
                return
            time.sleep(_ACKNOWLEDGEMENT_POLL_SECONDS)


def _sleep_until(moment: int, stop: Event) -> None:
    remaining = (moment - perf_counter_ns()) / 1e9
    if remaining > 2 * _SPIN_DOWN_SECONDS:
        stop.wait(remaining - _SPIN_DOWN_SECONDS)
        remaining = (moment - perf_counter_ns()) / 1e9
    if remaining > 0 and not stop.is_set():
        time.sleep(remaining)
