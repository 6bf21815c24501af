"""Every reason that a user can meet is explained."""

import re
from pathlib import Path

from tierbench.domain import reasons

DOCS = Path(__file__).parents[3] / "docs"


def test_troubleshooting_names_every_reason_and_condition() -> None:
    words = set(re.findall(r"[A-Z][A-Za-z]+", (DOCS / "troubleshooting.md").read_text()))
    known = {value for name, value in vars(reasons).items() if name.isupper()}
    assert known - words == set()
