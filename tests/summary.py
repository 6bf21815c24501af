"""Sums up a test target: `python3 -m tests.summary`, from build/test. Exits with 1 if a step or a test failed."""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.junit import FAILED, PASSED, SKIPPED, UNFIT, Outcome, outcomes

FOLDER = Path(__file__).parents[1] / "build" / "test"
_SLOWEST = 15


def main() -> int:
    """Prints the steps, the slowest tests, the failed and UNFIT tests, and the counts."""
    steps = [line.split("\t") for line in (FOLDER / "steps.tsv").read_text().splitlines()]
    found = [one for file in sorted(FOLDER.glob("*.xml")) for one in outcomes(file)]
    print(f"\n{'step':24} {'seconds':>8}")
    for name, status, seconds in steps:
        print(f"{name:24} {seconds:>8}{'' if status == '0' else '  FAILED'}")
    _show("slowest tests", sorted(found, key=lambda one: -one.seconds)[:_SLOWEST])
    for outcome in (UNFIT, FAILED):
        _show(outcome.upper(), [one for one in found if one.outcome == outcome])
    counts = Counter(one.outcome for one in found)
    broken = [name for name, status, _ in steps if status != "0"]
    if broken:
        print(f"\nfailed steps: {', '.join(broken)}; see build/test/NAME.log")
    print(f"\n{counts[PASSED]} passed, {counts[FAILED]} failed, {counts[SKIPPED] + counts[UNFIT]} skipped", flush=True)
    return 1 if broken or counts[FAILED] else 0


def _show(title: str, found: Sequence[Outcome]) -> None:
    if not found:
        return
    print(f"\n{title}")
    for one in found:
        message = one.message.partition("\n")[0]
        print(f"{one.seconds:8.1f} s  {one.name}{f': {message}' if message else ''}")


if __name__ == "__main__":
    sys.exit(main())
