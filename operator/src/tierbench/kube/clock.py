"""Time: timestamps of the API server, its clock, and waiting."""

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

_ROUNDING: Final = timedelta(seconds=2)
"""An answer gives its time in whole seconds, and takes a while to arrive."""


def parse_time(text: str) -> datetime:
    """Parses a timestamp of the API server."""
    return datetime.fromisoformat(text).astimezone(UTC)


def format_time(time: datetime) -> str:
    """Formats a time as metav1.Time, in whole seconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(time: datetime) -> str:
    """Formats a time as metav1.MicroTime, which Leases use."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Clock:
    """This machine's clock, corrected by the Date headers of the API server."""

    def __init__(self) -> None:
        self._behind = timedelta(0)

    def adjust(self, date: str | None) -> None:
        """Corrects the clock by the Date header of an answer (RFC 9110, 6.6.1), if it has one."""
        try:
            served = parsedate_to_datetime(date or "")
        except ValueError:
            return
        behind = served.astimezone(UTC) - datetime.now(UTC)
        if abs(behind - self._behind) > _ROUNDING:
            self._behind = behind if abs(behind) > _ROUNDING else timedelta(0)

    def now(self) -> datetime:
        """Returns the API server's time."""
        return datetime.now(UTC) + self._behind


async def wait_for_event(event: asyncio.Event, seconds: float | None) -> bool:
    """Waits until an event is set, at most for this duration. Returns whether it is set.

    asyncio.wait_for would lose a cancellation that comes together with the event, up to Python 3.11.
    """
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
