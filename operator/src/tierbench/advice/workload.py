"""The workload of an advice: the levels that it asks for, their weights, and the results that were measured at them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import prod
from statistics import fmean

from tierbench.advice.estimate import node_estimates, smaller_is_better
from tierbench.advice.posterior import NodeEstimates, Posterior, PosteriorModel
from tierbench.advice.tables import EMPTY, Cell
from tierbench.api.placement_advice import WorkloadProfile
from tierbench.api.result import BenchmarkResult
from tierbench.results.quantities import levels_and_parameters
from tierbench.results.units import describe_level, factor_traits, join_words, level_number

Levels = tuple[tuple[str, str], ...]
"""One level of each factor, sorted by factor."""


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
    others have.
    """

    combinations: tuple[Combination, ...]
    cells: Mapping[str, Mapping[Levels, Cell]]
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: Mapping[str, tuple[Levels, ...]] = field(default_factory=dict)
    _estimates: dict[tuple[str, str], Mapping[Levels, NodeEstimates]] = field(default_factory=dict, compare=False)

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
            found = {each.levels: node_estimates(self.cell(name, each), quantity) for each in self.combinations}
            self._estimates[name, quantity] = found
        return self._estimates[name, quantity]

    def posteriors(self, quantity: str) -> dict[str, Posterior]:
        """Returns the posterior of each class over the whole workload. Classes that lack a combination are left out."""
        model = PosteriorModel(quantity, {name: self.estimates(name, quantity) for name in self.cells})
        weights = self.weights(quantity)
        found = ((name, model.posterior(name, weights, cut_short=self.cut_short(name))) for name in self.cells)
        return {name: posterior for name, posterior in found if weights and posterior is not None}

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

    def cut_short(self, name: str) -> bool:
        """Returns whether counted trials of a class are missing or failed."""
        return any(self.cell(name, each).cut_short for each in self.combinations)

    def has_all(self, name: str, quantity: str) -> bool:
        """Returns whether a class has an estimate at every combination."""
        return all(self.estimates(name, quantity).values())

    def median(self, name: str, quantity: str) -> float | None:
        """Returns the weighted mean of the medians of trials; None if one is unknown."""
        less, total = smaller_is_better(quantity), 0.0
        for levels, weight in self.weights(quantity).items():
            cell = self.cells[name].get(levels, EMPTY)
            statistics = [result.status.statistics.get(quantity) for result in cell.measured]
            medians = [statistic.p50 for statistic in statistics if statistic is not None]
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
