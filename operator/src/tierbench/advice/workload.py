"""What a workload asks for, and what each class's results say of it."""

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
"""The factors that say what a request carries."""


@dataclass(frozen=True)
class WorkloadItem:
    """Levels that are asked for, and how much they count."""

    levels: Mapping[str, str]
    weight: float

    def __str__(self) -> str:
        """The levels in words."""
        return ", ".join(describe_level(name, level) for name, level in self.levels.items())

    def matches(self, result: BenchmarkResult) -> bool:
        """Whether a result was measured at these levels."""
        levels = levels_and_parameters(result)
        return all(
            name in levels and canonical_level(levels[name]) == canonical_level(level)
            for name, level in self.levels.items()
        )


@lru_cache(maxsize=4096)
def canonical_level(level: str) -> str:
    """One text for all ways to write a level: 1Gi and 1073741824 are the same."""
    number = level_number(level)
    return level if number is None else f"{number:.0f}"


def workload_items(workload: WorkloadProfile | None) -> tuple[WorkloadItem, ...]:
    """What is asked for; without a workload one item that any level meets."""
    if workload is None:
        return (WorkloadItem({}, 1),)
    named = {
        "payloadSize": workload.payload_size,
        "delivery": workload.delivery,
        "messagesPerSecond": workload.messages_per_second,
    }
    held = {name: str(level) for name, level in named.items() if level is not None} | workload.levels
    if not workload.file_sizes:
        return (WorkloadItem(held, 1),)
    return tuple(WorkloadItem({"fileSize": each.size, **held}, each.weight) for each in workload.file_sizes)


@dataclass(frozen=True)
class Combination:
    """One combination of all levels, and its share of the workload."""

    levels: Levels
    share: float


@dataclass(frozen=True)
class WorkloadResults:
    """Results sorted by class, combination and node. `left_out` are the combinations that a class lacks of those that
    others have and the workload asks for.
    """

    combinations: tuple[Combination, ...]
    cells: Mapping[str, Mapping[Levels, Cell]]
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: Mapping[str, tuple[Levels, ...]] = field(default_factory=dict)
    _readings: dict[tuple[str, str], Mapping[Levels, NodeEstimates]] = field(default_factory=dict, compare=False)

    def cell(self, name: str, combination: Combination) -> Cell:
        """What a class has of a combination."""
        return self.cells[name].get(combination.levels, EMPTY)

    def results_of(self, name: str) -> tuple[BenchmarkResult, ...]:
        """The results of a class that the workload asks for."""
        return self._used[name]

    @cached_property
    def _used(self) -> Mapping[str, tuple[BenchmarkResult, ...]]:
        return {
            name: tuple(result for each in self.combinations for result in self.cell(name, each).results)
            for name in self.cells
        }

    @cached_property
    def varying(self) -> frozenset[str]:
        """The factors in which combinations differ."""
        levels: dict[str, set[str]] = {}
        for combination in self.combinations:
            for factor, level in combination.levels:
                levels.setdefault(factor, set()).add(level)
        return frozenset(factor for factor, found in levels.items() if len(found) > 1)

    def weights(self, quantity: str) -> dict[Levels, float]:
        """How much each combination counts. A rate's is by what is carried there, so that one over a rate, which adds
        up, is the time of it all: the rate over a workload is what is carried in all by the time that takes in all.
        """
        of = {each.levels: each.share * amount_carried(each.levels, quantity) for each in self.combinations}
        total = sum(of.values())
        return {levels: weight / total for levels, weight in of.items()}

    def estimates(self, name: str, quantity: str) -> Mapping[Levels, NodeEstimates]:
        """What each node of a class says of a quantity at each combination."""
        if (name, quantity) not in self._readings:
            found = {each.levels: node_estimates(self.cell(name, each), quantity) for each in self.combinations}
            self._readings[name, quantity] = found
        return self._readings[name, quantity]

    def posteriors(self, quantity: str) -> dict[str, Posterior]:
        """The quantity over the whole workload, of each class that has all of it."""
        places = {name: self.estimates(name, quantity) for name in self.cells}
        knowledge, weights = PosteriorModel(quantity, places), self.weights(quantity)
        found = ((name, knowledge.of(name, weights, cut_short=self.cut_short(name))) for name in self.cells)
        return {name: known for name, known in found if weights and known is not None}

    def nodes(self, name: str, quantity: str) -> dict[str, Posterior]:
        """The same of each node of a class by itself."""
        readings = self.estimates(name, quantity)
        nodes = dict.fromkeys(node for of in readings.values() for node in of)
        places = {node: {levels: {node: of[node]} for levels, of in readings.items() if node in of} for node in nodes}
        knowledge, weights = PosteriorModel(quantity, places), self.weights(quantity)
        found = ((node, knowledge.of(node, weights)) for node in nodes)
        return {node: known for node, known in found if known is not None}

    def cut_short(self, name: str) -> bool:
        """Whether trials of a class that count are missing, or failed."""
        return any(self.cell(name, each).cut_short for each in self.combinations)

    def has_all(self, name: str, quantity: str) -> bool:
        """Whether a class has the quantity at every combination, however little is known of it."""
        return all(self.estimates(name, quantity).values())

    def median(self, name: str, quantity: str) -> float | None:
        """The medians of the trials over the workload; None unless all are known."""
        less, total = smaller_is_better(quantity), 0.0
        for levels, weight in self.weights(quantity).items():
            cell = self.cells[name].get(levels, EMPTY)
            known = [result.status.statistics.get(quantity) for result in cell.measured]
            medians = [statistic.p50 for statistic in known if statistic is not None]
            if not medians or not (less or fmean(medians)):
                return None
            total += weight * (fmean(medians) if less else 1 / fmean(medians))
        return total if less else 1 / total


def amount_carried(levels: Levels, quantity: str) -> float:
    """What one request of these levels carries, in the unit of a rate but for a factor; of all else 1."""
    if not quantity.endswith(("BytesPerSecond", "BitsPerSecond")):
        return 1.0
    sizes = (level_number(level) for factor, level in levels if factor_traits(factor).amount)
    return prod(size for size in sizes if size)


def group_by_workload(results: Sequence[BenchmarkResult], wanted: Sequence[WorkloadItem]) -> WorkloadResults:
    """Sorts results. An item counts at the combinations that all classes share which have it; each counts equally."""
    cells: dict[str, dict[Levels, list[BenchmarkResult]]] = {}
    for result in results:
        levels = tuple(sorted((name, canonical_level(level)) for name, level in levels_and_parameters(result).items()))
        cells.setdefault(result.spec.server.node_class, {}).setdefault(levels, []).append(result)
    sorted_cells = {name: {levels: Cell(tuple(found)) for levels, found in of.items()} for name, of in cells.items()}
    shares: dict[Levels, float] = {}
    missing: dict[str, list[str]] = {}
    left_out: dict[str, list[Levels]] = {}
    total = sum(item.weight for item in wanted)
    for item in wanted:
        having = {name: _combinations(item, of) for name, of in sorted_cells.items()}
        for name in (name for name, found in having.items() if not found):
            missing.setdefault(name, []).append(str(item))
        known = [set(found) for found in having.values() if found]
        every = dict.fromkeys(levels for found in having.values() for levels in found)
        shared = [levels for levels in every if all(levels in found for found in known)] or list(every)
        for name, found in having.items():
            if found and len(shared) < len(every):
                left_out.setdefault(name, []).extend(levels for levels in every if levels not in found)
        for levels in shared:
            shares[levels] = shares.get(levels, 0) + item.weight / total / len(shared)
    return WorkloadResults(
        tuple(Combination(levels, share) for levels, share in shares.items()),
        sorted_cells,
        {name: tuple(words) for name, words in missing.items()},
        {name: tuple(levels) for name, levels in left_out.items() if levels},
    )


def _combinations(item: WorkloadItem, cells: Mapping[Levels, Cell]) -> list[Levels]:
    return [levels for levels, cell in cells.items() if cell.measured and item.matches(cell.results[0])]


def describe_workload(wanted: Sequence[WorkloadItem]) -> str:
    """The workload in words."""
    weights = len({item.weight for item in wanted}) > 1
    texts = [f"{item}{f' (weight {item.weight:g})' if weights else ''}" for item in wanted if item.levels]
    return join_words(texts) or "all measured levels together"
