"""What a workload asks for, and what each class's results say of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean

from tierbench.advice.contests import Contest, contests
from tierbench.advice.estimate import Estimate, of_class, of_node, reading, weighted
from tierbench.advice.matrix import EMPTY, Cell
from tierbench.advice.words import joined
from tierbench.api.placement_advice import WorkloadProfile
from tierbench.api.result import BenchmarkResult
from tierbench.results.levels import level_in_words, number_of_level

Levels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Item:
    """Levels that are asked for, and how much they count."""

    levels: Mapping[str, str]
    weight: float

    def __str__(self) -> str:
        """The levels in words."""
        return ", ".join(level_in_words(name, level) for name, level in self.levels.items())

    def wants(self, result: BenchmarkResult) -> bool:
        """Whether a result was measured at these levels."""
        levels = result.spec.levels
        return all(name in levels and same(levels[name]) == same(level) for name, level in self.levels.items())


def same(level: str) -> str:
    """One text for all ways to write a level: 1Gi and 1073741824 are the same."""
    number = number_of_level(level)
    return level if number is None else f"{number:.0f}"


def items(workload: WorkloadProfile | None) -> tuple[Item, ...]:
    """What is asked for; without a workload one item that any level meets."""
    if workload is None:
        return (Item({}, 1),)
    named = {
        "payloadSize": workload.payload_size,
        "delivery": workload.delivery,
        "messagesPerSecond": workload.messages_per_second,
    }
    held = {name: str(level) for name, level in named.items() if level is not None} | workload.levels
    if not workload.file_sizes:
        return (Item(held, 1),)
    return tuple(Item({"fileSize": each.size, **held}, each.weight) for each in workload.file_sizes)


@dataclass(frozen=True)
class Combination:
    """One combination of all levels, and its share of the workload."""

    levels: Levels
    share: float


@dataclass(frozen=True)
class Measured:
    """Results sorted by class, combination and node. `left_out` combinations were measured on some classes alone."""

    combinations: tuple[Combination, ...]
    cells: Mapping[str, Mapping[Levels, Cell]]
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: int = 0

    def cell(self, name: str, combination: Combination) -> Cell:
        """What a class has of a combination."""
        return self.cells[name].get(combination.levels, EMPTY)

    def used(self, name: str) -> tuple[BenchmarkResult, ...]:
        """The results of a class that the workload asks for."""
        return tuple(result for combination in self.combinations for result in self.cell(name, combination).results)

    @cached_property
    def varying(self) -> frozenset[str]:
        """The factors in which combinations differ."""
        levels: dict[str, set[str]] = {}
        for combination in self.combinations:
            for factor, level in combination.levels:
                levels.setdefault(factor, set()).add(level)
        return frozenset(factor for factor, found in levels.items() if len(found) > 1)

    def nodes(self, name: str, quantity: str) -> dict[str, Estimate]:
        """The quantity over the whole workload on each node of a class that has all of it."""
        found: dict[str, dict[Levels, list[Estimate]]] = {}
        for combination in self.combinations:
            for result in self.cell(name, combination).measured:
                known = reading(result, quantity)
                if known is not None:
                    found.setdefault(result.spec.server.node, {}).setdefault(combination.levels, []).append(known)
        shares = {combination.levels: combination.share for combination in self.combinations}
        return {
            node: weighted([(shares[levels], of_node(readings)) for levels, readings in of.items()])
            for node, of in found.items()
            if len(of) == len(self.combinations)
        }

    def estimate(self, name: str, quantity: str) -> Estimate | None:
        """The same of the class; None unless some node has all of it."""
        return of_class(list(self.nodes(name, quantity).values()))

    def median(self, name: str, quantity: str) -> float | None:
        """The medians of the trials, weighted likewise; None unless all are known."""
        total = 0.0
        for combination in self.combinations:
            known = [result.status.statistics.get(quantity) for result in self.cell(name, combination).measured]
            medians = [statistic.p50 for statistic in known if statistic is not None]
            if not medians:
                return None
            total += combination.share * fmean(medians)
        return total

    def contest(self, names: Sequence[str], quantity: str) -> Contest:
        """These classes compared over the workload, those that cannot be left out."""
        found = ((name, self.estimate(name, quantity)) for name in names)
        known = {name: mean for name, mean in found if mean is not None}
        return contests({"": known}, quantity)[""]


def sort_results(results: Sequence[BenchmarkResult], wanted: Sequence[Item]) -> Measured:
    """Sorts results. An item counts at the combinations that all classes share which have it; each counts equally."""
    cells: dict[str, dict[Levels, list[BenchmarkResult]]] = {}
    for result in results:
        levels = tuple(sorted((name, same(level)) for name, level in result.spec.levels.items()))
        cells.setdefault(result.spec.server.node_class, {}).setdefault(levels, []).append(result)
    sorted_cells = {name: {levels: Cell(tuple(found)) for levels, found in of.items()} for name, of in cells.items()}
    shares: dict[Levels, float] = {}
    missing: dict[str, list[str]] = {}
    left_out = 0
    total = sum(item.weight for item in wanted)
    for item in wanted:
        having = {name: _combinations(item, of) for name, of in sorted_cells.items()}
        for name in (name for name, found in having.items() if not found):
            missing.setdefault(name, []).append(str(item))
        known = [set(found) for found in having.values() if found]
        every = dict.fromkeys(levels for found in having.values() for levels in found)
        shared = [levels for levels in every if all(levels in found for found in known)] or list(every)
        left_out += len(every) - len(shared)
        for levels in shared:
            shares[levels] = shares.get(levels, 0) + item.weight / total / len(shared)
    return Measured(
        tuple(Combination(levels, share) for levels, share in shares.items()),
        sorted_cells,
        {name: tuple(words) for name, words in missing.items()},
        left_out,
    )


def _combinations(item: Item, cells: Mapping[Levels, Cell]) -> list[Levels]:
    return [levels for levels, cell in cells.items() if cell.measured and item.wants(cell.results[0])]


def asked(wanted: Sequence[Item]) -> str:
    """The workload in words."""
    weights = len({item.weight for item in wanted}) > 1
    texts = [f"{item}{f' (weight {item.weight:g})' if weights else ''}" for item in wanted if item.levels]
    return joined(texts) or "all measured levels together"
