"""Results laid out by the levels of one factor, all else held equal. Pure.

It is what an advice does that chooses this factor: the same alternatives, places and weights. The client's class and
its access network are no choice, and are laid out in the same way.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from tierbench.advice.estimate import Estimate, pool_trials, result_estimate
from tierbench.advice.posterior import Comparison, Posterior, PosteriorModel
from tierbench.advice.selection import ACCESS_NETWORK, CLIENT_CLASS, Choice, Settings, alternative_name, attributes_of
from tierbench.advice.tables import Cell, sort_levels
from tierbench.advice.workload import Levels, WorkloadItem, amount_carried, canonical_level
from tierbench.api.result import BenchmarkResult, ResultPhase
from tierbench.results.units import are_numbers, factor_traits, level_number

MOST_LEVELS: Final = 8
"""Of a factor, spread evenly over those that were measured."""
MOST_READINGS: Final = 1000
"""With more, fewer levels of each factor are read."""
_FEWER_LEVELS: Final = (MOST_LEVELS, 6, 5, 4, 3, 2)
_OF_CLIENTS: Final = (CLIENT_CLASS, ACCESS_NETWORK)


@dataclass(frozen=True)
class Reading:
    """What one result says of a quantity, and all that it may differ in from others."""

    result: BenchmarkResult
    levels: Mapping[str, str]
    found: Estimate
    items: tuple[int, ...]
    """Which parts of the workload ask for it."""

    def node(self, factor: str) -> str:
        """The node that stands for its level: the client's where the factor is one of clients."""
        spec = self.result.spec
        return (spec.client if factor in _OF_CLIENTS else spec.server).node


@dataclass(frozen=True)
class FactorialData:
    """All readings of a quantity that a workload asks for, thinned out where there are very many."""

    quantity: str
    wanted: Sequence[WorkloadItem]
    readings: tuple[Reading, ...]
    _layouts: dict[str, "Layout"] = field(default_factory=dict, compare=False)

    @cached_property
    def levels(self) -> Mapping[str, tuple[str, ...]]:
        """The levels of each factor that varies, ascending if they are numbers, else in the order of the cases."""
        return _varying([one.levels for one in self.readings])

    def layout(self, factor: str) -> "Layout":
        """The readings by the levels of this factor."""
        if factor not in self._layouts:
            self._layouts[factor] = self._lay_out(factor)
        return self._layouts[factor]

    def _lay_out(self, factor: str) -> "Layout":
        having = [one for one in self.readings if one.levels.get(factor)]
        choice = Choice((factor,), [one.result for one in having])
        # An access network is known by the classes that have it.
        gone = choice.absorbed_factors | ({CLIENT_CLASS} if factor == ACCESS_NETWORK else frozenset())
        names = sorted(self.levels.keys() - gone)
        places: dict[str, dict[Levels, dict[str, list[Reading]]]] = {}
        alternatives: dict[str, Settings] = {}
        labels: dict[tuple[str, ...], str] = {}
        for one in having:
            settings = choice.settings(one.result)
            name = labels.setdefault(tuple(map(canonical_level, settings.values())), alternative_name(settings))
            alternatives.setdefault(name, settings)
            place = tuple([(each, canonical_level(one.levels[each])) for each in names if each in one.levels])
            places.setdefault(name, {}).setdefault(place, {}).setdefault(one.node(factor), []).append(one)
        return Layout(self.quantity, self.wanted, factor, _ordered(alternatives, factor), places)


@dataclass(frozen=True)
class Layout:
    """Readings by alternative, place and node; a place is the levels of all else. `settings` are the alternatives: in
    ascending order if their levels are numbers, else that first that is usual, or was measured first.
    """

    quantity: str
    wanted: Sequence[WorkloadItem]
    factor: str
    settings: Mapping[str, Settings]
    _places: Mapping[str, Mapping[Levels, Mapping[str, Sequence[Reading]]]]
    _known: dict[tuple[str, tuple[Levels, ...]], Posterior | None] = field(default_factory=dict, compare=False)

    @property
    def numbers(self) -> bool:
        """Whether the levels are numbers."""
        return _are_numbers(self.settings, self.factor)

    @cached_property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """What is compared: neighbours if levels are numbers, else each with the first."""
        names = tuple(self.settings)
        return tuple(zip(names if self.numbers else names[:1] * len(names), names[1:], strict=False))

    def shared(self, names: Iterable[str]) -> tuple[Levels, ...]:
        """The places that all of these have."""
        first, *others = (self._places[name] for name in names)
        return tuple(place for place in first if all(place in other for other in others))

    @cached_property
    def node_estimates(self) -> Mapping[str, Mapping[Levels, Mapping[str, Estimate]]]:
        """What each node says, by alternative and place."""
        return {
            name: {
                place: {node: pool_trials([one.found for one in of]) for node, of in nodes.items()}
                for place, nodes in places.items()
            }
            for name, places in self._places.items()
        }

    @cached_property
    def _knowledge(self) -> PosteriorModel:
        return PosteriorModel(self.quantity, self.node_estimates)

    @cached_property
    def _weights(self) -> Mapping[Levels, float]:
        """How much each place counts, as in an advice."""
        items: dict[Levels, set[int]] = {}
        for places in self._places.values():
            for place, nodes in places.items():
                items.setdefault(place, set()).update(
                    index for of in nodes.values() for one in of for index in one.items
                )
        shares = [
            item.weight / max(1, sum(index in of for of in items.values())) for index, item in enumerate(self.wanted)
        ]
        return {
            place: amount_carried(place, self.quantity) * sum(shares[index] for index in of)
            for place, of in items.items()
        }

    def compare(self, names: Iterable[str], places: tuple[Levels, ...], margin: float) -> Comparison:
        """These alternatives over these places; those of which too little is known are left out."""
        found = ((name, self._known_of(name, places)) for name in names)
        return Comparison(self.quantity, {name: known for name, known in found if known is not None}, margin)

    def _known_of(self, name: str, places: tuple[Levels, ...]) -> Posterior | None:
        if (name, places) not in self._known:
            weights = {place: self._weights[place] for place in places}
            found = self._knowledge.of(name, weights, cut_short=self._cut_short(name, places))
            self._known[name, places] = found
        return self._known[name, places]

    def _cut_short(self, name: str, places: tuple[Levels, ...]) -> bool:
        of_places = (self._places[name][place] for place in places)
        return any(Cell(tuple(one.result for one in of)).cut_short for nodes in of_places for of in nodes.values())


def factorial_data(results: Iterable[BenchmarkResult], quantity: str, wanted: Sequence[WorkloadItem]) -> FactorialData:
    """The results that say something of the quantity and that the workload asks for."""
    asked = [
        (result, attributes_of(result), items)
        for result in results
        if result.status.phase is ResultPhase.MEASURED
        and (items := tuple([index for index, item in enumerate(wanted) if item.matches(result)]))
    ]
    kept = _thinned([levels for _, levels, _ in asked])
    found = (
        Reading(result, levels, said, items)
        for result, levels, items in asked
        if _is_kept(levels, kept) and (said := result_estimate(result, quantity)) is not None
    )
    return FactorialData(quantity, wanted, tuple(found))


def _thinned(every: Sequence[Settings]) -> Mapping[str, frozenset[str]]:
    """The levels that are read, of the factors of which some are not."""
    factors = _varying(every)
    kept: dict[str, frozenset[str]] = {}
    for most in _FEWER_LEVELS:
        many = {name: levels for name, levels in factors.items() if len(levels) > most}
        kept = {name: frozenset(map(canonical_level, _spread(levels, most))) for name, levels in many.items()}
        if sum(_is_kept(levels, kept) for levels in every) <= MOST_READINGS:
            break
    return kept


def _is_kept(levels: Settings, kept: Mapping[str, frozenset[str]]) -> bool:
    return all(not levels.get(name) or canonical_level(levels[name]) in some for name, some in kept.items())


def _spread(levels: Sequence[str], most: int) -> list[str]:
    """So many of them, the first and the last among them."""
    return [levels[round(index * (len(levels) - 1) / (most - 1))] for index in range(most)]


def _varying(every: Sequence[Settings]) -> dict[str, tuple[str, ...]]:
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
