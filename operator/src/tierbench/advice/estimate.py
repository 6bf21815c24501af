"""What the trials of a cell say of one quantity, its nodes taken together."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from tierbench.advice.matrix import Cell, Run
from tierbench.advice.units import title
from tierbench.api.result import Statistic
from tierbench.results.quantities import main_quantity, rate_quantity


@dataclass(frozen=True)
class Estimate:
    """Mean, sample standard deviation and 95 % confidence interval, in the quantity's unit."""

    count: int
    mean: float
    deviation: float | None
    low: float | None
    high: float | None

    def overlaps(self, other: "Estimate") -> bool:
        """Whether the intervals have a value in common; without an interval nothing can be told apart."""
        if self.low is None or self.high is None or other.low is None or other.high is None:
            return True
        return self.low <= other.high and other.low <= self.high


def estimate(cell: Cell, quantity: str) -> Estimate | None:
    """The estimate of `quantity`, None where nothing is measured.

    With several nodes, mean and deviation are those of all trials, and the interval spans the intervals of the nodes:
    trials on one node are no independent evidence about its class.
    """
    found = [result.status.statistics[quantity] for result in cell.measured if quantity in result.status.statistics]
    if not found:
        return None
    count = sum(item.count for item in found)
    if not count:
        return None
    mean = sum(item.mean * item.count for item in found) / count
    lows = [item.confidence_low for item in found if item.confidence_low is not None]
    highs = [item.confidence_high for item in found if item.confidence_high is not None]
    sure = len(lows) == len(highs) == len(found)
    low, high = (min(lows), max(highs)) if sure else (None, None)
    return Estimate(count, mean, _deviation(found, mean, count), low, high)


def _deviation(found: Sequence[Statistic], mean: float, count: int) -> float | None:
    if count == 1 or any(item.standard_deviation is None and item.count > 1 for item in found):
        return None
    within = sum((item.standard_deviation or 0) ** 2 * (item.count - 1) for item in found)
    between = sum(item.count * (item.mean - mean) ** 2 for item in found)
    return sqrt((within + between) / (count - 1))


def quantities(run: Run) -> tuple[str, ...]:
    """Every quantity that some result has, those first by which its kind is read."""
    names = {name for result in run.results for name in result.status.statistics}
    first = (main_quantity(run.benchmark.kind), rate_quantity(run.benchmark.kind))
    return tuple(sorted(names, key=lambda name: (first.index(name) if name in first else len(first), title(name))))


def smaller_is_better(quantity: str) -> bool:
    """Whether a small value is the good one: of all quantities but rates."""
    return not quantity.endswith("PerSecond")
