"""The conditions of a benchmark. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from tierbench.api.benchmark import Benchmark
from tierbench.api.model import Condition
from tierbench.api.timestamps import format_time


@dataclass(frozen=True)
class Said:
    """What is to be said of one condition."""

    type: str
    status: bool
    reason: str
    message: str


def conditions(benchmark: Benchmark, said: Iterable[Said], now: datetime) -> tuple[Condition, ...]:
    """The conditions as they were, with `said` in place; a transition time changes only with its status."""
    known = {condition.type: condition for condition in benchmark.status.conditions}
    for item in said:
        before = known.get(item.type)
        status = str(item.status)
        since = before.last_transition_time if before is not None and before.status == status else format_time(now)
        known[item.type] = Condition(
            type=item.type,
            status=status,
            reason=item.reason,
            message=item.message,
            last_transition_time=since,
            observed_generation=benchmark.metadata.generation,
        )
    return tuple(known.values())
