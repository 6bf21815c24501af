"""The counts of one pair: the messages in flight with their times, and their outcomes. No I/O, no clock."""

from dataclasses import dataclass
from threading import Lock

from .pool import NUMBER_BYTES
from .steady import Series


@dataclass(slots=True)
class _Message:
    number: int
    intended: int
    sent: int
    size: int = 0
    acknowledged: bool = False
    awaited: bool = True


class Ledger:
    """Times are nanoseconds of one clock. Messages are numbered from `first` on in the order in which they are sent;
    what comes of earlier ones is not counted.

    A message contains `number_bytes` of its number. `alone`: there are no subscribers, and each message is in flight
    until the broker acknowledges it, or without acknowledgements until it is written. Any thread may call any method.
    """

    def __init__(
        self,
        number_bytes: int = NUMBER_BYTES,
        late_nanoseconds: int = 1_000_000,
        *,
        alone: bool = False,
        first: int = 0,
    ) -> None:
        self.alone = alone
        self.sent = self.received = self.received_bytes = self.duplicated = self.out_of_order = self.corrupt = 0
        self.acknowledged = self.acknowledged_bytes = self.acknowledged_lost = self.retried = self.late = 0
        self.last_sent = self.last_done = self.last_event = 0
        self.series = Series()
        self._first = first
        self._closed = False
        self._span = 256**number_bytes
        self._late_nanoseconds = late_nanoseconds
        self._latest = -1
        self._in_flight: dict[int, _Message] = {}
        self._given_up: dict[int, _Message] = {}
        self._unacknowledged: dict[int, _Message] = {}
        self._acknowledged_early: dict[int, int] = {}
        self._lock = Lock()

    @property
    def upcoming(self) -> int:
        """The number of the next message."""
        return self._first + self.sent

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
        with self._lock:
            message = _Message(self.upcoming, intended, now)
            if not self._in_flight:
                self.last_event = now
            self._in_flight[message.number] = message
            self.sent += 1
            self.last_sent = now
            self.late += now - intended > self._late_nanoseconds
        return message

    def await_acknowledgement(self, message: "_Message", identifier: int, size: int) -> bool:
        """The broker will acknowledge a message of `size` bytes under this identifier. True: it has done so already."""
        with self._lock:
            message.size = size
            early = self._acknowledged_early.pop(identifier, None)
            if early is None:
                self._unacknowledged[identifier] = message
                return False
            return self._settle(message, early)

    def acknowledged_by_broker(self, identifier: int, now: int) -> bool:
        """The broker has taken over the message with an identifier. True: that was waited for until now."""
        with self._lock:
            if self._closed:
                return False
            message = self._unacknowledged.pop(identifier, None)
            if message is None:
                self._acknowledged_early[identifier] = now
                return False
            return self._settle(message, now)

    def _settle(self, message: _Message, now: int) -> bool:
        message.acknowledged = True
        self.acknowledged += 1
        self.last_event = now
        self.series.acknowledge(now - message.sent, is_last=self.alone)
        if self.alone:
            self._in_flight.pop(message.number, None)
            self.acknowledged_bytes += message.size
            self.last_done = now
        awaited, message.awaited = message.awaited, False
        return awaited

    def written(self, now: int) -> bool:
        """Completes the oldest message in flight, which needs no acknowledgement. Returns whether there was one."""
        with self._lock:
            oldest = next(iter(self._in_flight), None)
            if oldest is None:
                return False
            del self._in_flight[oldest]
            self.last_event = now
            return True

    def confirm(self, size: int, now: int) -> None:
        """The broker has taken all that was sent, `size` bytes, and acknowledges none of it."""
        self.acknowledged, self.acknowledged_bytes, self.last_done = self.sent, size, now

    def sent_again(self, broken: int) -> None:
        """A connection that broke at a time is there again: what was not acknowledged then is sent once more."""
        with self._lock:
            self.retried += sum(message.sent < broken for message in self._unacknowledged.values())

    def arrive(self, low: int, now: int, size: int) -> bool:
        """Records a received message of `size` bytes whose number ends with `low`. Returns whether it was in flight."""
        with self._lock:
            newest = self.upcoming - 1
            number = newest - (newest - low) % self._span
            if self._closed or number < self._first:
                return False
            message = self._in_flight.pop(number, None)
            known = message is not None
            message = message or self._given_up.pop(number, None)
            if message is None:
                self.duplicated += 1
                return False
            self.received += 1
            self.received_bytes += size
            self.out_of_order += number < self._latest
            self._latest = max(self._latest, number)
            self.last_done = self.last_event = now
            self.series.add(now - message.intended, now - message.sent)
            return known

    def arrive_corrupt(self) -> None:
        """A message came back with other bytes than were sent."""
        with self._lock:
            self.corrupt += not self._closed

    def give_up(self, now: int) -> tuple[int, int]:
        """Nothing is waited for any longer; how many messages, and acknowledgements, that were. They may still come."""
        with self._lock:
            freed = len(self._in_flight)
            unanswered = sum(message.awaited for message in self._unacknowledged.values())
            for message in self._unacknowledged.values():
                message.awaited = False
            self._given_up.update(self._in_flight)
            self._in_flight.clear()
            self.last_event = now
            return freed, unanswered

    def close(self) -> None:
        """No more counts: what was acknowledged and is lost is known."""
        with self._lock:
            self._closed = True
            missing = (*self._in_flight.values(), *self._given_up.values())
            self.acknowledged_lost = sum(message.acknowledged for message in missing)
