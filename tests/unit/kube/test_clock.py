"""The clock follows the API server, and a wait can be cancelled."""

import asyncio
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import format_datetime

import pytest

from tierbench.kube import meta as module
from tierbench.kube.meta import Clock, wait_for_event

NOW = datetime(2026, 1, 1, 12, 0, 0, 500_000, UTC)


class Machine(datetime):
    """The clock of this machine, frozen in the middle of a second."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return NOW.astimezone(tz)


@pytest.fixture(autouse=True)
def _frozen_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "datetime", Machine)


def date(ahead: timedelta) -> str:
    return format_datetime(NOW + ahead, usegmt=True)


@pytest.mark.parametrize("ahead", [timedelta(minutes=-1), timedelta(minutes=1), timedelta(days=400)])
def test_clock_follows_each_date_header(ahead: timedelta) -> None:
    clock = Clock()
    clock.adjust(date(ahead))
    assert clock.now() == NOW.replace(microsecond=0) + ahead
    clock.adjust(date(timedelta(0)))
    assert clock.now() == NOW


@pytest.mark.parametrize("header", [None, "", "yesterday", "a second ago"])
def test_a_header_without_a_time_changes_nothing(header: str | None) -> None:
    clock = Clock()
    clock.adjust(date(timedelta(seconds=-1)) if header == "a second ago" else header)
    assert clock.now() == NOW


@pytest.mark.parametrize("seconds", [None, 60.0])
async def test_wait_is_cancelled_even_if_its_event_is_set_at_the_same_time(seconds: float | None) -> None:
    """asyncio.wait_for of Python 3.11 loses the cancellation, and the task continues."""
    event = asyncio.Event()
    task = asyncio.create_task(wait_for_event(event, seconds))
    await asyncio.sleep(0)
    event.set()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_wait_returns_whether_the_event_is_set() -> None:
    event = asyncio.Event()
    assert not await wait_for_event(event, 0)
    event.set()
    assert await wait_for_event(event, 0)
