"""Reads the JUnit files that pytest and gotestsum write."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

PASSED, FAILED, SKIPPED, UNFIT = "passed", "failed", "skipped", "unfit"


@dataclass(frozen=True)
class Outcome:
    """A test: its name, its outcome, its duration in seconds, and the message of a failure."""

    name: str
    outcome: str
    seconds: float
    message: str = ""


def outcomes(file: Path) -> Iterator[Outcome]:
    """Yields the outcomes of all tests in a file."""
    for case in ElementTree.parse(file).iter("testcase"):
        name = f"{case.get('classname', '')}.{case.get('name', '')}"
        outcome, message = _outcome(case)
        yield Outcome(name, outcome, float(case.get("time") or 0), message)


def _outcome(case: ElementTree.Element) -> tuple[str, str]:
    for tag in ("failure", "error"):
        if (found := case.find(tag)) is not None:
            return FAILED, found.get("message") or (found.text or "").strip()
    if (found := case.find("skipped")) is not None:
        message = found.get("message") or ""
        return (UNFIT if message.startswith("UNFIT: ") else SKIPPED), message
    return PASSED, ""
