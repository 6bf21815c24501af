"""The conditions of a status."""

from tests.unit.domain.objects import START, benchmark
from tierbench.domain.status import ConditionUpdate, set_conditions


def test_a_message_longer_than_the_api_allows_is_truncated() -> None:
    """A webhook may return a message of any length."""
    (written,) = set_conditions(
        benchmark(), [ConditionUpdate("ServerReady", False, "Refused", "denied " * 1000)], START
    )
    assert len(written.message) == 4096


def test_a_status_of_none_is_unknown() -> None:
    (written,) = set_conditions(
        benchmark(), [ConditionUpdate("Regressed", None, "NotComparable", "Other nodes.")], START
    )
    assert written.status == "Unknown"
