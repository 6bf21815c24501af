"""The API server's time: what the ages of its objects, and the ends of Leases, are measured by."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

_ROUNDING: Final = timedelta(seconds=2)
"""An answer tells its time in whole seconds, and has been under way."""


class Clock:
    """This machine's clock, set right by what the API server's answers say."""

    def __init__(self) -> None:
        self._behind = timedelta(0)

    def hear(self, date: str | None) -> None:
        """Takes in the Date of an answer (RFC 9110, 6.6.1), if it has one."""
        try:
            told = parsedate_to_datetime(date or "")
        except ValueError:
            return
        behind = told.astimezone(UTC) - datetime.now(UTC)
        if abs(behind - self._behind) > _ROUNDING:
            self._behind = behind if abs(behind) > _ROUNDING else timedelta(0)

    def now(self) -> datetime:
        """The time."""
        return datetime.now(UTC) + self._behind
