"""What a service requires: the levels of its workload with their weights, and constraints at each of these levels."""

from collections.abc import Container, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import prod
from statistics import fmean
from typing import Final

from tierbench.advice.posterior import NodeEstimates, Posterior, PosteriorModel
from tierbench.advice.tables import EMPTY, Cell, ResultSet, estimate, node_estimates, smaller_is_better
from tierbench.api.placement_advice import AdviceConstraints, WorkloadProfile
from tierbench.api.quantity import parse_size
from tierbench.api.result import BenchmarkResult
from tierbench.api.run_policy import Constraints
from tierbench.results.quantities import (
    is_censored,
    levels_and_parameters,
    percentile_name,
    percentile_over,
    rate_quantity,
    time_quantity,
)
from tierbench.results.units import describe_level, factor_traits, join_words, level_number, show, title
from tierbench.stats.distributions import required_count
from tierbench.stats.estimates import rate_interval

Levels = tuple[tuple[str, str], ...]
"""One level of each factor, sorted by factor."""
_MILLISECOND: Final = 10**6
_BITS: Final = 8
_P99: Final = 0.99


@dataclass(frozen=True)
class WorkloadItem:
    """Levels that a workload asks for, and their weight."""

    levels: Mapping[str, str]
    weight: float

    def __str__(self) -> str:
        """Returns the levels in words."""
        return ", ".join(describe_level(name, level) for name, level in self.levels.items())

    def matches(self, result: BenchmarkResult) -> bool:
        """Returns whether a result was measured at these levels."""
        levels = levels_and_parameters(result)
        return all(
            name in levels and canonical_level(levels[name]) == canonical_level(level)
            for name, level in self.levels.items()
        )


@lru_cache(maxsize=4096)
def canonical_level(level: str) -> str:
    """Returns one spelling for all spellings of a level. 1Gi and 1073741824 are the same."""
    number = level_number(level)
    return level if number is None else f"{number:.0f}"


def levels_of(result: BenchmarkResult) -> Levels:
    """Returns the levels and parameters of a result, in one spelling each."""
    return tuple(sorted((name, canonical_level(level)) for name, level in levels_and_parameters(result).items()))


def workload_items(workload: WorkloadProfile | None) -> tuple[WorkloadItem, ...]:
    """Returns the items of a workload. Without a workload it is one item that every result matches."""
    if workload is None:
        return (WorkloadItem({}, 1),)
    named = workload.model_dump(by_alias=True, exclude_none=True, exclude={"file_sizes", "levels"})
    held = {name: str(level) for name, level in named.items()} | workload.levels
    if not workload.file_sizes:
        return (WorkloadItem(held, 1),)
    return tuple(WorkloadItem({"fileSize": each.size, **held}, each.weight) for each in workload.file_sizes)


def describe_workload(items: Sequence[WorkloadItem]) -> str:
    """Returns a workload in words."""
    has_weights = len({item.weight for item in items}) > 1
    texts = [f"{item}{f' (weight {item.weight:g})' if has_weights else ''}" for item in items if item.levels]
    return join_words(texts) or "all measured levels together"


@dataclass(frozen=True)
class Combination:
    """One combination of levels, and its share of the workload."""

    levels: Levels
    share: float


@dataclass(frozen=True)
class WorkloadResults:
    """The results at the levels of a workload, by class and combination.

    `missing` has the items of the workload that a class lacks. `left_out` has the combinations that a class lacks and
    others have. With `of_clients` a class is one of clients, and so are its nodes.
    """

    combinations: tuple[Combination, ...]
    cells: Mapping[str, Mapping[Levels, Cell]]
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: Mapping[str, tuple[Levels, ...]] = field(default_factory=dict)
    of_clients: bool = False
    _estimates: dict[tuple[str, str], Mapping[Levels, NodeEstimates]] = field(default_factory=dict, compare=False)
    _models: dict[str, tuple[PosteriorModel, dict[Levels, float]]] = field(default_factory=dict, compare=False)

    def cell(self, name: str, combination: Combination) -> Cell:
        """Returns the results of a class at a combination."""
        return self.cells[name].get(combination.levels, EMPTY)

    def results_of(self, name: str) -> tuple[BenchmarkResult, ...]:
        """Returns the results of a class that the workload asks for."""
        return self._results[name]

    @cached_property
    def _results(self) -> Mapping[str, tuple[BenchmarkResult, ...]]:
        return {
            name: tuple(result for each in self.combinations for result in self.cell(name, each).results)
            for name in self.cells
        }

    def weights(self, quantity: str) -> dict[Levels, float]:
        """Returns the weight of each combination; the weights add up to 1.

        The weight of a rate is multiplied with the amount that is carried. One over the weighted mean of one over the
        rates is then the whole amount divided by the whole time.
        """
        amounts = {each.levels: each.share * amount_carried(each.levels, quantity) for each in self.combinations}
        total = sum(amounts.values())
        return {levels: amount / total for levels, amount in amounts.items()}

    def estimates(self, name: str, quantity: str) -> Mapping[Levels, NodeEstimates]:
        """Returns the estimates of each node of a class at each combination."""
        if (name, quantity) not in self._estimates:
            self._estimates[name, quantity] = {
                each.levels: node_estimates(self.cell(name, each), quantity, of_clients=self.of_clients)
                for each in self.combinations
            }
        return self._estimates[name, quantity]

    def posteriors(self, quantity: str) -> dict[str, Posterior]:
        """Returns the posterior of each class over the whole workload. Classes that lack a combination are left out."""
        every = tuple(each.levels for each in self.combinations)
        found = {name: self.posterior(name, quantity, every) for name in self.cells} if every else {}
        return {name: posterior for name, posterior in found.items() if posterior is not None}

    def posterior(self, name: str, quantity: str, every: Sequence[Levels]) -> Posterior | None:
        """Returns the posterior of a class over some combinations; None if it has too few trials at one of them."""
        if quantity not in self._models:
            estimates = {each: self.estimates(each, quantity) for each in self.cells}
            self._models[quantity] = PosteriorModel(quantity, estimates), self.weights(quantity)
        model, weights = self._models[quantity]
        cut_short = any(self.cells[name].get(levels, EMPTY).cut_short for levels in every)
        return model.posterior(name, {levels: weights[levels] for levels in every}, cut_short=cut_short)

    def node_posteriors(self, name: str, quantity: str) -> dict[str, Posterior]:
        """Returns the posterior of each single node of a class over the whole workload."""
        estimates = self.estimates(name, quantity)
        nodes = dict.fromkeys(node for of_nodes in estimates.values() for node in of_nodes)
        by_node = {
            node: {levels: {node: of_nodes[node]} for levels, of_nodes in estimates.items() if node in of_nodes}
            for node in nodes
        }
        model, weights = PosteriorModel(quantity, by_node), self.weights(quantity)
        found = ((node, model.posterior(node, weights)) for node in nodes)
        return {node: posterior for node, posterior in found if posterior is not None}

    def has_all(self, name: str, quantity: str) -> bool:
        """Returns whether a class has an estimate at every combination."""
        return all(self.estimates(name, quantity).values())

    def median(self, name: str, quantity: str) -> float | None:
        """Returns the weighted mean of the medians of trials; None if one is unknown."""
        less, total = smaller_is_better(quantity), 0.0
        for levels, weight in self.weights(quantity).items():
            cell = self.cells[name].get(levels, EMPTY)
            statistics = [result.status.statistics.get(quantity) for result in cell.measured]
            medians = [one.p50 for one in statistics if one is not None and one.p50 is not None]
            if not medians or not (less or fmean(medians)):
                return None
            total += weight * (fmean(medians) if less else 1 / fmean(medians))
        return total if less else 1 / total


def amount_carried(levels: Levels, quantity: str) -> float:
    """Returns a number that is proportional to what one request carries, if the quantity is a rate of bytes; else 1."""
    if not quantity.endswith(("BytesPerSecond", "BitsPerSecond")):
        return 1.0
    sizes = (level_number(level) for factor, level in levels if factor_traits(factor).amount)
    return prod(size for size in sizes if size)


def group_by_workload(results: Sequence[BenchmarkResult], items: Sequence[WorkloadItem]) -> WorkloadResults:
    """Groups results by class and combination of levels.

    An item covers the combinations that match it and that all classes have. Each of these gets the same share of
    the weight of the item.
    """
    grouped: dict[str, dict[Levels, list[BenchmarkResult]]] = {}
    for result in results:
        grouped.setdefault(result.spec.server.node_class, {}).setdefault(levels_of(result), []).append(result)
    cells = {name: {levels: Cell(tuple(found)) for levels, found in of.items()} for name, of in grouped.items()}
    shares: dict[Levels, float] = {}
    missing: dict[str, list[str]] = {}
    left_out: dict[str, list[Levels]] = {}
    total = sum(item.weight for item in items)
    for item in items:
        having = {name: _matching_levels(item, of_class) for name, of_class in cells.items()}
        for name in (name for name, found in having.items() if not found):
            missing.setdefault(name, []).append(str(item))
        present = [set(found) for found in having.values() if found]
        every = dict.fromkeys(levels for found in having.values() for levels in found)
        shared = [levels for levels in every if all(levels in found for found in present)] or list(every)
        for name, found in having.items():
            if found and len(shared) < len(every):
                left_out.setdefault(name, []).extend(levels for levels in every if levels not in found)
        for levels in shared:
            shares[levels] = shares.get(levels, 0) + item.weight / total / len(shared)
    return WorkloadResults(
        tuple(Combination(levels, share) for levels, share in shares.items()),
        cells,
        {name: tuple(texts) for name, texts in missing.items()},
        {name: tuple(levels) for name, levels in left_out.items() if levels},
    )


def _matching_levels(item: WorkloadItem, cells: Mapping[Levels, Cell]) -> list[Levels]:
    return [levels for levels, cell in cells.items() if cell.measured and item.matches(cell.results[0])]


@dataclass(frozen=True)
class Violation:
    """A constraint that is not met, or perhaps not met.

    `unknown`: it is not known whether the constraint is met. `uncertain`: the value is near the limit, so more trials
    may change the result. Both: there are too few values, or the interval of a percentile contains the limit.
    """

    reason: str
    message: str
    unknown: bool = False
    uncertain: bool = False


@dataclass(frozen=True)
class Limit:
    """The limit of a quantity."""

    reason: str
    quantity: str
    value: float


def mean_limits(constraints: Constraints, kind: str, there: Container[str]) -> tuple[Limit, ...]:
    """Returns the limits of means for a kind of benchmark; `there` are the quantities that results have."""
    time = time_quantity(kind, there)
    minimum = constraints.min_bytes_per_second
    in_bits = rate_quantity(kind).endswith("BitsPerSecond")
    rate, unit = ("throughputBitsPerSecond", _BITS) if in_bits else ("throughputBytesPerSecond", 1)
    every = (
        ("MeanTooLong", time, constraints.max_mean_milliseconds, _MILLISECOND),
        ("ThroughputTooLow", rate, None if minimum is None else parse_size(minimum), unit),
        ("ThroughputTooLow", "throughputMessagesPerSecond", constraints.min_messages_per_second, 1),
    )
    return tuple(
        Limit(reason, quantity, value * factor) for reason, quantity, value, factor in every if value is not None
    )


def violations(
    measured: WorkloadResults, name: str, constraints: Constraints, kind: str, items: Sequence[WorkloadItem]
) -> Iterator[Violation]:
    """Yields the constraints that a class violates, or may violate, at each level of the workload.

    The levels at which this or another class failed count too.
    """
    if (
        not mean_limits(constraints, kind, ())
        and constraints.max_p99_milliseconds is None
        and constraints.max_retries is None
    ):
        return
    cells = [cell for cell in measured.cells[name].values() if any(item.matches(cell.results[0]) for item in items)]
    factors = ResultSet(tuple(cell.results[0] for cell in cells)).factors
    varying = {factor for factor, levels in factors.items() if len(levels) > 1}
    there = {quantity for cell in cells for result in cell.results for quantity in result.status.statistics}
    limits = mean_limits(constraints, kind, there)
    for cell in cells:
        place = _place(cell, varying)
        for limit in limits:
            yield from _check_mean(cell, place, limit)
        if constraints.max_p99_milliseconds is not None:
            maximum = constraints.max_p99_milliseconds * _MILLISECOND
            yield from _check_percentile(cell, place, time_quantity(kind, there), maximum)
        if constraints.max_retries is not None:
            yield from _check_retries(cell, place, constraints.max_retries)


def architecture_violations(
    measured: WorkloadResults, name: str, constraints: AdviceConstraints
) -> Iterator[Violation]:
    """Yields a violation if a class has nodes of an architecture that the service is not built for."""
    known = {result.spec.server.architecture for result in measured.results_of(name)}
    others = sorted(known - set(constraints.architectures))
    if constraints.architectures and others:
        allowed, found = join_words(constraints.architectures, "or"), join_words(others) or "unknown"
        yield Violation("ArchitectureExcluded", f"The architecture of its nodes is {found}; it must be {allowed}.")


def _check_mean(cell: Cell, place: str, limit: Limit) -> Iterator[Violation]:
    found = estimate(cell, limit.quantity)
    name = title(limit.quantity)
    if found is None:
        yield _not_measured(limit.reason, name, place)
        return
    less = smaller_is_better(limit.quantity)
    bound = f"the {'maximum' if less else 'minimum'} is {show(limit.quantity, limit.value)}"
    message = f"{name} is {show(limit.quantity, found.mean)}{place}; {bound}."
    sign = 1 if less else -1
    if sign * (found.mean - limit.value) > 0:
        yield Violation(limit.reason, message)
    elif any(map(is_censored, cell.results)):
        yield _cut_off(limit.reason, name, place)
    if found.low is not None and found.high is not None and found.low <= limit.value <= found.high:
        yield Violation(limit.reason, message, uncertain=True)


def _check_percentile(cell: Cell, place: str, quantity: str, maximum: float) -> Iterator[Violation]:
    """Checks a percentile by its interval: the constraint is met, violated, or unknown."""
    reason, name = "P99TooLong", percentile_name(quantity, "P99")
    found = percentile_over(cell.measured, "P99")
    what, bound = title(name), f"the maximum is {show(name, maximum)}"
    if found is None:
        yield _not_measured(reason, what, place)
        return
    low, high = found.confidence_low, found.confidence_high
    if low is not None and low > maximum:
        yield Violation(reason, f"{what} is {show(name, low)} or more{place}; {bound}.")
    elif any(map(is_censored, cell.results)):
        yield _cut_off(reason, what, place)
    elif high is None:
        few = f"unknown{place}, as {found.count} values are too few; {required_count(_P99)} are enough"
        yield Violation(reason, f"{what} is {few}; {bound}.", unknown=True, uncertain=True)
    elif high > maximum:
        between = " to ".join(show(name, end) for end in (low, high) if end is not None)
        yield Violation(reason, f"{what} is {between}{place}; {bound}.", unknown=True, uncertain=True)


def _check_retries(cell: Cell, place: str, maximum: int) -> Iterator[Violation]:
    """Checks the number of retries per trial, which does not grow with the number of trials."""
    trials = cell.completed + cell.failed
    if not trials:
        return
    message = f"There were {cell.retries} retries in {trials} trials{place}; the maximum is {maximum} per trial."
    if cell.retries / trials > maximum:
        yield Violation("TooManyRetries", message)
    elif maximum and rate_interval(cell.retries, trials)[1] > maximum:
        yield Violation("TooManyRetries", message, uncertain=True)


def _not_measured(reason: str, name: str, place: str) -> Violation:
    message = f"{name} was not measured{place}, so it is unknown whether the constraint is met."
    return Violation(reason, message, unknown=True)


def _cut_off(reason: str, name: str, place: str) -> Violation:
    message = f"Slow trials were cut off{place}, so it is unknown whether {name.lower()} meets the constraint."
    return Violation(reason, message, unknown=True)


def _place(cell: Cell, varying: Set[str]) -> str:
    levels = levels_and_parameters(cell.results[0])
    words = ", ".join(describe_level(factor, levels[factor]) for factor in sorted(varying & levels.keys()))
    return f" at {words}" if words else ""
