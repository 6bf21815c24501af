"""The API server's time."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from tierbench.kube.clock import Clock


def date(ahead: timedelta) -> str:
    return format_datetime(datetime.now(UTC) + ahead, usegmt=True)


@pytest.mark.parametrize("ahead", [timedelta(minutes=-1), timedelta(minutes=1), timedelta(days=400)])
def test_a_clock_that_is_wrong_is_set_right_and_back(ahead: timedelta) -> None:
    clock = Clock()
    clock.hear(date(ahead))
    assert abs(clock.now() - datetime.now(UTC) - ahead) < timedelta(seconds=2)
    clock.hear(date(timedelta(0)))
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=0.1)


@pytest.mark.parametrize("said", [None, "", "yesterday", "a second ago"])
def test_what_says_nothing_changes_nothing(said: str | None) -> None:
    clock = Clock()
    clock.hear(date(timedelta(seconds=-1)) if said == "a second ago" else said)
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=0.1)
