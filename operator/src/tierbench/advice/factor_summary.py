"""The effects and knees of all factors: in order, as sentences, and as the status of an advice has them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf
from typing import Final

from tierbench.advice.effects import SIGNIFICANT, Effect, Knee, LevelEffect, effects, knees
from tierbench.advice.estimate import smaller_is_better
from tierbench.advice.factorial import factorial_data
from tierbench.advice.leaders import SMALLEST_MARGIN
from tierbench.advice.ranking import parts_per_million
from tierbench.advice.tables import RunResults, describe_levels, is_named_by_level
from tierbench.advice.workload import WorkloadItem
from tierbench.api.advice_answer import (
    MOST_EFFECTS,
    MOST_KNEES,
    EffectAt,
    EffectVerdict,
    FactorEffect,
    FactorKnee,
    KneeCourse,
)
from tierbench.api.result import BenchmarkResult
from tierbench.kinds.registry import kind_of
from tierbench.results.quantities import main_quantity
from tierbench.results.units import are_numbers, in_sentence, percent, title
from tierbench.stats.posterior import Relation

ALL_LEVELS: Final = (WorkloadItem({}, 1),)
"""The workload that every measured level matches."""
_PAIR: Final = 2
_TWICE: Final = 2.0
"""The smallest ratio that is written as a factor, and not as a percentage."""
_LONGEST: Final = 1024


@dataclass(frozen=True)
class FactorSummary:
    """The effects of factors on one quantity, the largest first, and the knees."""

    quantity: str
    effects: tuple[Effect, ...]
    knees: tuple[Knee, ...]

    @property
    def factors(self) -> frozenset[str]:
        """The factors with an effect or a knee."""
        return frozenset(each.factor for each in self.effects) | {knee.factor for knee in self.knees}


def summarize_factors(
    results: Iterable[BenchmarkResult],
    quantity: str,
    items: Sequence[WorkloadItem] = ALL_LEVELS,
    margin: float = SMALLEST_MARGIN,
    without: Sequence[str] = (),
) -> FactorSummary:
    """Returns the effects and knees of all factors that vary, except those `without`, over a workload."""
    data = factorial_data(results, quantity, items)
    factors = [factor for factor in data.levels if factor not in without]
    return FactorSummary(quantity, tuple(effects(data, factors, margin)), tuple(knees(data, factors, margin)))


def summarize_run(run: RunResults, without: Sequence[str] = ()) -> tuple[FactorSummary, ...]:
    """Returns the summaries of a run: by its rate in bytes or bits, its main quantity, and what its kind adds.

    The main quantity is left out if the rate is one over it.
    """
    measures = kind_of(run.benchmark.kind).measures
    there = {name for result in run.results for name in result.status.statistics}
    rate = measures.byte_rate or measures.rate
    main = main_quantity(run.benchmark.kind, there)
    added = [name for name in measures.costs if name in there]
    names = dict.fromkeys(name for name in (rate, main, *added) if name != measures.times.get(rate))
    return tuple(summarize_factors(run.results, name, without=() if name in added else without) for name in names)


def factor_statements(summaries: Iterable[FactorSummary]) -> list[str]:
    """Returns one sentence per factor of each summary: its knee if it has one, else its largest effect.

    Significant effects come first, the largest before others. Then come knees, then effects that are not significant.
    """
    ranked: list[tuple[int, float, str]] = []
    for summary in summaries:
        with_knee = {knee.factor for knee in summary.knees}
        largest = {effect.factor: effect for effect in reversed(summary.effects) if effect.factor not in with_knee}
        ranked += [(0 if effect.size else 2, -effect.size, effect_statement(effect)) for effect in largest.values()]
        ranked += [(1, 0.0, knee_statement(knee)) for knee in summary.knees]
    return [text for _, _, text in sorted(ranked, key=lambda each: each[:2])]


def effect_statement(effect: Effect) -> str:
    """Returns an effect as a sentence.

    For example: "TLSv1.3 lowers throughput by 12% (95% CI 10–14%) compared with TLS None at 1 kB."
    """
    groups = sorted(_groups(effect), key=lambda group: group[0].relation not in SIGNIFICANT)
    first, *others = groups
    clauses = [f"{_full_clause(effect, first)}{_place(effect, first)}"]
    clauses += [f"{_short_clause(effect, group)}{_place(effect, group)}" for group in others]
    text = f"{', '.join(clauses[:-1])}, and {clauses[-1]}." if others else f"{clauses[0]}."
    return _sentence(text, one_node=effect.one_node, keep_case=is_named_by_level(effect.factor))


def _sentence(text: str, *, one_node: bool, keep_case: bool = False) -> str:
    if one_node:
        return f"On the nodes measured, {text}"
    return text if keep_case else f"{text[:1].upper()}{text[1:]}"


def _groups(effect: Effect) -> Iterator[Sequence[LevelEffect]]:
    """Returns the level effects that one clause describes.

    Along numbers these are neighbouring levels with the same relation. Words have no neighbours, so each significant
    effect has a clause of its own, the largest first. Two levels also have a clause each.
    """
    numbers = are_numbers(effect.by, effect.by_levels)
    order = effect.level_effects
    if not numbers:
        order = tuple(sorted(order, key=lambda each: (_direction(each), -each.size)))
    for relation, found in groupby(order, key=_direction):
        group = list(found)
        split = relation in SIGNIFICANT and (not numbers or len(group) == _PAIR)
        yield from ([each] for each in group) if split else [group]


def _direction(each: LevelEffect) -> Relation:
    """Returns the relation without a distinction between small and large significant effects."""
    return {Relation.AHEAD: Relation.BETTER, Relation.BEHIND: Relation.WORSE}.get(each.relation, each.relation)


def _place(effect: Effect, group: Sequence[LevelEffect]) -> str:
    return f" {describe_levels(effect.by, effect.by_levels, [each.level for each in group])}" if effect.by else ""


def _full_clause(effect: Effect, group: Sequence[LevelEffect]) -> str:
    noun, relation = in_sentence(title(effect.quantity)), group[0].relation
    if relation is Relation.EQUAL:
        return f"{effect.second} and {effect.first} are equal within {percent(effect.margin)} in {noun}"
    if relation is Relation.NOT_KNOWN:
        return f"the difference in {noun} between {effect.second} and {effect.first} is inconclusive"
    if _is_multiple(group):
        return f"{effect.second} has {_multiple(group, '95% CI ')} the {noun} of {effect.first}"
    verb, change = _change(effect, group, "95% CI ")
    return f"{effect.second} {verb} {noun} by {change} compared with {effect.first}"


def _short_clause(effect: Effect, group: Sequence[LevelEffect]) -> str:
    relation = group[0].relation
    if relation is Relation.EQUAL:
        return f"they are equal within {percent(effect.margin)}"
    if relation is Relation.NOT_KNOWN:
        return "the difference is inconclusive"
    if _is_multiple(group):
        return f"has {_multiple(group)} as much"
    return "{} it by {}".format(*_change(effect, group))


def _is_multiple(group: Sequence[LevelEffect]) -> bool:
    return max(each.ratio.value for each in group) >= _TWICE


def _multiple(group: Sequence[LevelEffect], label: str = "") -> str:
    low, high = min(each.ratio.low for each in group), max(each.ratio.high for each in group)
    values = sorted(each.ratio.value for each in group)
    if values[-1] == inf:
        return f"at least {low:.1f} times"
    return f"{_span(f'{values[0]:.1f}', f'{values[-1]:.1f}')} times ({label}{low:.1f}–{high:.1f})"


def _change(effect: Effect, group: Sequence[LevelEffect], label: str = "") -> tuple[str, str]:
    """Returns the verb and the percentages of a change, as in ("lowers", "12% (10–14%)")."""
    changes = sorted(100 * abs(each.ratio.value - 1) for each in group)
    ends = sorted(100 * abs(end - 1) for each in group for end in (each.ratio.low, each.ratio.high))
    decimals = 0 if changes[-1] >= 10 else 1 if changes[-1] >= 1 else 2  # noqa: PLR2004 (two digits)
    least, most, low, high = (f"{value:.{decimals}f}" for value in (changes[0], changes[-1], ends[0], ends[-1]))
    is_better = group[0].relation in {Relation.BETTER, Relation.AHEAD}
    verb = "lowers" if is_better == smaller_is_better(effect.quantity) else "raises"
    return verb, f"{_span(least, most)}% ({label}{low}–{high}%)"


def _span(least: str, most: str) -> str:
    return least if least == most else f"{least}–{most}"


def knee_statement(knee: Knee) -> str:
    """Returns a knee as a sentence, such as "Throughput does not grow beyond pairs 2."."""
    groups = groupby(knee.level_knees, key=lambda each: (each.knee, each.course))
    clauses = [
        f"{_knee_clause(knee, level, course)}{_knee_place(knee, [each.level for each in group])}"
        for (level, course), group in groups
    ]
    return _sentence(f"{'; '.join(clauses)}.", one_node=knee.one_node)


def _knee_place(knee: Knee, levels: Sequence[str]) -> str:
    is_everywhere = len(levels) == len(knee.level_knees)
    return "" if is_everywhere else f" {describe_levels(knee.by, knee.by_levels, levels)}"


def _knee_clause(knee: Knee, level: str, course: KneeCourse) -> str:
    noun = in_sentence(title(knee.quantity))
    return {
        KneeCourse.GROWS: f"{noun} grows up to the last level measured, {level}",
        KneeCourse.FALLS: f"{noun} is highest with {level} and falls beyond",
        KneeCourse.LEVEL: f"{noun} does not grow beyond {level}",
        KneeCourse.NOT_KNOWN: f"no growth of {noun} is shown beyond {level}",
    }[course]


def factor_effects(summary: FactorSummary) -> tuple[FactorEffect, ...]:
    """Returns the largest effects as the status of an advice has them."""
    return tuple(
        FactorEffect(
            factor=effect.factor,
            from_level=effect.first,
            to_level=effect.second,
            by=effect.by,
            statement=effect_statement(effect)[:_LONGEST],
            at=tuple(
                EffectAt(
                    level=each.level,
                    verdict=EffectVerdict[each.relation.name],
                    ratio_parts_per_million=parts_per_million(each.ratio.value),
                    low_parts_per_million=parts_per_million(each.ratio.low),
                    high_parts_per_million=parts_per_million(each.ratio.high),
                )
                for each in effect.level_effects
            ),
        )
        for effect in summary.effects[:MOST_EFFECTS]
    )


def factor_knees(summary: FactorSummary) -> tuple[FactorKnee, ...]:
    """Returns the knees as the status of an advice has them."""
    return tuple(
        FactorKnee(
            factor=knee.factor,
            by=knee.by,
            statement=knee_statement(knee)[:_LONGEST],
            at=knee.level_knees,
        )
        for knee in summary.knees[:MOST_KNEES]
    )
