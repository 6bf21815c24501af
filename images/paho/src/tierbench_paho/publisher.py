"""A publisher: sends messages at its pace, with at most as many in flight as its window allows."""

import time
from queue import Empty, SimpleQueue
from threading import Event
from time import perf_counter_ns
from typing import Final

from .connection import Connection
from .envelope import Codec
from .ledger import Ledger
from .options import Load, Pacing
from .pool import Pool
from .schedule import Schedule

_POLL_SECONDS: Final = 0.1
_SPIN_DOWN_SECONDS: Final = 0.05  # before a send: from here on the sleep is one that nothing interrupts
_ACKNOWLEDGEMENT_POLL_SECONDS: Final = 0.005


class Publisher:
    """One thread runs it; `freed` and `answered` are for the threads that receive."""

    def __init__(
        self,
        topic: str,
        pool: Pool,
        codec: Codec,
        ledger: Ledger,
        pacing: Pacing,
        load: Load,
        timeout: int,
        phase: float,
        qos: int,
    ) -> None:
        self.refused = self.sent_bytes = self.encoded_bytes = self.unsent = 0
        self._topic, self._pool, self._codec, self._ledger = topic, pool, codec, ledger
        self._pacing, self._load, self._timeout, self._phase, self._qos = pacing, load, timeout, phase, qos
        self._credits: SimpleQueue[None] = SimpleQueue()
        self._answers: SimpleQueue[None] = SimpleQueue()
        self.freed(pacing.window)
        _put(self._answers, pacing.unacknowledged or 0)

    def freed(self, messages: int = 1) -> None:
        """Releases this many messages of the window."""
        _put(self._credits, messages)

    def published(self, identifier: int) -> None:
        """The broker has acknowledged a message; where it does not, a message has left."""
        now = perf_counter_ns()
        if not self._qos:
            if self._ledger.alone and self._ledger.written(now):
                self.freed()
        elif self._ledger.acknowledged_by_broker(identifier, now):
            self._answered()

    def _answered(self, messages: int = 1) -> None:
        """So many are no longer without acknowledgement."""
        if self._ledger.alone:
            self.freed(messages)
        elif self._pacing.unacknowledged is not None:
            _put(self._answers, messages)

    def run(self, connection: Connection, started: int, stop: Event) -> None:
        """The load, from a time on, and then until all of it has come back, or is given up."""
        end = None if self._load.nanoseconds is None else started + self._load.nanoseconds
        schedule = self._pacing.schedule(started, self._phase, self._load)
        number = 0
        while number != self._load.messages and not stop.is_set():
            due = None if schedule is None else schedule.due(number)
            if not self._await_turn(due, end, stop):
                break
            self._send(connection, due)
            number += 1
        if schedule is not None:
            self.unsent = max(self._due(schedule, end) - number, 0)
        self._drain(stop)
        if self._ledger.alone and not self._qos and not stop.is_set() and connection.confirm(self._timeout):
            self._ledger.confirm(self.sent_bytes, perf_counter_ns())

    def _due(self, schedule: Schedule, end: int | None) -> int:
        """How many messages were due by now, or before the load's end."""
        now = perf_counter_ns()
        due = schedule.due_before(now if end is None else min(end, now))
        return due if self._load.messages is None else min(due, self._load.messages)

    def _await_turn(self, due: int | None, end: int | None, stop: Event) -> bool:
        """Waits until a message is due and allowed by the window. Returns False if the load ends before.

        What is due before the end may leave after it, if it is not late by that.
        """
        if due is None:
            return self._take_credit(end, stop)
        if end is not None and due >= end:
            return False
        _sleep_until(due, stop)
        return self._take_credit(None if end is None else end + self._pacing.late_nanoseconds, stop)

    def _send(self, connection: Connection, due: int | None) -> None:
        begun = perf_counter_ns()
        message = self._ledger.depart(begun if due is None else due, begun)
        plain = self._pool.message(message.number)
        encoded = self._codec.encode(plain)
        identifier = connection.publish(self._topic, encoded)
        self.sent_bytes += len(plain)
        self.encoded_bytes += len(encoded)
        if identifier is None:
            self.refused += 1
        elif self._qos and self._ledger.await_acknowledgement(message, identifier, len(plain)):
            self._answered()

    def _take_credit(self, end: int | None, stop: Event) -> bool:
        """Waits until one more message may be sent. False: the load is over before that."""
        if self._pacing.unacknowledged is None or self._ledger.alone:
            return self._take(self._credits, end, stop)
        return self._take(self._answers, end, stop) and self._take(self._credits, end, stop)

    def _take(self, tokens: "SimpleQueue[None]", end: int | None, stop: Event) -> bool:
        while not stop.is_set() and (end is None or perf_counter_ns() < end):
            try:
                tokens.get(timeout=self._poll_seconds(end))
            except Empty:
                self._expire()
            else:
                return True
        return False

    def _poll_seconds(self, end: int | None) -> float:
        return _POLL_SECONDS if end is None else min(_POLL_SECONDS, max(end - perf_counter_ns(), 0) / 1e9)

    def _expire(self) -> None:
        now = perf_counter_ns()
        if now - self._ledger.last_event > self._timeout:
            freed, unanswered = self._ledger.give_up(now)
            self.freed(freed)
            if not self._ledger.alone:
                self._answered(unanswered)

    def _drain(self, stop: Event) -> None:
        for _ in range(self._pacing.window):
            if not self._take(self._credits, None, stop):
                return
        while self._qos and self._ledger.unacknowledged and not stop.is_set():
            if perf_counter_ns() - self._ledger.last_event > self._timeout:
                return
            time.sleep(_ACKNOWLEDGEMENT_POLL_SECONDS)


def _put(tokens: "SimpleQueue[None]", number: int) -> None:
    for _ in range(number):
        tokens.put(None)


def _sleep_until(moment: int, stop: Event) -> None:
    remaining = (moment - perf_counter_ns()) / 1e9
    if remaining > 2 * _SPIN_DOWN_SECONDS:
        stop.wait(remaining - _SPIN_DOWN_SECONDS)
        remaining = (moment - perf_counter_ns()) / 1e9
    if remaining > 0 and not stop.is_set():
        time.sleep(remaining)
