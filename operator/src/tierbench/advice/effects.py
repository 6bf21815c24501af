"""The effects of factors: ratios between their levels with all other factors held equal, knees, and crossovers.

A crossover is a change of the winner along a factor. Refinements are levels that narrow one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import floor, inf, log, log1p, log10, sqrt
from statistics import fmean, variance
from typing import Final

from tierbench.advice.factorial import FactorialData, Layout
from tierbench.advice.posterior import Comparison, LevelVerdict, Pair, Ratio, level_verdicts
from tierbench.advice.requirements import Levels, canonical_level
from tierbench.advice.tables import RunResults, Table, measured_quantities, smaller_is_better
from tierbench.api.advice_answer import KneeAt, KneeCourse
from tierbench.api.quantity import parse_size
from tierbench.api.result import ResultPhase
from tierbench.results.quantities import RETRIES
from tierbench.results.units import describe_level, factor_traits, is_size, level_number
from tierbench.stats.distributions import CONFIDENCE
from tierbench.stats.estimates import Estimate
from tierbench.stats.posterior import Relation
from tierbench.stats.special import gamma_cdf

SIGNIFICANT: Final = frozenset({Relation.BETTER, Relation.AHEAD, Relation.WORSE, Relation.BEHIND})
"""The relations of which the interval of the ratio excludes 1."""
_MIN_KNEE_LEVELS: Final = 3
_DIGITS: Final = 3
_SMALLEST: Final = 10 ** (_DIGITS - 1)
_BINARY_PREFIXES: Final = ("Ti", "Gi", "Mi", "Ki", "")
_DECIMAL_PREFIXES: Final = ("T", "G", "M", "k", "")
_LOWER: Final = frozenset({Relation.WORSE, Relation.BEHIND})


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
    return KneeCourse.LEVEL if is_known and highest <= 1 + comparison.margin else KneeCourse.NOT_KNOWN


@dataclass(frozen=True)
class Crossover:
    """A change of the lead: `below` is ahead up to the level `lower`, `above` is ahead from the level `upper` on.

    The point between the two levels is not estimated, as times may jump at a limit. `confidence` is a lower bound of
    the probability that both are right.
    """

    factor: str
    held: Mapping[str, str]
    below: str
    above: str
    lower: str
    upper: str
    confidence: float

    def __str__(self) -> str:
        """Returns the crossover as a sentence."""
        first, last = describe_level(self.factor, self.lower), describe_level(self.factor, self.upper)
        return f"Between {first} and {last}, {self.above} overtakes {self.below}."


def crossovers(table: Table, verdicts: Sequence[LevelVerdict]) -> tuple[Crossover, ...]:
    """Returns every change of the winner along a factor of numbers. `verdicts` are those of the table.

    A crossover spans the levels without a winner that lie between two winners.
    """
    if not all(level_number(level) for level in table.rows):
        return ()
    decided = [each for each in verdicts if each.relation is Relation.BETTER and not each.only_one]
    return tuple(
        Crossover(
            factor=table.factor,
            held=table.held,
            below=before.best,
            above=after.best,
            lower=before.level,
            upper=after.level,
            confidence=max(0.0, 1 - before.error_probability - after.error_probability),
        )
        for before, after in pairwise(decided)
        if before.best != after.best
    )


@dataclass(frozen=True)
class RefinementLevel:
    """A level in the middle of a crossover. `levels` are those of all factors of the case, including this one."""

    crossover: Crossover
    client_class: str
    level: str
    levels: Mapping[str, str]

    def __str__(self) -> str:
        """Returns the crossover and the level that is measured next."""
        known = self.crossover
        held = "".join(f", {name} {level}" for name, level in known.held.items())
        between = f"{known.lower} and {known.upper}{held}"
        return f"{known.above} overtakes {known.below} between {between}: measures {self.level}"


def refinements(run: RunResults, factor: str, within: float) -> tuple[RefinementLevel, ...]:
    """Returns the middle of every crossover along a factor of sizes that is wider than the share `within`.

    A crossover with a failed case has none, as the order there follows from the failure. It also has none if the middle
    was measured already and the result is inconclusive.
    """
    tables = run.tables_by(factor)
    verdicts = level_verdicts(tables, next(iter(measured_quantities(run)), ""))
    return tuple(
        level
        for table, of_table in zip(tables, verdicts, strict=True)
        for crossover in crossovers(table, of_table)
        for level in _refinement(table, crossover, within)
    )


def _refinement(table: Table, crossover: Crossover, within: float) -> Iterator[RefinementLevel]:
    level = midpoint(crossover.lower, crossover.upper, within)
    measured = {level_number(row) for row in table.rows}
    if level is None or level_number(level) in measured or _has_failed_case(table, crossover):
        return
    spec = table.cell(crossover.lower, crossover.below).results[0].spec
    yield RefinementLevel(crossover, spec.client.node_class, level, {**spec.levels, table.factor: level})


def _has_failed_case(table: Table, crossover: Crossover) -> bool:
    first, last = table.rows.index(crossover.lower), table.rows.index(crossover.upper)
    cells = (table.cell(row, column) for row in table.rows[first : last + 1] for column in table.columns)
    return any(result.status.phase is ResultPhase.FAILED for cell in cells for result in cell.results)


def midpoint(lower: str, upper: str, within: float) -> str | None:
    """Returns the geometric mean of two sizes, rounded to three digits and with the kind of prefix that they have.

    It is None if the sizes differ by no more than the share `within`, or if no size of three digits lies between them.
    """
    low, high = parse_size(lower), parse_size(upper)
    if high <= low * (1 + within):
        return None
    middle, prefixes = sqrt(low * high), _prefixes(lower + upper)
    unit = next(unit for unit in map(_unit, prefixes) if unit == 1 or middle >= _SMALLEST * unit)
    number = middle / unit
    size = int(round(number, min(_DIGITS - 1 - floor(log10(number)), 0))) * unit
    if not low < size < high:
        return None
    shortest = next(prefix for prefix in prefixes if size % _unit(prefix) == 0)
    return f"{size // _unit(shortest)}{shortest}"


def _unit(prefix: str) -> int:
    return parse_size(f"1{prefix}")


def _prefixes(levels: str) -> Sequence[str]:
    if levels.isdigit():
        return ("",)
    return _BINARY_PREFIXES if "i" in levels else _DECIMAL_PREFIXES
