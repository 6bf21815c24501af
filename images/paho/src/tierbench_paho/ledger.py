"""The books of one pair: which message is under way since when, and what became of it. No I/O, no clock."""

from dataclasses import dataclass
from threading import Lock

from .pool import NUMBER_BYTES
from .steady import Series


@dataclass(slots=True)
class _Message:
    intended: int
    sent: int
    acknowledged: bool = False


class Ledger:
    """Times are nanoseconds of one clock. Messages are numbered from 0 in the order in which they are sent.

    `number_bytes` of a number travel with the message. Any thread may call any method.
    """

    def __init__(self, number_bytes: int = NUMBER_BYTES, late_nanoseconds: int = 1_000_000) -> None:
        self.sent = self.received = self.received_bytes = self.duplicated = self.out_of_order = self.corrupt = 0
        self.acknowledged = self.acknowledged_lost = self.retried = self.late = 0
        self.last_sent = self.last_received = self.last_event = 0
        self.series = Series()
        self._span = 256**number_bytes
        self._late_nanoseconds = late_nanoseconds
        self._latest = -1
        self._under_way: dict[int, _Message] = {}
        self._given_up: dict[int, _Message] = {}
        self._unacknowledged: dict[int, _Message] = {}
        self._acknowledged_early: dict[int, int] = {}
        self._lock = Lock()

    @property
    def lost(self) -> int:
        """Sent, and not received by now."""
        return self.sent - self.received

    @property
    def unacknowledged(self) -> int:
        """Sent, and not acknowledged."""
        return len(self._unacknowledged)

    def depart(self, intended: int, now: int) -> "_Message":
        """The next message leaves."""
        message = _Message(intended, now)
        with self._lock:
            if not self._under_way:
                self.last_event = now
            self._under_way[self.sent] = message
            self.sent += 1
            self.last_sent = now
            self.late += now - intended > self._late_nanoseconds
        return message

    def await_acknowledgement(self, message: "_Message", identifier: int) -> None:
        """The broker will acknowledge a message under this identifier; it may have done so already."""
        with self._lock:
            early = self._acknowledged_early.pop(identifier, None)
            if early is None:
                self._unacknowledged[identifier] = message
            else:
                self._settle(message, early)

    def acknowledged_by_broker(self, identifier: int, now: int) -> None:
        """The broker has taken over the message with an identifier."""
        with self._lock:
            message = self._unacknowledged.pop(identifier, None)
            if message is None:
                self._acknowledged_early[identifier] = now
            else:
                self._settle(message, now)

    def _settle(self, message: _Message, now: int) -> None:
        message.acknowledged = True
        self.acknowledged += 1
        self.last_event = now
        self.series.latest.acknowledge.add(now - message.sent)

    def sent_again(self, broken: int) -> None:
        """A connection that broke at a time is there again: what was not acknowledged then is sent once more."""
        with self._lock:
            self.retried += sum(message.sent < broken for message in self._unacknowledged.values())

    def arrive(self, low: int, now: int, size: int) -> bool:
        """A message of `size` bytes came back whose number ends with `low`. True: it was under way until now."""
        with self._lock:
            newest = self.sent - 1
            number = newest - (newest - low) % self._span
            message = self._under_way.pop(number, None)
            known = message is not None
            message = message or self._given_up.pop(number, None)
            if message is None:
                self.duplicated += 1
                return False
            self.received += 1
            self.received_bytes += size
            self.out_of_order += number < self._latest
            self._latest = max(self._latest, number)
            self.last_received = self.last_event = now
            self.series.add(now - message.intended, now - message.sent)
            return known

    def arrive_corrupt(self) -> None:
        """A message came back with other bytes than were sent."""
        with self._lock:
            self.corrupt += 1

    def give_up(self, now: int) -> int:
        """Nothing is waited for any longer; how many messages that frees. They may still arrive."""
        with self._lock:
            freed = len(self._under_way)
            self._given_up.update(self._under_way)
            self._under_way.clear()
            self.last_event = now
            return freed

    def close(self) -> None:
        """No more arrives: what was acknowledged and is lost is known."""
        with self._lock:
            missing = (*self._under_way.values(), *self._given_up.values())
            self.acknowledged_lost = sum(message.acknowledged for message in missing)
