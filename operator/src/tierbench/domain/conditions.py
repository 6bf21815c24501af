"""The conditions of a benchmark. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tierbench.api.benchmark import Benchmark
from tierbench.api.model import Condition, format_time

_MOST_CHARACTERS: Final = 4096


@dataclass(frozen=True)
class Said:
    """What is to be said of one condition; a status of None is Unknown."""

    type: str
    status: bool | None
    reason: str
    message: str


def conditions(benchmark: Benchmark, said: Iterable[Said], now: datetime) -> tuple[Condition, ...]:
    """The conditions as they were, with `said` in place; a transition time changes only with its status."""
    known = {condition.type: condition for condition in benchmark.status.conditions}
    for item in said:
        before = known.get(item.type)
        status = "Unknown" if item.status is None else str(item.status)
        since = before.last_transition_time if before is not None and before.status == status else format_time(now)
        known[item.type] = Condition(
            type=item.type,
            status=status,
            reason=item.reason,
            message=item.message[:_MOST_CHARACTERS],
            last_transition_time=since,
            observed_generation=benchmark.metadata.generation,
        )
    return tuple(known.values())
