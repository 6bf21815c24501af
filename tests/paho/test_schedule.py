"""Open loops: what is due when, and that pairs do not send in step."""

from hypothesis import given
from hypothesis import strategies as st

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
