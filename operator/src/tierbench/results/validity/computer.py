"""What slowed the computers of a case, of any kind."""

from collections.abc import Iterator, Sequence
from typing import Final

from tierbench.api.computer import Computer
from tierbench.api.result import Note, ResultTrial

HELD_BACK_SHARE: Final = 0.01
FULL_FREQUENCY_SHARE: Final = 0.9
_FIXED_GOVERNOR: Final = "performance"


def facts(good: Sequence[ResultTrial]) -> list[Note]:
    """That processors which were to run at their highest frequency did not; with all cores busy that is usual."""
    slow = sum(any(_is_below_maximum(computer) for _, computer in _computers(trial)) for trial in good)
    if not slow:
        return []
    message = (
        f"In {slow} of {len(good)} trials processors ran below {100 * FULL_FREQUENCY_SHARE:.0f} % of their highest "
        f"frequency, though their governor is {_FIXED_GOVERNOR}."
    )
    return [Note(reason="FrequencyBelowMaximum", message=message)]


def invalid(good: Sequence[ResultTrial]) -> list[Note]:
    """That processors were slowed for their heat, or a quota of CPU time held a process back."""
    causes = [tuple(_throttled(trial)) for trial in good]
    throttled = sum(map(bool, causes))
    if not throttled:
        return []
    named = sorted({cause for found in causes for cause in found})
    message = f"In {throttled} of {len(good)} trials a computer was slowed: {', '.join(named)}."
    return [Note(reason="Throttled", message=message)]


def _throttled(trial: ResultTrial) -> Iterator[str]:
    for side, computer in _computers(trial):
        if computer.thermal_throttles:
            yield f"the {side}'s for its heat"
        if (computer.quota_throttled_nanoseconds or 0) > HELD_BACK_SHARE * trial.duration_nanoseconds:
            yield f"the {side}'s by a quota of CPU time"


def _computers(trial: ResultTrial) -> Iterator[tuple[str, Computer]]:
    """Those that told of themselves, with their side."""
    if trial.client.computer is not None:
        yield "client", trial.client.computer
    if trial.server is not None and trial.server.computer is not None:
        yield "server", trial.server.computer


def _is_below_maximum(computer: Computer) -> bool:
    now, highest = computer.cpu_frequency_kilohertz, computer.cpu_maximum_kilohertz
    if now is None or highest is None or computer.cpu_governor != _FIXED_GOVERNOR:
        return False
    return now < FULL_FREQUENCY_SHARE * highest
