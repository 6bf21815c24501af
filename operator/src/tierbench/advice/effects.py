"""What each factor costs: ratios between its levels, all else equal, and where nothing more is gained. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log, log1p
from statistics import fmean, variance
from typing import Final

from tierbench.advice.estimate import Estimate, smaller_is_better
from tierbench.advice.factorial import FactorialData, Layout
from tierbench.advice.posterior import Comparison, Pair, Ratio
from tierbench.advice.workload import Levels, canonical_level
from tierbench.api.advice_answer import KneeCourse
from tierbench.results.quantities import RETRIES
from tierbench.results.units import factor_traits, is_size
from tierbench.stats.posterior import Relation
from tierbench.stats.samples import CONFIDENCE
from tierbench.stats.special import gamma_cdf

SIGNIFICANT: Final = frozenset({Relation.BETTER, Relation.AHEAD, Relation.WORSE, Relation.BEHIND})
"""Of these the interval excludes 1."""
_FEWEST: Final = 3
_LESS: Final = frozenset({Relation.WORSE, Relation.BEHIND})


@dataclass(frozen=True)
class LevelEffect:
    """An effect at one level of what it depends on; the level is empty where it is read over everything.

    `ratio` is the value of the second by that of the first, `outcome` says whether the second is better.
    """

    level: str
    ratio: Ratio
    outcome: Relation
    one_node: bool

    @property
    def size(self) -> float:
        """How far it is from 1, as a logarithm."""
        return abs(log(self.ratio.value)) if 0 < self.ratio.value < inf else inf


@dataclass(frozen=True)
class Effect:
    """What lies between two levels of a factor, `second` against `first`, by the levels of the factor `by` if there is
    one that it depends on. `every` are all levels of that.
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
        """The largest ratio that is shown, as a logarithm; 0 if none is."""
        return max((part.size for part in self.level_effects if part.outcome in SIGNIFICANT), default=0.0)

    @property
    def one_node(self) -> bool:
        """Whether it is one of the nodes that were measured and no others."""
        return any(part.one_node for part in self.level_effects)


def effects(every: FactorialData, factors: Iterable[str], margin: float) -> list[Effect]:
    """Of these factors, the largest first. Differences below the share `margin` are not worth having."""
    costly = (factor for factor in factors if _may_cost(factor, every.quantity))
    found = [effect for factor in costly for effect in _effects_of(every.layout(factor), every, margin)]
    return sorted(found, key=lambda effect: -effect.size)


def _may_cost(factor: str, quantity: str) -> bool:
    """A larger file takes longer, and a larger message more of the wire, which is no cost of anything."""
    return not factor_traits(factor).amount or not smaller_is_better(quantity)


def _effects_of(layout: Layout, every: FactorialData, margin: float) -> Iterator[Effect]:
    for first, second in layout.pairs:
        by = interacting_factor(layout, [(first, second)], margin)
        levels = every.levels.get(by, ("",))
        parts = tuple(_parts(layout, (first, second), by, levels, margin))
        if parts:
            yield Effect(layout.factor, first, second, layout.quantity, margin, by, levels, parts)


def _parts(layout: Layout, pair: Pair, by: str, levels: Sequence[str], margin: float) -> Iterator[LevelEffect]:
    first, second = pair
    for level, places in places_by_level(layout.shared(pair), by, levels).items():
        contest = layout.compare(pair, places, margin)
        if len(contest.posteriors) == len(pair):
            ratio = contest.ratio(second, first)
            yield LevelEffect(level, ratio, contest.outcome(second, first), contest.one_node)


def places_by_level(places: Iterable[Levels], by: str, levels: Sequence[str]) -> dict[str, tuple[Levels, ...]]:
    """The places of each level of a factor that has any; all of them, of no level, without a factor."""
    found: dict[str, list[Levels]] = {}
    for place in places:
        found.setdefault(dict(place).get(by, ""), []).append(place)
    return {level: tuple(found[canonical_level(level)]) for level in levels if canonical_level(level) in found}


def interacting_factor(layout: Layout, pairs: Sequence[Pair], margin: float) -> str:
    """The factor along which the logarithms of these ratios vary most beyond what trials explain; nothing if there is
    none by which they vary at all (a chi-squared test), and by the margin or more.
    """
    if layout.quantity == RETRIES:
        return ""
    gaps = [list(_gaps(layout, pair)) for pair in pairs]
    names = dict.fromkeys(name for of in gaps for gap in of for name, _ in gap.place)
    found = {name: _variation([_means(of, name) for of in gaps]) for name in names}
    beyond = {
        name: each.excess
        for name, each in found.items()
        if each.reach >= log1p(margin) and each.excess > 0 and each.chance <= 1 - CONFIDENCE
    }
    return max(beyond, key=lambda name: beyond[name], default="")


@dataclass(frozen=True)
class _Gap:
    """The logarithm of a ratio at one place, or at several of one level, and its variance by the trials."""

    value: float
    variance: float
    place: Levels = ()


@dataclass(frozen=True)
class _Variation:
    """How far logarithms of ratios vary between levels: the greatest distance of two, the variance beyond that of
    trials, and how likely as much is by chance.
    """

    reach: float
    excess: float
    chance: float


def _gaps(layout: Layout, pair: Pair) -> Iterator[_Gap]:
    first, second = (layout.node_estimates[name] for name in pair)
    for place in layout.shared(pair):
        one, two = _logarithm(first[place]), _logarithm(second[place])
        if one is not None and two is not None:
            yield _Gap(two.value - one.value, one.variance + two.variance, place)


def _logarithm(nodes: Mapping[str, Estimate]) -> _Gap | None:
    """Of the mean over nodes, each counting equally."""
    if any(one.mean <= 0 for one in nodes.values()):
        return None
    noise = sum(((one.error or 0.0) / one.mean) ** 2 for one in nodes.values())
    return _Gap(fmean(log(one.mean) for one in nodes.values()), noise / len(nodes) ** 2)


def _means(gaps: Iterable[_Gap], name: str) -> list[_Gap]:
    """Of each level of the factor."""
    levels: dict[str, list[_Gap]] = {}
    for gap in gaps:
        levels.setdefault(dict(gap.place).get(name, ""), []).append(gap)
    return [
        _Gap(fmean(gap.value for gap in of), sum(gap.variance for gap in of) / len(of) ** 2) for of in levels.values()
    ]


def _variation(pairs: Iterable[Sequence[_Gap]]) -> _Variation:
    reach = excess = square = degrees = 0.0
    for gaps in pairs:
        if len(gaps) > 1:
            values, noise = [gap.value for gap in gaps], fmean(gap.variance for gap in gaps)
            between = variance(values)
            reach = max(reach, max(values) - min(values))
            excess += between - noise
            square += (len(gaps) - 1) * between / noise if noise else inf
            degrees += len(gaps) - 1
    chance = 1 - gamma_cdf(square / 2, degrees / 2) if 0 < square < inf else float(not square)
    return _Variation(reach, excess, chance)


@dataclass(frozen=True)
class LevelKnee:
    """The knee at one level of what the factor's effects depend on: no later level is shown to be better than this one
    by the margin or more.
    """

    level: str
    knee: str
    course: KneeCourse


@dataclass(frozen=True)
class Knee:
    """Of one factor, by the levels of the factor `by` if there is one; `every` are all levels of that."""

    factor: str
    quantity: str
    by: str
    by_levels: tuple[str, ...]
    level_knees: tuple[LevelKnee, ...]
    one_node: bool


def knees(every: FactorialData, factors: Iterable[str], margin: float) -> Iterator[Knee]:
    """Of each of these factors that has at least three numbers, where the quantity is a rate."""
    if smaller_is_better(every.quantity):
        return
    for factor in factors:
        layout = every.layout(factor)
        names = tuple(layout.settings)
        if not layout.numbers or len(names) < _FEWEST or (is_size(factor) and not _counts_bytes(every.quantity)):
            continue
        by = interacting_factor(layout, layout.pairs, margin)
        levels = every.levels.get(by, ("",))
        found = {
            level: contest
            for level, places in places_by_level(layout.shared(names), by, levels).items()
            if len((contest := layout.compare(names, places, margin)).posteriors) == len(names)
        }
        turns = tuple(_turn(level, contest, names) for level, contest in found.items())
        if turns:
            yield Knee(factor, every.quantity, by, levels, turns, any(each.one_node for each in found.values()))


def _counts_bytes(quantity: str) -> bool:
    """Whether what carries more may be faster for it, as it is not in messages."""
    return quantity.endswith(("BytesPerSecond", "BitsPerSecond"))


def _turn(level: str, contest: Comparison, names: Sequence[str]) -> LevelKnee:
    for number, name in enumerate(names):
        beyond = names[number + 1 :]
        if not any(contest.beats(other, name) for other in beyond):
            return LevelKnee(level, name, _course(contest, name, beyond))
    raise AssertionError("there is nothing beyond the last level")


def _course(contest: Comparison, knee: str, beyond: Sequence[str]) -> KneeCourse:
    if not beyond:
        return KneeCourse.GROWS
    if all(contest.outcome(other, knee) in _LESS for other in beyond):
        return KneeCourse.FALLS
    most = max(contest.ratio(other, knee).high for other in beyond)
    sure = not contest.one_node and not contest.posteriors[knee].cut_short
    return KneeCourse.LEVEL if sure and most <= 1 + contest.margin else KneeCourse.NOT_KNOWN
