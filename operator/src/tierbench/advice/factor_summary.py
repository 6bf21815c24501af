"""The effects and knees of all factors: in sentences, in order, and as the status of an advice keeps them. Pure."""

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
from tierbench.advice.tables import RunResults, describe_levels
from tierbench.advice.workload import WorkloadItem
from tierbench.api.advice_answer import (
    MOST_EFFECTS,
    MOST_KNEES,
    EffectAt,
    EffectVerdict,
    FactorEffect,
    FactorKnee,
    KneeAt,
    KneeCourse,
)
from tierbench.api.result import BenchmarkResult
from tierbench.kinds.registry import kind_of
from tierbench.results.quantities import main_quantity, rate_quantity
from tierbench.results.units import are_numbers, in_sentence, percent, title
from tierbench.stats.posterior import Relation

ALL_LEVELS: Final = (WorkloadItem({}, 1),)
"""The workload of which every measured level is a part."""
_TRANSFER: Final = "durationNanoseconds"
_TWO: Final = 2
_TWICE: Final = 2.0
"""From here on a ratio is said as one, and not as a share."""
_BETTER: Final = frozenset({Relation.BETTER, Relation.AHEAD})
_LONGEST: Final = 1024
_VERDICTS: Final = {
    Relation.BETTER: EffectVerdict.BETTER,
    Relation.AHEAD: EffectVerdict.AHEAD,
    Relation.EQUAL: EffectVerdict.EQUAL,
    Relation.UNKNOWN: EffectVerdict.NOT_KNOWN,
    Relation.BEHIND: EffectVerdict.BEHIND,
    Relation.WORSE: EffectVerdict.WORSE,
}


@dataclass(frozen=True)
class FactorSummary:
    """Of one quantity: effects, the largest first, and knees."""

    quantity: str
    effects: tuple[Effect, ...]
    knees: tuple[Knee, ...]

    @property
    def factors(self) -> frozenset[str]:
        """Those of which something is said."""
        return frozenset(each.factor for each in self.effects) | {knee.factor for knee in self.knees}


def factor_statements(found: Iterable[FactorSummary]) -> list[str]:
    """One for each factor of each: its knee if it has one, else its largest effect. Effects that are shown first, the
    largest before others, and those of which nothing is shown last.
    """
    every: list[tuple[int, float, str]] = []
    for one in found:
        with_knee = {knee.factor for knee in one.knees}
        largest = {effect.factor: effect for effect in reversed(one.effects) if effect.factor not in with_knee}
        every += [(0 if effect.size else 2, -effect.size, effect_statement(effect)) for effect in largest.values()]
        every += [(1, 0.0, knee_statement(knee)) for knee in one.knees]
    return [text for _, _, text in sorted(every, key=lambda each: each[:2])]


def summarize_factors(
    results: Iterable[BenchmarkResult],
    quantity: str,
    wanted: Sequence[WorkloadItem] = ALL_LEVELS,
    margin: float = SMALLEST_MARGIN,
    without: Sequence[str] = (),
) -> FactorSummary:
    """Of all factors that vary but those `without`, over what a workload asks for."""
    every = factorial_data(results, quantity, wanted)
    factors = [factor for factor in every.levels if factor not in without]
    return FactorSummary(quantity, tuple(effects(every, factors, margin)), tuple(knees(every, factors, margin)))


def summarize_run(run: RunResults, without: Sequence[str] = ()) -> tuple[FactorSummary, ...]:
    """By the bytes or bits a second, by what its kind is read by first if the rate is not just one over it, and by
    what only costs compare.
    """
    kind = run.benchmark.kind
    rate = rate_quantity(kind).replace("Messages", "Bytes")
    there = {name for result in run.results for name in result.status.statistics}
    alone = [name for name in kind_of(kind).measures.costs if name in there]
    names = dict.fromkeys(name for name in (rate, main_quantity(kind, there), *alone) if name != _TRANSFER)
    return tuple(summarize_factors(run.results, name, without=() if name in alone else without) for name in names)


def sentence(text: str, *, one_node: bool) -> str:
    """The text as one that stands by itself."""
    return f"On the nodes measured, {text}" if one_node else text


def effect_statement(effect: Effect) -> str:
    """The effect in a sentence."""
    return sentence(_said(effect), one_node=effect.one_node)


def _said(effect: Effect) -> str:
    groups = sorted(_groups(effect), key=lambda parts: parts[0].outcome not in SIGNIFICANT)
    first, *others = groups
    clauses = [f"{_in_full(effect, first)}{_place(effect, first)}"]
    clauses += [f"{_in_short(effect, parts)}{_place(effect, parts)}" for parts in others]
    return f"{', '.join(clauses[:-1])}, and {clauses[-1]}." if others else f"{clauses[0]}."


def _groups(effect: Effect) -> Iterator[Sequence[LevelEffect]]:
    """The parts of which the same is said: of neighbouring levels. Words have none, so there what is shown is said of
    each, the largest first; and so it is of two.
    """
    numbers = are_numbers(effect.by, effect.by_levels)
    order = (
        effect.level_effects if numbers else sorted(effect.level_effects, key=lambda part: (_said_as(part), -part.size))
    )
    for outcome, group in groupby(order, key=_said_as):
        parts = list(group)
        each = outcome in SIGNIFICANT and (not numbers or len(parts) == _TWO)
        yield from ([part] for part in parts) if each else [parts]


def _said_as(part: LevelEffect) -> Relation:
    """Small and large effects that are shown are said alike."""
    return {Relation.AHEAD: Relation.BETTER, Relation.BEHIND: Relation.WORSE}.get(part.outcome, part.outcome)


def _place(effect: Effect, parts: Sequence[LevelEffect]) -> str:
    if not effect.by:
        return ""
    return f" {describe_levels(effect.by, effect.by_levels, [part.level for part in parts])}"


def _in_full(effect: Effect, parts: Sequence[LevelEffect]) -> str:
    noun, outcome = in_sentence(title(effect.quantity)), parts[0].outcome
    if outcome is Relation.EQUAL:
        return f"{effect.second} and {effect.first} are equal within {percent(effect.margin)} in {noun}"
    if outcome is Relation.UNKNOWN:
        return f"nothing is shown between {effect.second} and {effect.first} in {noun}"
    if _as_times(parts):
        return f"{effect.second} has {_times(parts)} the {noun} of {effect.first}"
    return f"{effect.second} {_share(effect, parts)} {_preposition(effect, parts)} {noun} against {effect.first}"


def _in_short(effect: Effect, parts: Sequence[LevelEffect]) -> str:
    outcome = parts[0].outcome
    if outcome is Relation.EQUAL:
        return f"they are equal within {percent(effect.margin)}"
    if outcome is Relation.UNKNOWN:
        return "nothing is shown"
    return f"has {_times(parts)} of it" if _as_times(parts) else _share(effect, parts)


def _as_times(parts: Sequence[LevelEffect]) -> bool:
    return max(part.ratio.value for part in parts) >= _TWICE


def _times(parts: Sequence[LevelEffect]) -> str:
    low, high = min(part.ratio.low for part in parts), max(part.ratio.high for part in parts)
    values = sorted(part.ratio.value for part in parts)
    if values[-1] == inf:
        return f"at least {low:.1f} times"
    return f"{_span([f'{value:.1f}' for value in values])} times ({low:.1f} to {high:.1f})"


def _share(effect: Effect, parts: Sequence[LevelEffect]) -> str:
    """With the verb: costs 12% (10 to 14)."""
    shares = sorted(100 * abs(part.ratio.value - 1) for part in parts)
    ends = sorted(100 * abs(end - 1) for part in parts for end in (part.ratio.low, part.ratio.high))
    decimals = 0 if shares[-1] >= 10 else 1 if shares[-1] >= 1 else 2  # noqa: PLR2004 (two digits)
    values, low, high = [f"{share:.{decimals}f}" for share in shares], ends[0], ends[-1]
    return f"{_verb(effect, parts)} {_span(values)}% ({low:.{decimals}f} to {high:.{decimals}f})"


def _span(values: Sequence[str]) -> str:
    return values[0] if values[0] == values[-1] else f"{values[0]}–{values[-1]}"


def _verb(effect: Effect, parts: Sequence[LevelEffect]) -> str:
    better = parts[0].outcome in _BETTER
    if smaller_is_better(effect.quantity):
        return "saves" if better else "adds"
    return "gains" if better else "costs"


def _preposition(effect: Effect, parts: Sequence[LevelEffect]) -> str:
    return "to" if _verb(effect, parts) == "adds" else "of"


def knee_statement(knee: Knee) -> str:
    """The knee in a sentence."""
    groups = groupby(knee.level_knees, key=lambda turn: (turn.knee, turn.course))
    clauses = [f"{_knee_clause(knee, *said)}{_turn_place(knee, [turn.level for turn in of])}" for said, of in groups]
    return sentence(f"{'; '.join(clauses)}.", one_node=knee.one_node)


def _turn_place(knee: Knee, levels: Sequence[str]) -> str:
    said_of_all = len(levels) == len(knee.level_knees)
    return "" if said_of_all else f" {describe_levels(knee.by, knee.by_levels, levels)}"


def _knee_clause(knee: Knee, level: str, course: KneeCourse) -> str:
    noun = in_sentence(title(knee.quantity))
    return {
        KneeCourse.GROWS: f"{noun} grows to the last level measured, {level}",
        KneeCourse.FALLS: f"{noun} is highest with {level}, and falls beyond",
        KneeCourse.LEVEL: f"from {level} on nothing more of {noun} is gained",
        KneeCourse.NOT_KNOWN: f"beyond {level} no more of {noun} is shown to be gained",
    }[course]


def factor_effects(summary: FactorSummary) -> tuple[FactorEffect, ...]:
    """The largest effects."""
    return tuple(map(_effect, summary.effects[:MOST_EFFECTS]))


def factor_knees(summary: FactorSummary) -> tuple[FactorKnee, ...]:
    """The knees."""
    return tuple(map(_knee, summary.knees[:MOST_KNEES]))


def _effect(effect: Effect) -> FactorEffect:
    return FactorEffect(
        factor=effect.factor,
        from_level=effect.first,
        to_level=effect.second,
        by=effect.by,
        statement=effect_statement(effect)[:_LONGEST],
        at=tuple(
            EffectAt(
                level=part.level,
                verdict=_VERDICTS[part.outcome],
                ratio_parts_per_million=parts_per_million(part.ratio.value),
                low_parts_per_million=parts_per_million(part.ratio.low),
                high_parts_per_million=parts_per_million(part.ratio.high),
            )
            for part in effect.level_effects
        ),
    )


def _knee(knee: Knee) -> FactorKnee:
    at = tuple(KneeAt(level=turn.level, knee=turn.knee, course=turn.course) for turn in knee.level_knees)
    return FactorKnee(factor=knee.factor, by=knee.by, statement=knee_statement(knee)[:_LONGEST], at=at)
