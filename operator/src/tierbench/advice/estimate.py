"""Estimates of the mean of a quantity, from results, and the quantities that follow from the trials of a result."""

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from math import sqrt
from typing import Final

from tierbench.advice.tables import Cell, ResultSet
from tierbench.api.result import BenchmarkResult, Statistic
from tierbench.kinds.registry import BenchmarkKind, kinds
from tierbench.results.quantities import (
    RETRIES,
    counted_trials,
    describe,
    good_trials,
    is_published_mean,
    main_quantity,
    quantity_values,
    rate_quantity,
)
from tierbench.results.units import title
from tierbench.stats.distributions import quantile_error, standard_error
from tierbench.stats.estimates import Estimate, pool_nodes, pool_trials

_PERCENTILE: Final = re.compile(r"(?P<stem>\w+)(?P<which>P50|P90|P99)(?P<unit>Nanoseconds)")


def estimate(cell: Cell, quantity: str) -> Estimate | None:
    """Returns the estimate of `quantity` over the nodes of a cell; None if nothing was measured."""
    return pool_nodes(list(node_estimates(cell, quantity).values()))


def node_estimates(cell: Cell, quantity: str) -> dict[str, Estimate]:
    """Returns the estimate of each node. A mean without its number of trials is used only if there is nothing else."""
    found = [(result.spec.server.node, result_estimate(result, quantity)) for result in cell.measured]
    known = [(node, one) for node, one in found if one is not None]
    nodes: dict[str, list[Estimate]] = {}
    for node, one in [(node, one) for node, one in known if one.count] or known[:1]:
        nodes.setdefault(node, []).append(one)
    return {node: pool_trials(estimates) for node, estimates in nodes.items()}


def result_estimate(result: BenchmarkResult, quantity: str) -> Estimate | None:
    """Returns the estimate from one result; None if it does not have the quantity."""
    statistic = result.status.statistics.get(quantity)
    if statistic is None:
        return None
    count, deviation = statistic.count, statistic.standard_deviation
    error = None if deviation is None or not count else deviation / sqrt(count)
    trimmed = quantity in result.status.untrimmed and count > 1
    if error is not None and trimmed and statistic.confidence_high is not None:
        # The deviation lacks the trimmed trials; the interval accounts for them.
        error = standard_error(statistic.mean, statistic.confidence_high, count - 1)
    return Estimate(count, statistic.mean, deviation, error, max(1, count - 1), count)


def measured_quantities(results: ResultSet) -> tuple[str, ...]:
    """Returns every quantity that a result has. The main quantity and the rate of the kind come first."""
    names = {name for result in results.results for name in result.status.statistics}
    of_kinds = dict.fromkeys(result.spec.benchmark.kind for result in results.results)
    first = [name for kind in of_kinds for name in (main_quantity(kind, names), rate_quantity(kind))]
    return tuple(sorted(names, key=lambda name: (first.index(name) if name in first else len(first), title(name))))


def is_rate(quantity: str) -> bool:
    """Returns whether a quantity is an amount per second."""
    return quantity.endswith("PerSecond")


def smaller_is_better(quantity: str) -> bool:
    """Returns whether a small value is good: of all quantities but rates and those that their kind names."""
    return not is_rate(quantity) and quantity not in _larger_is_better(kinds())


@cache
def _larger_is_better(every: tuple[BenchmarkKind, ...]) -> frozenset[str]:
    return frozenset(quantity for kind in every for quantity in kind.measures.larger_is_better)


def relative_margin(best: float, next_best: float) -> float | None:
    """Returns the distance of two values as a share of the second one; None if that is 0."""
    return abs(next_best - best) / next_best if next_best else None


def percentile_name(quantity: str, which: str) -> str:
    """Returns the name of a percentile of a quantity, such as durationP99Nanoseconds."""
    return quantity.replace("Nanoseconds", f"{which}Nanoseconds")


def with_derived_quantities(result: BenchmarkResult, wanted: Iterable[str]) -> BenchmarkResult:
    """Returns a result with these quantities among its statistics, as far as they follow from its trials."""
    there = result.status.statistics
    found = {name: derived_statistic(result, name) for name in wanted if name not in there}
    known = {name: statistic for name, statistic in found.items() if statistic is not None}
    if not known:
        return result
    status = result.status.model_copy(update={"statistics": {**there, **known}})
    return result.model_copy(update={"status": status})


def derived_statistic(result: BenchmarkResult, quantity: str) -> Statistic | None:
    """Returns RETRIES over the counted trials, or a percentile over the good trials; None if it is unknown.

    The standard deviation of a percentile is the one from which a mean would have the standard error of the percentile.
    A published mean has no trials, so nothing follows from it.
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
    values = sorted(quantity_values(result.spec.benchmark.kind, good_trials(result.status.trials), base))
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
        return _no_retries(trials)
    values = [1e6 * value for value in trial_retries(result)]
    if len(values) == trials:
        return describe(values)
    return describe([1e6 * counts.retries / trials]).model_copy(update={"count": trials})


def trial_retries(result: BenchmarkResult) -> list[float]:
    """Returns the retries of each counted trial."""
    return quantity_values(result.spec.benchmark.kind, counted_trials(result.status.trials), "retries")


@lru_cache(maxsize=64)
def _no_retries(trials: int) -> Statistic:
    return describe([0.0] * trials)
