"""The answer of a run in words: which alternative is ahead at which levels, and where retries occurred."""

from collections.abc import Sequence
from typing import Final

from tierbench.advice.estimate import measured_quantities, smaller_is_better
from tierbench.advice.factor_summary import factor_statements, summarize_run
from tierbench.advice.leaders import LevelRange, LevelVerdict, level_ranges, level_verdicts
from tierbench.advice.selection import relabelled_run
from tierbench.advice.tables import RunResults, Table, describe_rows
from tierbench.kinds.registry import kind_of
from tierbench.results.units import DASH, describe_level, join_words, percent
from tierbench.stats.posterior import Relation

EQUAL: Final = "equal"
DEPENDS: Final = "depends"
INCONCLUSIVE: Final = "inconclusive"
LONGEST_BEST: Final = 32
_MAX_STATEMENTS: Final = 3


def has_alternatives(run: RunResults) -> bool:
    """Returns whether a run compares several classes or settings."""
    return len(relabelled_run(run).classes) > 1


def kind_answers(run: RunResults) -> tuple[str, ...]:
    """Returns the sentences that only this kind of benchmark adds to the answer of a run."""
    return kind_of(run.benchmark.kind).report.answers(run)


def answer(run: RunResults) -> tuple[str, ...]:
    """Returns the answer of a run, one sentence each.

    With alternatives it says which one is ahead at which levels. With one class and one setting it is what the kind of
    benchmark answers, or else the largest effects of factors.
    """
    own = kind_answers(run)
    if has_alternatives(run):
        return (describe_run(relabelled_run(run)), *own)
    return own or tuple(factor_statements(summarize_run(run))[:_MAX_STATEMENTS]) or (describe_run(run),)


def best_or_reason(run: RunResults) -> str:
    """Returns the best alternative of a run, or why there is none; empty if only one alternative was measured.

    The best alternative is shown to be better at one level at least, and is ahead or equal at all others. If this holds
    for some levels only, the answer is DEPENDS.
    """
    if not has_alternatives(run):
        return ""
    verdicts = [verdict for of_table in run_level_verdicts(relabelled_run(run)) for verdict in of_table]
    better = {each.best for each in verdicts if each.is_comparison and each.relation is Relation.BETTER}
    if not better:
        equal = all(each.is_comparison and each.relation is Relation.EQUAL for each in verdicts)
        return EQUAL if verdicts and equal else INCONCLUSIVE
    name = min(better)
    if not all(_leads(name, each) for each in verdicts):
        return DEPENDS
    return name if len(name) <= LONGEST_BEST else f"{name[: LONGEST_BEST - 1]}…"


def _leads(name: str, verdict: LevelVerdict) -> bool:
    """Returns whether an alternative is ahead at a level, or equal to the others that are."""
    if verdict.relation is Relation.EQUAL:
        return verdict.is_comparison and name in verdict.leaders
    return verdict.is_comparison and verdict.relation is not Relation.NOT_KNOWN and name == verdict.best


def describe_run(run: RunResults) -> str:
    """Returns which alternative is ahead at which levels, over all tables of a run."""
    return describe_tables(list(zip(run.tables, run_level_verdicts(run), strict=True)))


def run_level_verdicts(run: RunResults) -> list[tuple[LevelVerdict, ...]]:
    """Returns the verdict on each level of each table of a run."""
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
    if found.relation is Relation.NOT_KNOWN:
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
    if verdict.relation is Relation.NOT_KNOWN:
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
