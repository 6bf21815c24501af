"""What the trials of a cell say of one quantity, its nodes taken together."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf, sqrt
from statistics import fmean, stdev
from typing import Final

from tierbench.advice.tables import Cell, ResultSet
from tierbench.api.contract import Outcome
from tierbench.api.result import BenchmarkResult, Statistic
from tierbench.results.published import is_published_mean
from tierbench.results.quantities import RETRIES, describe, main_quantity, quantity_values, rate_quantity
from tierbench.results.units import title
from tierbench.stats.quantiles import quantile_error
from tierbench.stats.samples import mean_interval, standard_error

_EVENNESS: Final = frozenset({"fairnessPartsPerMillion", "pairFairnessPartsPerMillion"})
_PERCENTILE: Final = re.compile(r"(?P<stem>\w+)(?P<which>P50|P90|P99)(?P<unit>Nanoseconds)")


@dataclass(frozen=True)
class Estimate:
    """A mean in the quantity's unit, and how well it is known.

    `count` trials gave it, with the sample standard deviation `deviation`. `error` is the mean's standard error with
    `degrees` of freedom, from `size` independent values: nodes if there are several, else trials. What is not known is
    None. A `count` of 0 is a published mean of which no more is known: it is shown, and nothing is concluded from it.
    """

    count: int
    mean: float
    deviation: float | None
    error: float | None
    degrees: float
    size: int
    nodes: int = 1

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """The 95% confidence interval of the mean. Of a positive one it is that of its logarithm, by the delta method:
        no end of it is below zero, however few and skewed the values.
        """
        return None if self.error is None else mean_interval(self.mean, self.error, self.degrees)

    @property
    def low(self) -> float | None:
        """The lower end of the interval."""
        return None if self.interval is None else self.interval[0]

    @property
    def high(self) -> float | None:
        """The upper end of it."""
        return None if self.interval is None else self.interval[1]


def estimate(cell: Cell, quantity: str) -> Estimate | None:
    """The estimate of `quantity`, None where nothing is measured."""
    return pool_nodes(list(node_estimates(cell, quantity).values()))


def node_estimates(cell: Cell, quantity: str) -> dict[str, Estimate]:
    """What each node says of `quantity`. A mean alone is there only where nothing else is."""
    found = [(result.spec.server.node, result_estimate(result, quantity)) for result in cell.measured]
    known = [(node, one) for node, one in found if one is not None]
    nodes: dict[str, list[Estimate]] = {}
    for node, one in [(node, one) for node, one in known if one.count] or known[:1]:
        nodes.setdefault(node, []).append(one)
    return {node: pool_trials(readings) for node, readings in nodes.items()}


def result_estimate(result: BenchmarkResult, quantity: str) -> Estimate | None:
    """What one result says of `quantity`."""
    statistic = result.status.statistics.get(quantity)
    if statistic is None:
        return None
    count, deviation = statistic.count, statistic.standard_deviation
    error = None if deviation is None or not count else deviation / sqrt(count)
    trimmed = quantity in result.status.untrimmed and count > 1
    if error is not None and trimmed and statistic.confidence_high is not None:
        # What was trimmed is missing in the deviation; the interval accounts for it.
        error = standard_error(statistic.mean, statistic.confidence_high, count - 1)
    return Estimate(count, statistic.mean, deviation, error, max(1, count - 1), count)


def pool_trials(readings: Sequence[Estimate]) -> Estimate:
    """Several readings of the same on one node: all their trials together."""
    if len(readings) == 1:
        return readings[0]
    count = sum(item.count for item in readings)
    mean = sum(item.mean * item.count for item in readings) / count
    deviation = _deviation(readings)
    error = None if deviation is None else deviation / sqrt(count)
    return Estimate(count, mean, deviation, error, max(1, count - 1), count)


def pool_nodes(nodes: Sequence[Estimate]) -> Estimate | None:
    """The nodes of a class together. With several, each node is one value: trials on one are no independent evidence
    about the class, so the error comes from the spread of the nodes' means (an analysis by cluster means; Donner and
    Klar, Design and Analysis of Cluster Randomization Trials, 2000, section 6.2).
    """
    if len(nodes) <= 1:
        return nodes[0] if nodes else None
    means = [node.mean for node in nodes]
    error = stdev(means) / sqrt(len(means))
    count, deviation = sum(node.count for node in nodes), _deviation(nodes)
    return Estimate(count, fmean(means), deviation, error, len(nodes) - 1, len(nodes), len(nodes))


def _deviation(parts: Sequence[Estimate]) -> float | None:
    """The sample standard deviation of all trials."""
    count = sum(item.count for item in parts)
    if count == 1 or any(item.deviation is None and item.count > 1 for item in parts):
        return None
    mean = sum(item.mean * item.count for item in parts) / count
    within = sum((item.deviation or 0) ** 2 * (item.count - 1) for item in parts)
    between = sum(item.count * (item.mean - mean) ** 2 for item in parts)
    return sqrt((within + between) / (count - 1))


def satterthwaite(variances: Sequence[tuple[float, float]]) -> float:
    """The degrees of freedom of a sum of variances, each with its own; their least where none varies."""
    total = sum(variance for variance, _ in variances)
    if not total:
        return min((degrees for _, degrees in variances), default=inf)
    return 1 / sum((variance / total) ** 2 / degrees for variance, degrees in variances)


def measured_quantities(results: ResultSet) -> tuple[str, ...]:
    """Every quantity that some result has, those first by which its kind is read."""
    names = {name for result in results.results for name in result.status.statistics}
    kinds = {result.spec.benchmark.kind: None for result in results.results}
    first = [name for kind in kinds for name in (main_quantity(kind, names), rate_quantity(kind))]
    return tuple(sorted(names, key=lambda name: (first.index(name) if name in first else len(first), title(name))))


def is_rate(quantity: str) -> bool:
    """Whether it is so much a second."""
    return quantity.endswith("PerSecond")


def smaller_is_better(quantity: str) -> bool:
    """Whether a small value is the good one: of all quantities but rates and how even shares are."""
    return not is_rate(quantity) and quantity not in _EVENNESS


def relative_margin(best: float, next_best: float) -> float | None:
    """How far the best lies from the next, as a share of the latter; None if that is 0."""
    return abs(next_best - best) / next_best if next_best else None


def percentile_name(quantity: str, which: str) -> str:
    """The name of a quantity's percentile: of durationNanoseconds and P99 it is durationP99Nanoseconds."""
    return quantity.replace("Nanoseconds", f"{which}Nanoseconds")


def with_derived_quantities(result: BenchmarkResult, wanted: Iterable[str]) -> BenchmarkResult:
    """The result with these quantities among its statistics, as far as it tells them."""
    there = result.status.statistics
    found = {name: derived_statistic(result, name) for name in wanted if name not in there}
    known = {name: statistic for name, statistic in found.items() if statistic is not None}
    if not known:
        return result
    status = result.status.model_copy(update={"statistics": {**there, **known}})
    return result.model_copy(update={"status": status})


def derived_statistic(result: BenchmarkResult, quantity: str) -> Statistic | None:
    """RETRIES over the counted trials; or a percentile over the good ones. Of a mean no trial is known, and nothing.

    A percentile's standard deviation is what its standard error would come from, were it a mean.
    """
    if is_published_mean(result):
        return None
    if quantity == RETRIES:
        return _retries(result)
    match = _PERCENTILE.fullmatch(quantity)
    base = "" if match is None else match["stem"] + match["unit"]
    whole = result.status.statistics.get(base)
    if match is None or whole is None:
        return None
    values = sorted(_values(result, base, good=True))
    error = quantile_error(values, int(match["which"][1:]) / 100) if len(values) == whole.count else None
    value = getattr(whole, match["which"].lower())
    deviation = None if error is None else round(error * sqrt(whole.count))
    ends = {"confidence_low": None, "confidence_high": None}
    return whole.model_copy(update={"mean": value, "standard_deviation": deviation, **ends})


def _retries(result: BenchmarkResult) -> Statistic | None:
    counts = result.status.counts
    trials = counts.completed + counts.failed
    if not trials:
        return None
    if not counts.retries:
        return _never(trials)
    values = [1e6 * value for value in _values(result, "retries", good=False)]
    if len(values) == trials:
        return describe(values)
    return describe([1e6 * counts.retries / trials]).model_copy(update={"count": trials})


@lru_cache(maxsize=64)
def _never(trials: int) -> Statistic:
    return describe([0.0] * trials)


def _values(result: BenchmarkResult, quantity: str, *, good: bool) -> Sequence[float]:
    """The quantity in each counted trial, or in each good one."""
    counted = (trial for trial in result.status.trials if not trial.warmup)
    chosen = (trial for trial in counted if not good or trial.outcome is Outcome.COMPLETED)
    return quantity_values(result.spec.benchmark.kind, chosen, quantity)
