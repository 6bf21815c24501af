"""Results laid out by the levels of one factor, with all other factors held equal.

A layout compares as an advice does that chooses this factor: it has the same alternatives, places and weights. The
class of the client and its access network cannot be chosen, but are laid out in the same way.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from tierbench.advice.posterior import Comparison, NodeEstimates, Posterior
from tierbench.advice.requirements import (
    Combination,
    Levels,
    WorkloadItem,
    WorkloadResults,
    canonical_level,
)
from tierbench.advice.selection import ACCESS_NETWORK, CLIENT_CLASS, Choice, Settings, alternative_name, attributes_of
from tierbench.advice.tables import Cell, sort_levels
from tierbench.api.result import BenchmarkResult, ResultPhase
from tierbench.results.units import are_numbers, factor_traits, level_number

MAX_LEVELS: Final = 8
"""The most levels of a factor that are compared."""
MAX_READINGS: Final = 1000
"""The most readings that are compared. With more readings, fewer levels of each factor are compared."""
_FEWER_LEVELS: Final = (MAX_LEVELS, 6, 5, 4, 3, 2)
_CLIENT_FACTORS: Final = (CLIENT_CLASS, ACCESS_NETWORK)


@dataclass(frozen=True)
class Reading:
    """A result that has the quantity, with everything in which it may differ from others.

    `items` are the indexes of the items of the workload that the result matches.
    """

    result: BenchmarkResult
    levels: Mapping[str, str]
    items: tuple[int, ...]


@dataclass(frozen=True)
class FactorialData:
    """The readings of a quantity that a workload asks for, with fewer levels where there are very many readings."""

    quantity: str
    items: Sequence[WorkloadItem]
    readings: tuple[Reading, ...]
    _layouts: dict[str, "Layout"] = field(default_factory=dict, compare=False)

    @cached_property
    def levels(self) -> Mapping[str, tuple[str, ...]]:
        """The levels of each factor that varies, ascending if they are numbers, else in the order of the cases."""
        return _varying_levels([reading.levels for reading in self.readings])

    def layout(self, factor: str) -> "Layout":
        """Returns the readings by the levels of a factor."""
        if factor not in self._layouts:
            self._layouts[factor] = self._lay_out(factor)
        return self._layouts[factor]

    def _lay_out(self, factor: str) -> "Layout":
        having = [reading for reading in self.readings if reading.levels.get(factor)]
        choice = Choice((factor,), [reading.result for reading in having])
        # The class of the client determines the access network, so it is not held equal.
        absorbed = choice.absorbed_factors | ({CLIENT_CLASS} if factor == ACCESS_NETWORK else frozenset())
        others = sorted(self.levels.keys() - absorbed)
        cells: dict[str, dict[Levels, list[BenchmarkResult]]] = {}
        items: dict[Levels, set[int]] = {}
        alternatives: dict[str, Settings] = {}
        names: dict[tuple[str, ...], str] = {}
        for reading in having:
            settings = choice.settings(reading.result)
            name = names.setdefault(tuple(map(canonical_level, settings.values())), alternative_name(settings))
            alternatives.setdefault(name, settings)
            place = tuple([(each, canonical_level(reading.levels[each])) for each in others if each in reading.levels])
            cells.setdefault(name, {}).setdefault(place, []).append(reading.result)
            items.setdefault(place, set()).update(reading.items)
        matching = Counter(index for indexes in items.values() for index in indexes)
        shares = {
            place: sum(self.items[index].weight / matching[index] for index in indexes)
            for place, indexes in items.items()
        }
        measured = WorkloadResults(
            tuple(Combination(place, share) for place, share in shares.items()),
            {name: {place: Cell(tuple(found)) for place, found in of.items()} for name, of in cells.items()},
            of_clients=factor in _CLIENT_FACTORS,
        )
        return Layout(self.quantity, factor, _ordered(alternatives, factor), measured)


@dataclass(frozen=True)
class Layout:
    """Results by alternative and place. A place is a combination of levels of all other factors.

    `settings` are the alternatives. If their levels are numbers, they are in ascending order. Else the usual level is
    first, or the one that was measured first. `measured` has each alternative as a class.
    """

    quantity: str
    factor: str
    settings: Mapping[str, Settings]
    measured: WorkloadResults
    _posteriors: dict[tuple[str, tuple[Levels, ...]], Posterior | None] = field(default_factory=dict, compare=False)

    @property
    def is_numeric(self) -> bool:
        """Whether the levels are numbers."""
        return _are_numbers(self.settings, self.factor)

    @cached_property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The pairs to compare: neighbours if the levels are numbers, else the first level with each other one."""
        names = tuple(self.settings)
        return tuple(zip(names if self.is_numeric else names[:1] * len(names), names[1:], strict=False))

    def shared_places(self, names: Iterable[str]) -> tuple[Levels, ...]:
        """Returns the places at which all these alternatives were measured."""
        first, *others = (self.measured.cells[name] for name in names)
        return tuple(place for place in first if all(place in other for other in others))

    def estimates(self, name: str) -> Mapping[Levels, NodeEstimates]:
        """Returns the estimates of each node of an alternative at each place."""
        return self.measured.estimates(name, self.quantity)

    def compare(self, names: Iterable[str], places: tuple[Levels, ...], margin: float) -> Comparison:
        """Returns the comparison of alternatives over some places. It leaves out those with too few trials."""
        found = ((name, self._posterior(name, places)) for name in names)
        return Comparison(self.quantity, {name: known for name, known in found if known is not None}, margin)

    def _posterior(self, name: str, places: tuple[Levels, ...]) -> Posterior | None:
        if (name, places) not in self._posteriors:
            self._posteriors[name, places] = self.measured.posterior(name, self.quantity, places)
        return self._posteriors[name, places]


def factorial_data(results: Iterable[BenchmarkResult], quantity: str, items: Sequence[WorkloadItem]) -> FactorialData:
    """Returns the readings of a quantity from the results that the workload asks for."""
    matching = [
        (result, attributes_of(result), indexes)
        for result in results
        if result.status.phase is ResultPhase.MEASURED
        and (indexes := tuple([index for index, item in enumerate(items) if item.matches(result)]))
    ]
    kept = _kept_levels([levels for _, levels, _ in matching])
    readings = (
        Reading(result, levels, indexes)
        for result, levels, indexes in matching
        if _is_kept(levels, kept) and quantity in result.status.statistics
    )
    return FactorialData(quantity, items, tuple(readings))


def _kept_levels(every: Sequence[Settings]) -> Mapping[str, frozenset[str]]:
    """Returns the levels to compare, for each factor that has too many levels."""
    factors = _varying_levels(every)
    kept: dict[str, frozenset[str]] = {}
    for most in _FEWER_LEVELS:
        many = {name: levels for name, levels in factors.items() if len(levels) > most}
        kept = {name: frozenset(map(canonical_level, _spread(levels, most))) for name, levels in many.items()}
        if sum(_is_kept(levels, kept) for levels in every) <= MAX_READINGS:
            break
    return kept


def _is_kept(levels: Settings, kept: Mapping[str, frozenset[str]]) -> bool:
    return all(not levels.get(name) or canonical_level(levels[name]) in some for name, some in kept.items())


def _spread(levels: Sequence[str], number: int) -> list[str]:
    """Returns `number` levels at even distances, including the first and the last one."""
    return [levels[round(index * (len(levels) - 1) / (number - 1))] for index in range(number)]


def _varying_levels(every: Sequence[Settings]) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, str]] = {}
    for levels in every:
        for factor, level in levels.items():
            if level:
                found.setdefault(factor, {}).setdefault(canonical_level(level), level)
    return {factor: sort_levels(tuple(levels.values())) for factor, levels in found.items() if len(levels) > 1}


def _ordered(alternatives: Mapping[str, Settings], factor: str) -> dict[str, Settings]:
    if _are_numbers(alternatives, factor):
        return dict(sorted(alternatives.items(), key=lambda item: level_number(item[1][factor]) or 0.0))
    return dict(sorted(alternatives.items(), key=lambda item: item[1].get(factor) != factor_traits(factor).usual))


def _are_numbers(alternatives: Mapping[str, Settings], factor: str) -> bool:
    alone = all(settings.keys() == {factor} for settings in alternatives.values())
    return alone and are_numbers(factor, [settings[factor] for settings in alternatives.values()])
