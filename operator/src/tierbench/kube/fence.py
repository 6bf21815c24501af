"""What keeps an operator from writing once it leads no more: its own time, which nobody sets."""

import time
from collections.abc import Callable
from typing import Final

Seconds = Callable[[], float]

_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class DeposedError(Exception):
    """This operator does not lead, or not any more: it may not write."""


def uptime() -> float:
    """Seconds since the machine started, those among them for which it was suspended."""
    return time.clock_gettime(_CLOCK)


class Fence:
    """Shut, but while an operator leads."""

    def __init__(self, clock: Seconds = uptime) -> None:
        self._clock = clock
        self._until = 0.0

    @property
    def left(self) -> float:
        """For how many seconds it is open yet."""
        return self._until - self._clock()

    def open(self, until: float) -> None:
        """Opens it until a time of its clock. Raises DeposedError, and stays as it is, if that is over."""
        if until <= self._clock():
            raise DeposedError("the Lease was written too late to count")
        self._until = until

    def shut(self) -> None:
        """Shuts it for good, unless it is opened again."""
        self._until = 0.0

    def check(self) -> None:
        """Raises DeposedError if it is shut."""
        if self.left <= 0:
            raise DeposedError("this operator does not lead: its Lease has run out or is another's")
