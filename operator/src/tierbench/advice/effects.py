"""The effects of factors: ratios between their levels with all other factors held equal, and knees.

Results are laid out by the levels of one factor. A layout compares as an advice does that chooses this factor: it has
the same alternatives, places and weights. The class of the client and its access network cannot be chosen, but are laid
out in the same way.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, log, log1p
from statistics import fmean, variance
from typing import Final

from tierbench.advice.posterior import Comparison, NodeEstimates, Pair, Posterior, Ratio
from tierbench.advice.requirements import Combination, Levels, WorkloadItem, WorkloadResults, canonical_level
from tierbench.advice.selection import (
    ACCESS_NETWORK,
    CLIENT_CLASS,
    Choice,
    Settings,
    alternative_name,
    attributes_of,
    is_kept,
    kept_levels,
    varying_levels,
)
from tierbench.advice.tables import Cell, smaller_is_better
from tierbench.api.advice_answer import KneeAt, KneeCourse
from tierbench.api.result import BenchmarkResult, ResultPhase
from tierbench.results.quantities import RETRIES
from tierbench.results.units import are_numbers, factor_traits, is_size, level_number
from tierbench.stats.distributions import CONFIDENCE
from tierbench.stats.estimates import Estimate
from tierbench.stats.posterior import Relation
from tierbench.stats.special import gamma_cdf

SIGNIFICANT: Final = frozenset({Relation.BETTER, Relation.AHEAD, Relation.WORSE, Relation.BEHIND})
"""The relations of which the interval of the ratio excludes 1."""
_MIN_KNEE_LEVELS: Final = 3
_CLIENT_FACTORS: Final = (CLIENT_CLASS, ACCESS_NETWORK)
_LOWER: Final = frozenset({Relation.WORSE, Relation.BEHIND})


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
        return varying_levels([reading.levels for reading in self.readings])

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
        if result.status.phase is ResultPhase.COMPLETE
        and (indexes := tuple([index for index, item in enumerate(items) if item.matches(result)]))
    ]
    kept = kept_levels([levels for _, levels, _ in matching])
    readings = (
        Reading(result, levels, indexes)
        for result, levels, indexes in matching
        if is_kept(levels, kept) and quantity in result.status.statistics
    )
    return FactorialData(quantity, items, tuple(readings))


def _ordered(alternatives: Mapping[str, Settings], factor: str) -> dict[str, Settings]:
    if _are_numbers(alternatives, factor):
        return dict(sorted(alternatives.items(), key=lambda item: level_number(item[1][factor]) or 0.0))
    return dict(sorted(alternatives.items(), key=lambda item: item[1].get(factor) != factor_traits(factor).usual))


def _are_numbers(alternatives: Mapping[str, Settings], factor: str) -> bool:
    alone = all(settings.keys() == {factor} for settings in alternatives.values())
    return alone and are_numbers(factor, [settings[factor] for settings in alternatives.values()])


@dataclass(frozen=True)
class LevelEffect:
    """An effect at one level of the factor that it depends on. The level is empty if it depends on none.

    `ratio` is the value of the second level divided by that of the first. `relation` is that of the second level.
    """

    level: str
    ratio: Ratio
    relation: Relation
    one_node: bool

    @property
    def size(self) -> float:
        """The distance of the ratio from 1, as a logarithm."""
        return abs(log(self.ratio.value)) if 0 < self.ratio.value < inf else inf


@dataclass(frozen=True)
class Effect:
    """The effect of the level `second` of a factor, compared with the level `first`.

    `by` is the factor that the effect depends on most, or empty. `by_levels` are all levels of that factor.
    """

    factor: str
    first: str
    second: str
    quantity: str
    margin: float
    by: str
    by_levels: tuple[str, ...]
    level_effects: tuple[LevelEffect, ...]

    @property
    def size(self) -> float:
        """The size of the largest significant effect; 0 if there is none."""
        return max((each.size for each in self.level_effects if each.relation in SIGNIFICANT), default=0.0)

    @property
    def one_node(self) -> bool:
        """Whether the effect is known for the measured nodes only."""
        return any(each.one_node for each in self.level_effects)


def effects(data: FactorialData, factors: Iterable[str], margin: float) -> list[Effect]:
    """Returns the effects of these factors, the largest first. `margin` is the smallest difference that matters."""
    relevant = (factor for factor in factors if _has_effect(factor, data.quantity))
    found = [effect for factor in relevant for effect in _factor_effects(data.layout(factor), data, margin)]
    return sorted(found, key=lambda effect: -effect.size)


def _has_effect(factor: str, quantity: str) -> bool:
    """Returns whether an effect says something. That a larger file takes more time and more bytes does not."""
    return not factor_traits(factor).amount or not smaller_is_better(quantity)


def _factor_effects(layout: Layout, data: FactorialData, margin: float) -> Iterator[Effect]:
    for first, second in layout.pairs:
        by = interacting_factor(layout, [(first, second)], margin)
        levels = data.levels.get(by, ("",))
        found = tuple(_level_effects(layout, (first, second), by, levels, margin))
        if found:
            yield Effect(layout.factor, first, second, layout.quantity, margin, by, levels, found)


def _level_effects(layout: Layout, pair: Pair, by: str, levels: Sequence[str], margin: float) -> Iterator[LevelEffect]:
    first, second = pair
    for level, places in _places_by_level(layout.shared_places(pair), by, levels).items():
        comparison = layout.compare(pair, places, margin)
        if len(comparison.posteriors) == len(pair):
            ratio = comparison.ratio(second, first)
            yield LevelEffect(level, ratio, comparison.relation(second, first), comparison.one_node)


def _places_by_level(places: Iterable[Levels], by: str, levels: Sequence[str]) -> dict[str, tuple[Levels, ...]]:
    """Returns the places at each level of the factor `by`. Without a factor all places have the level ""."""
    found: dict[str, list[Levels]] = {}
    for place in places:
        found.setdefault(dict(place).get(by, ""), []).append(place)
    return {level: tuple(found[canonical_level(level)]) for level in levels if canonical_level(level) in found}


def interacting_factor(layout: Layout, pairs: Sequence[Pair], margin: float) -> str:
    """Returns the factor that the ratios of these pairs depend on most; empty if they depend on none.

    It is the factor along which the logarithms of the ratios vary most beyond the noise of trials. They must vary
    significantly (chi-squared test), and by the margin or more.
    """
    if layout.quantity == RETRIES:
        return ""
    ratios = [list(_log_ratios(layout, pair)) for pair in pairs]
    names = dict.fromkeys(name for of_pair in ratios for ratio in of_pair for name, _ in ratio.place)
    found = {name: _variation([_level_means(of_pair, name) for of_pair in ratios]) for name in names}
    significant = {
        name: each.excess
        for name, each in found.items()
        if each.range >= log1p(margin) and each.excess > 0 and each.p <= 1 - CONFIDENCE
    }
    return max(significant, key=lambda name: significant[name], default="")


@dataclass(frozen=True)
class _LogValue:
    """A logarithm at one place, or the mean over several, and its variance from the noise of trials."""

    value: float
    variance: float
    place: Levels = ()


@dataclass(frozen=True)
class _Variation:
    """How logarithms vary between levels: their range, the variance beyond the noise of trials, and the p-value."""

    range: float
    excess: float
    p: float


def _log_ratios(layout: Layout, pair: Pair) -> Iterator[_LogValue]:
    first, second = map(layout.estimates, pair)
    for place in layout.shared_places(pair):
        one, two = _log_mean(first[place]), _log_mean(second[place])
        if one is not None and two is not None:
            yield _LogValue(two.value - one.value, one.variance + two.variance, place)


def _log_mean(nodes: Mapping[str, Estimate]) -> _LogValue | None:
    """Returns the mean of the logarithms over nodes; None if a value has no logarithm."""
    if any(one.mean <= 0 for one in nodes.values()):
        return None
    noise = sum(((one.error or 0.0) / one.mean) ** 2 for one in nodes.values())
    return _LogValue(fmean(log(one.mean) for one in nodes.values()), noise / len(nodes) ** 2)


def _level_means(values: Iterable[_LogValue], name: str) -> list[_LogValue]:
    """Returns the mean at each level of a factor."""
    levels: dict[str, list[_LogValue]] = {}
    for each in values:
        levels.setdefault(dict(each.place).get(name, ""), []).append(each)
    return [
        _LogValue(fmean(each.value for each in of), sum(each.variance for each in of) / len(of) ** 2)
        for of in levels.values()
    ]


def _variation(pairs: Iterable[Sequence[_LogValue]]) -> _Variation:
    """Returns the variation over the levels of one factor, summed over pairs."""
    widest = excess = square = degrees = 0.0
    for levels in pairs:
        if len(levels) > 1:
            values, noise = [each.value for each in levels], fmean(each.variance for each in levels)
            between = variance(values)
            widest = max(widest, max(values) - min(values))
            excess += between - noise
            square += (len(levels) - 1) * between / noise if noise else inf
            degrees += len(levels) - 1
    p = 1 - gamma_cdf(square / 2, degrees / 2) if 0 < square < inf else float(not square)
    return _Variation(widest, excess, p)


@dataclass(frozen=True)
class Knee:
    """The knees of a factor of numbers, at each level of the factor `by`. `by` and `by_levels` are as in Effect."""

    factor: str
    quantity: str
    by: str
    by_levels: tuple[str, ...]
    level_knees: tuple[KneeAt, ...]
    one_node: bool


def knees(data: FactorialData, factors: Iterable[str], margin: float) -> Iterator[Knee]:
    """Returns the knees of the factors with at least three numbers, if the quantity is a rate."""
    if smaller_is_better(data.quantity):
        return
    for factor in factors:
        layout = data.layout(factor)
        names = tuple(layout.settings)
        # A rate of messages or requests falls with their size, so it has no knee along sizes.
        counts_bytes = data.quantity.endswith(("BytesPerSecond", "BitsPerSecond"))
        if not layout.is_numeric or len(names) < _MIN_KNEE_LEVELS or (is_size(factor) and not counts_bytes):
            continue
        by = interacting_factor(layout, layout.pairs, margin)
        levels = data.levels.get(by, ("",))
        comparisons = {
            level: comparison
            for level, places in _places_by_level(layout.shared_places(names), by, levels).items()
            if len((comparison := layout.compare(names, places, margin)).posteriors) == len(names)
        }
        found = tuple(_level_knee(level, comparison, names) for level, comparison in comparisons.items())
        if found:
            yield Knee(factor, data.quantity, by, levels, found, any(each.one_node for each in comparisons.values()))


def _level_knee(level: str, comparison: Comparison, names: Sequence[str]) -> KneeAt:
    for number, name in enumerate(names):
        beyond = names[number + 1 :]
        if not any(comparison.beats(other, name) for other in beyond):
            return KneeAt(level=level, knee=name, course=_course(comparison, name, beyond))
    raise AssertionError("there is nothing beyond the last level")


def _course(comparison: Comparison, knee: str, beyond: Sequence[str]) -> KneeCourse:
    if not beyond:
        return KneeCourse.GROWS
    if all(comparison.relation(other, knee) in _LOWER for other in beyond):
        return KneeCourse.FALLS
    highest = max(comparison.ratio(other, knee).high for other in beyond)
    is_known = not comparison.one_node and not comparison.posteriors[knee].cut_short
    return KneeCourse.LEVEL if is_known and highest <= 1 + comparison.margin else KneeCourse.INCONCLUSIVE
