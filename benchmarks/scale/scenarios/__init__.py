"""Lists the scenarios. Each has its own file."""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

from benchmarks.scale.rows import Row
from benchmarks.scale.scenarios import advices, flapping, hostile, idle, large, queue, results, running
from benchmarks.scale.site import Site

Scenario = Callable[[Site], AsyncIterator[Row]]

SCENARIOS: Final[Mapping[str, Scenario]] = {
    "idle": idle.measure,
    "queue": queue.measure,
    "flapping": flapping.measure,
    "running": running.measure,
    "hostile": hostile.measure,
    "advices": advices.measure,
    "large": large.measure,
    "results": results.measure,
}
