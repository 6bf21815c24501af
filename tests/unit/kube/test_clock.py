"""The API server's time."""

from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import format_datetime

import pytest

from tierbench.kube import clock as module
from tierbench.kube.clock import Clock

NOW = datetime(2026, 1, 1, 12, 0, 0, 500_000, UTC)


class Machine(datetime):
    """This machine's clock, which stands still in the middle of a second."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return NOW.astimezone(tz)


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "datetime", Machine)


def date(ahead: timedelta) -> str:
    return format_datetime(NOW + ahead, usegmt=True)


@pytest.mark.parametrize("ahead", [timedelta(minutes=-1), timedelta(minutes=1), timedelta(days=400)])
def test_a_clock_that_is_wrong_is_set_right_and_back(ahead: timedelta) -> None:
    clock = Clock()
    clock.adjust(date(ahead))
    assert clock.now() == NOW.replace(microsecond=0) + ahead
    clock.adjust(date(timedelta(0)))
    assert clock.now() == NOW


@pytest.mark.parametrize("said", [None, "", "yesterday", "a second ago"])
def test_what_says_nothing_changes_nothing(said: str | None) -> None:
    clock = Clock()
    clock.adjust(date(timedelta(seconds=-1)) if said == "a second ago" else said)
    assert clock.now() == NOW
