"""Conditions as they are written, and the reasons that troubleshooting explains."""

import re
from pathlib import Path

from tests.unit.domain.world import START, benchmark
from tierbench.domain import reasons
from tierbench.domain.status import ConditionUpdate, set_conditions

DOCS = Path(__file__).parents[3] / "docs"


def test_a_message_longer_than_the_api_allows_is_cut() -> None:
    """A webhook may say as much as it likes."""
    (written,) = set_conditions(
        benchmark(), [ConditionUpdate("ServerReady", False, "Refused", "denied " * 1000)], START
    )
    assert len(written.message) == 4096


def test_a_status_of_none_is_unknown() -> None:
    (written,) = set_conditions(
        benchmark(), [ConditionUpdate("Regressed", None, "NotComparable", "Other nodes.")], START
    )
    assert written.status == "Unknown"


def test_troubleshooting_names_every_reason_and_condition() -> None:
    words = set(re.findall(r"[A-Z][A-Za-z]+", (DOCS / "how-to/troubleshoot.md").read_text()))
    known = {value for name, value in vars(reasons).items() if name.isupper()}
    assert known - words == set()
