"""The answer of a run in words: which alternative is ahead at which levels, the effects of factors, and retries."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf
from typing import Final

from tierbench.advice.effects import SIGNIFICANT, Effect, Knee, LevelEffect, effects, factorial_data, knees
from tierbench.advice.posterior import SMALLEST_MARGIN, LevelRange, LevelVerdict, level_ranges, level_verdicts
from tierbench.advice.requirements import WorkloadItem
from tierbench.advice.selection import relabelled_run
from tierbench.advice.tables import (
    RunResults,
    Table,
    describe_levels,
    describe_rows,
    is_named_by_level,
    measured_quantities,
    smaller_is_better,
)
from tierbench.api.advice_answer import KneeCourse
from tierbench.api.result import BenchmarkResult
from tierbench.kinds.registry import kind_of
from tierbench.results.quantities import main_quantity
from tierbench.results.units import DASH, are_numbers, describe_level, in_sentence, join_words, percent, title
from tierbench.stats.posterior import Relation

Verdicts = Sequence[Sequence[LevelVerdict]]
"""The verdicts on the levels of each table."""
EQUAL: Final = "equal"
DEPENDS: Final = "depends"
INCONCLUSIVE: Final = "inconclusive"
LONGEST_BEST: Final = 32
_MAX_STATEMENTS: Final = 3
ALL_LEVELS: Final = (WorkloadItem({}, 1),)
"""The workload that every measured level matches."""
_PAIR: Final = 2
_TWICE: Final = 2.0
"""The smallest ratio that is written as a factor, and not as a percentage."""


def has_alternatives(run: RunResults) -> bool:
    """Returns whether a run compares several classes or settings."""
    return len(relabelled_run(run).classes) > 1


def kind_answers(run: RunResults) -> tuple[str, ...]:
    """Returns the sentences that only this kind of benchmark adds to the answer of a run."""
    return kind_of(run.benchmark.kind).report.answers(run)


def answer(run: RunResults, verdicts: Verdicts | None = None) -> tuple[str, ...]:
    """Returns the answer of a run, one sentence each. `verdicts` are those on its alternatives, if they are known.

    With alternatives it says which one is ahead at which levels. With one class and one setting it is what the kind of
    benchmark answers, or else the largest effects of factors.
    """
    own = kind_answers(run)
    if has_alternatives(run):
        return (describe_run(relabelled_run(run), verdicts), *own)
    return own or tuple(factor_statements(summarize_run(run))[:_MAX_STATEMENTS]) or (describe_run(run),)


def best_or_reason(run: RunResults, verdicts: Verdicts | None = None) -> str:
    """Returns the best alternative of a run, or why there is none; empty if only one alternative was measured.

    The best alternative is shown to be better at one level at least, and is ahead or equal at all others. If this holds
    for some levels only, the answer is DEPENDS.
    """
    if not has_alternatives(run):
        return ""
    found = verdicts or run_level_verdicts(relabelled_run(run))
    levels = [verdict for of_table in found for verdict in of_table]
    better = {each.best for each in levels if each.is_comparison and each.relation is Relation.BETTER}
    if not better:
        equal = all(each.is_comparison and each.relation is Relation.EQUAL for each in levels)
        return EQUAL if levels and equal else INCONCLUSIVE
    name = min(better)
    if not all(_leads(name, each) for each in levels):
        return DEPENDS
    return name if len(name) <= LONGEST_BEST else f"{name[: LONGEST_BEST - 1]}…"


def _leads(name: str, verdict: LevelVerdict) -> bool:
    """Returns whether an alternative is ahead at a level, or equal to the others that are."""
    if verdict.relation is Relation.EQUAL:
        return verdict.is_comparison and name in verdict.leaders
    return verdict.is_comparison and verdict.relation is not Relation.INCONCLUSIVE and name == verdict.best


def describe_run(run: RunResults, verdicts: Verdicts | None = None) -> str:
    """Returns which alternative is ahead at which levels, over all tables of a run."""
    return describe_tables(list(zip(run.tables, verdicts or run_level_verdicts(run), strict=True)))


def run_level_verdicts(run: RunResults) -> Iterator[tuple[LevelVerdict, ...]]:
    """Yields the verdicts on the levels of each table of a run."""
    return level_verdicts(run.tables, next(iter(measured_quantities(run)), ""))


def describe_tables(tables: Sequence[tuple[Table, Sequence[LevelVerdict]]]) -> str:
    """Returns one sentence per table. If there are several, each begins with the levels that are held fixed."""
    sentences = [(_held_levels(table), describe_table(table, verdicts)) for table, verdicts in tables]
    return " ".join(sentence if len(tables) == 1 else f"{held}: {sentence}" for held, sentence in sentences)


def _held_levels(table: Table) -> str:
    text = ", ".join(describe_level(name, level) for name, level in table.held.items())
    return text[:1].upper() + text[1:]


def describe_table(table: Table, verdicts: Sequence[LevelVerdict]) -> str:
    """Returns a sentence that says which alternative is ahead at which levels of a table."""
    clauses = [
        _describe_range(each, describe_rows(table, [verdict.level for verdict in each.verdicts]))
        for each in level_ranges(verdicts)
    ]
    if not clauses:
        return "Nothing is measured yet."
    nodes = any(verdict.one_node and not verdict.only_one for verdict in verdicts)
    text = f"{'on the nodes measured, ' if nodes else ''}{'; '.join(clauses)}."
    return text if text.startswith(verdicts[0].leaders) else f"{text[:1].upper()}{text[1:]}"


def _describe_range(found: LevelRange, place: str) -> str:
    if not found.leaders:
        return f"there is too little data {place}"
    names, margin = join_words(found.leaders), percent(found.verdicts[0].smallest_margin)
    if found.only_one:
        return f"only {names} is measured {place}"
    if found.relation is Relation.EQUAL:
        return f"{names} are equal within {margin} {place}"
    if found.relation is Relation.AHEAD:
        return f"{names} is ahead {place}, perhaps by less than {margin}"
    if found.relation is Relation.INCONCLUSIVE:
        return f"the difference between {names} is inconclusive {place}"
    return f"{names} is ahead {place}{_describe_margins(found.margins)}"


def _describe_margins(margins: Sequence[float]) -> str:
    if not margins:
        return ""
    low, high = round(min(margins) * 100), round(max(margins) * 100)
    return f", by {low}%" if low == high else f", by {low}–{high}%"


def short_verdict(verdict: LevelVerdict, quantity: str) -> str:
    """Returns which alternative is ahead at one level, short enough for a table."""
    if not verdict.leaders:
        return DASH
    if verdict.only_one:
        return f"only {verdict.best}"
    if verdict.relation is Relation.EQUAL:
        return f"equal: {join_words(verdict.leaders)}"
    if verdict.relation is Relation.INCONCLUSIVE:
        return f"inconclusive: {join_words(verdict.leaders, 'or')}"
    sign = "−" if smaller_is_better(quantity) else "+"
    perhaps = "perhaps " if verdict.relation is Relation.AHEAD else ""
    return f"{perhaps}{verdict.best}, {sign}{round((verdict.margin or 0) * 100)}%"


def describe_retries(table: Table) -> str:
    """Returns where retries occurred, and what the kind of benchmark says about losses."""
    measured = [name for name in table.columns if any(table.cell(row, name).has_retry_counts for row in table.rows)]
    if not measured:
        return "No retry data."
    rows = {name: [row for row in table.rows if table.cell(row, name).retries] for name in measured}
    retried = [name for name in measured if rows[name]]
    result = next(result for cell in table.cells.values() for result in cell.results)
    losses = kind_of(result.spec.benchmark.kind).report.losses(table)
    if not retried:
        return " ".join(filter(None, ("No retries.", losses)))
    total = {name: sum(table.cell(row, name).retries for row in table.rows) for name in retried}
    places = [f"on {name}, {_describe_places(table, rows[name])} ({total[name]} in total)" for name in retried]
    only = " only" if len(retried) < len(measured) else ""
    return " ".join(filter(None, (f"Retries occurred{only} {join_words(places)}.", losses)))


def _describe_places(table: Table, levels: Sequence[str]) -> str:
    start = table.rows.index(levels[0])
    if table.rows[start : start + len(levels)] == tuple(levels):
        return describe_rows(table, levels)
    return f"at {join_words([describe_level(table.factor, level) for level in levels])}"


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
    if relation is Relation.INCONCLUSIVE:
        return f"the difference in {noun} between {effect.second} and {effect.first} is inconclusive"
    if _is_multiple(group):
        return f"{effect.second} has {_multiple(group, '95% CI ')} the {noun} of {effect.first}"
    verb, change = _change(effect, group, "95% CI ")
    return f"{effect.second} {verb} {noun} by {change} compared with {effect.first}"


def _short_clause(effect: Effect, group: Sequence[LevelEffect]) -> str:
    relation = group[0].relation
    if relation is Relation.EQUAL:
        return f"they are equal within {percent(effect.margin)}"
    if relation is Relation.INCONCLUSIVE:
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
        KneeCourse.INCONCLUSIVE: f"no growth of {noun} is shown beyond {level}",
    }[course]
