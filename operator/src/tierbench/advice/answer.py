"""The answer of a run in words, whatever it compares. Pure."""

from collections.abc import Sequence
from typing import Final

from tierbench.advice.estimate import measured_quantities, smaller_is_better
from tierbench.advice.factor_summary import factor_statements, summarize_run
from tierbench.advice.leaders import LevelRange, LevelVerdict, level_ranges, level_verdicts
from tierbench.advice.selection import relabelled_run
from tierbench.advice.tables import RunResults, Table, describe_rows
from tierbench.kinds.registry import kind_of
from tierbench.results.units import describe_level, join_words, percent
from tierbench.stats.posterior import Relation

EQUAL: Final = "equal"
DEPENDS: Final = "depends"
INCONCLUSIVE: Final = "inconclusive"
LONGEST_BEST: Final = 32
_HANDFUL: Final = 3


def has_alternatives(run: RunResults) -> bool:
    """Whether there is more than one class or setting, so that one can be ahead."""
    return len(relabelled_run(run).classes) > 1


def kind_answers(run: RunResults) -> tuple[str, ...]:
    """What a run answers beside who is ahead, by its kind of benchmark."""
    return kind_of(run.benchmark.kind).report.answers(run)


def answer(run: RunResults) -> tuple[str, ...]:
    """Who is ahead where; of one class and setting, what its kind of benchmark answers beside that, or else what the
    factors cost."""
    own = kind_answers(run)
    if has_alternatives(run):
        return (describe_run(relabelled_run(run)), *own)
    return own or tuple(factor_statements(summarize_run(run))[:_HANDFUL]) or (describe_run(run),)


def best_or_reason(run: RunResults) -> str:
    """The answer in a word or two: the best alternative, or why there is none; nothing where only one was measured.

    The best one is shown to be better at one level at least, and leads at all others. It depends where that holds for
    some levels only.
    """
    if not has_alternatives(run):
        return ""
    every = [standing for found in run_level_verdicts(relabelled_run(run)) for standing in found]
    better = {each.best for each in every if _is_compared(each) and each.outcome is Relation.BETTER}
    if not better:
        equal = all(_is_compared(each) and each.outcome is Relation.EQUAL for each in every)
        return EQUAL if every and equal else INCONCLUSIVE
    name = min(better)
    if not all(_leads(name, each) for each in every):
        return DEPENDS
    return name if len(name) <= LONGEST_BEST else f"{name[: LONGEST_BEST - 1]}…"


def _is_compared(standing: LevelVerdict) -> bool:
    return bool(standing.leaders) and not standing.only_one


def _leads(name: str, standing: LevelVerdict) -> bool:
    """Whether an alternative is ahead at a level, or equal to the others that are."""
    if standing.outcome is Relation.EQUAL:
        return _is_compared(standing) and name in standing.leaders
    return _is_compared(standing) and standing.outcome is not Relation.UNKNOWN and name == standing.best


def describe_table(table: Table, found: Sequence[LevelVerdict]) -> str:
    """Who is ahead where, in one sentence, from the standings of the table."""
    parts = [
        _describe_range(stretch, describe_rows(table, [standing.level for standing in stretch.verdicts]))
        for stretch in level_ranges(found)
    ]
    if not parts:
        return "Nothing is measured yet."
    nodes = any(standing.one_node and not standing.only_one for standing in found)
    return f"{'On the nodes measured, ' if nodes else ''}{'; '.join(parts)}."


def describe_run(run: RunResults) -> str:
    """The same for all tables of a run."""
    return describe_tables(list(zip(run.tables, run_level_verdicts(run), strict=True)))


def run_level_verdicts(run: RunResults) -> list[tuple[LevelVerdict, ...]]:
    """Who is ahead at each level of each table of a run."""
    return level_verdicts(run.tables, next(iter(measured_quantities(run)), ""))


def describe_tables(tables: Sequence[tuple[Table, Sequence[LevelVerdict]]]) -> str:
    """The same for several tables: what is held is said where there is more than one."""
    factor_statements = [(_held(table), describe_table(table, found)) for table, found in tables]
    return " ".join(sentence if len(tables) == 1 else f"{held}: {sentence}" for held, sentence in factor_statements)


def _held(table: Table) -> str:
    words = ", ".join(describe_level(name, level) for name, level in table.held.items())
    return words[:1].upper() + words[1:]


def _describe_range(stretch: LevelRange, place: str) -> str:
    if not stretch.leaders:
        return f"nothing is known {place}"
    who, first = join_words(stretch.leaders), stretch.verdicts[0]
    if stretch.only_one:
        return f"only {who} is measured {place}"
    if stretch.outcome is Relation.EQUAL:
        return f"{who} are equal within {percent(first.smallest_margin)} {place}"
    if stretch.outcome is Relation.AHEAD:
        return f"{who} is ahead {place}, perhaps by less than {percent(first.smallest_margin)}"
    if stretch.outcome is Relation.UNKNOWN:
        return f"it is not known which of {who} is ahead {place}"
    return f"{who} is ahead {place}{_describe_margins(stretch.margins)}"


def _describe_margins(margins: Sequence[float]) -> str:
    if not margins:
        return ""
    low, high = round(min(margins) * 100), round(max(margins) * 100)
    return f", by {low}%" if low == high else f", by {low}–{high}%"


def short_verdict(standing: LevelVerdict, quantity: str) -> str:
    """Who is ahead at one level, as short as a table wants it."""
    if not standing.leaders:
        return "–"
    if standing.only_one:
        return f"only {standing.best}"
    if standing.outcome is Relation.EQUAL:
        return f"equal: {join_words(standing.leaders)}"
    if standing.outcome is Relation.UNKNOWN:
        return f"not known: {join_words(standing.leaders, 'or')}"
    sign = "−" if smaller_is_better(quantity) else "+"
    perhaps = "perhaps " if standing.outcome is Relation.AHEAD else ""
    return f"{perhaps}{standing.best}, {sign}{round((standing.margin or 0) * 100)}%"


def describe_retries(table: Table) -> str:
    """Where something had to be tried again, and whether messages were lost, in a sentence each."""
    measured = [name for name in table.columns if any(table.cell(row, name).has_retry_counts for row in table.rows)]
    if not measured:
        return "Of retries nothing is known."
    hit = {name: [row for row in table.rows if table.cell(row, name).retries] for name in measured}
    concerned = [name for name in measured if hit[name]]
    if not concerned:
        return f"No retries.{_losses(table)}"
    total = {name: sum(table.cell(row, name).retries for row in table.rows) for name in concerned}
    places = [f"on {name}, {_describe_places(table, hit[name])} ({total[name]} in all)" for name in concerned]
    only = " only" if len(concerned) < len(measured) else ""
    return f"Retries happened{only} {join_words(places)}.{_losses(table)}"


def _losses(table: Table) -> str:
    """Of brokers: whether every message arrived."""
    lost = {name: sum(table.cell(row, name).lost or 0 for row in table.rows) for name in table.columns}
    if all(table.cell(row, name).lost is None for row in table.rows for name in table.columns):
        return ""
    places = [f"{number} on {name}" for name, number in lost.items() if number]
    return f" Messages were lost: {join_words(places)}." if places else " Every message arrived."


def _describe_places(table: Table, levels: Sequence[str]) -> str:
    start = table.rows.index(levels[0])
    if table.rows[start : start + len(levels)] == tuple(levels):
        return describe_rows(table, levels)
    return f"at {join_words([describe_level(table.factor, level) for level in levels])}"
