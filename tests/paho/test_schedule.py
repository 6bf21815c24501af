"""Open loops: what is due when, and that pairs do not send in step."""

from threading import Event
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.paho.src.tierbench_paho import publisher
from images.paho.src.tierbench_paho.connection import Connection
from images.paho.src.tierbench_paho.envelope import Codec
from images.paho.src.tierbench_paho.ledger import Ledger
from images.paho.src.tierbench_paho.options import Load, Pacing
from images.paho.src.tierbench_paho.pool import Pool
from images.paho.src.tierbench_paho.schedule import Schedule, phase

INTERVALS = st.floats(min_value=1000, max_value=1e9)


@given(first=st.integers(min_value=0, max_value=2**60), interval=INTERVALS, number=st.integers(0, 10**6))
def test_as_many_are_due_before_a_message_as_its_number_says(first: int, interval: float, number: int) -> None:
    schedule = Schedule(first, interval)
    assert schedule.due_before(schedule.due(number)) == number
    assert schedule.due_before(schedule.due(number) + 1) == number + 1


@given(interval=INTERVALS, share=st.floats(min_value=0, max_value=1, exclude_max=True), number=st.integers(1, 10**6))
def test_whatever_its_phase_a_pair_has_as_many_messages(interval: float, share: float, number: int) -> None:
    schedule = Schedule(round(share * interval), interval)
    assert abs(schedule.due_before(round(number * interval)) - number) <= (share * interval > interval - 1)


def test_phases_spread_over_the_interval_and_come_again() -> None:
    phases = [phase(1, pair) for pair in range(100)]
    assert phases == [phase(1, pair) for pair in range(100)]
    assert all(sum(tenth <= 10 * one < tenth + 1 for one in phases) for tenth in range(10))
    assert phase(1, 0) != phase(2, 0)


def test_messages_leave_when_they_are_due_and_those_that_a_delay_held_up_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    interval, held_up = 5_000_000, 22_000_000
    now, sent = 1000, []

    def sleep_until(moment: int, _stop: Event) -> None:
        nonlocal now
        now = max(now, moment)

    class Connected:
        def publish(self, _topic: str, _message: bytes) -> int:
            nonlocal now
            sent.append(now)
            now += held_up if len(sent) == 11 else 0
            one.freed()
            return len(sent)

    monkeypatch.setattr(publisher, "_sleep_until", sleep_until)
    monkeypatch.setattr(publisher, "perf_counter_ns", lambda: now)
    ledger, pool = Ledger(), Pool.of_kind("Zeros", 10, 1)
    pacing = Pacing(512, float(interval))
    one = publisher.Publisher("topic", pool, Codec("None", None), ledger, pacing, Load(100, None), 10**9, 0.25, 0)
    one.run(cast(Connection, Connected()), now, Event())
    due = [1000 + interval // 4 + number * interval for number in range(100)]
    free = due[10] + held_up
    assert sent == due[:11] + [max(free, moment) for moment in due[11:]]
    assert ledger.late == len([moment for moment in due[11:] if free - moment > pacing.late_nanoseconds]) == 4
