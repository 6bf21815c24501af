"""Which class is ahead up to which level, said of the measured levels alone."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from tierbench.advice.classes import Contest, Known
from tierbench.advice.estimate import Estimate, by_node, margin, quantities, smaller_is_better
from tierbench.advice.inference.verdict import Outcome
from tierbench.advice.knowledge import Knowledge
from tierbench.advice.matrix import RunResults, Table
from tierbench.api.placement_advice import Dimension
from tierbench.results.levels import are_numbers, level_in_words
from tierbench.results.units import percent

NAMED_BY_VALUE: Final = (Dimension.BROKER, Dimension.NODE_CLASS)
"""Factors whose levels say by themselves what they are."""
SMALLEST_MARGIN: Final = 0.05
"""The share that a difference must reach to be worth having, unless an advice says another."""


@dataclass(frozen=True)
class Standing:
    """Who is ahead at one level. With a sole leader it is shown; several are equal, or it is not known which of them is
    (`outcome`); none means that nothing is measured.

    `best` has the best value, and `margin` is the share of the next class's value that lies between, None with one
    class. `doubt` is how likely it is not the best at most. With `one_node` this is said of nodes, not of classes.
    """

    level: str
    leaders: tuple[str, ...]
    best: str = ""
    margin: float | None = None
    alone: bool = False
    outcome: Outcome = Outcome.UNKNOWN
    doubt: float = 0.0
    one_node: bool = False
    least: float = SMALLEST_MARGIN


@dataclass(frozen=True)
class Stretch:
    """Neighbouring levels of which the same is said."""

    leaders: tuple[str, ...]
    standings: tuple[Standing, ...]
    alone: bool
    outcome: Outcome

    @property
    def sole(self) -> bool:
        """Whether one class is shown to be ahead."""
        return self.outcome is Outcome.BETTER and not self.alone

    @property
    def margins(self) -> tuple[float, ...]:
        """The margins that are known."""
        return tuple(standing.margin for standing in self.standings if standing.margin is not None)


def standings(tables: Sequence[Table], quantity: str, least: float = SMALLEST_MARGIN) -> list[tuple[Standing, ...]]:
    """Who is ahead at each level of each table, with how far nodes differ learnt from all of them together."""
    places: dict[str, dict[Hashable, Mapping[str, Estimate]]] = {}
    for number, table in enumerate(tables):
        for (row, column), cell in table.cells.items():
            places.setdefault(column, {})[number, row] = by_node(cell, quantity)
    knowledge = Knowledge(quantity, places)
    return [
        tuple(_standing(row, _contest(knowledge, (number, row), table, quantity, least)) for row in table.rows)
        for number, table in enumerate(tables)
    ]


def _contest(knowledge: Knowledge, place: tuple[int, str], table: Table, quantity: str, least: float) -> Contest:
    known: dict[str, Known] = {}
    for column in table.columns:
        cell = table.cell(place[1], column)
        found = knowledge.of(column, {place: 1.0}, cut_short=cell.cut_short) if cell.results else None
        if found is not None:
            known[column] = found
    return Contest(quantity, known, least)


def _standing(level: str, contest: Contest) -> Standing:
    ranked, known = contest.ranked, contest.known
    if not ranked:
        return Standing(level, ())
    alone = len(ranked) == 1
    lead = None if alone else margin(known[ranked[0]].value, known[ranked[1]].value)
    doubt = 0.0 if alone else contest.doubt
    return Standing(
        level, contest.leaders, ranked[0], lead, alone, contest.standing, doubt, contest.one_node, contest.margin
    )


def stretches(found: Sequence[Standing]) -> tuple[Stretch, ...]:
    """Neighbouring levels of which the same is said, joined."""
    groups = groupby(found, key=lambda each: (_named(each), each.alone, each.outcome))
    return tuple(Stretch(leaders, tuple(items), alone, outcome) for (leaders, alone, outcome), items in groups)


def _named(standing: Standing) -> tuple[str, ...]:
    """The classes that are named: the one that is perhaps ahead, or all leaders."""
    return (standing.best,) if standing.outcome is Outcome.AHEAD else standing.leaders


def where(table: Table, levels: Sequence[str]) -> str:
    """A stretch of neighbouring levels of a table in words."""
    return place_in_words(table.factor, table.rows, levels)


def place_in_words(factor: str, every: Sequence[str], levels: Sequence[str]) -> str:
    """Some levels of all that there are: at 1 MB, up to 2 GB, from 3 GB on; of words: with GZIP and Zstd, on cloud."""
    if not are_numbers(factor, every):
        texts = [level if factor in NAMED_BY_VALUE else level_in_words(factor, level) for level in levels]
        return f"{'on' if factor == Dimension.NODE_CLASS else 'with'} {joined(texts)}"
    first, last = level_in_words(factor, levels[0]), level_in_words(factor, levels[-1])
    if len(levels) == len(every):
        return f"from {first} to {last}" if len(levels) > 1 else f"at {first}"
    if len(levels) == 1:
        return f"at {first}"
    if levels[-1] == every[-1]:
        return f"from {first} on"
    return f"up to {last}" if levels[0] == every[0] else f"from {first} to {last}"


def joined(parts: Sequence[str], word: str = "and") -> str:
    """A list in words."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}" if parts else ""


def said_of(table: Table, found: Sequence[Standing]) -> str:
    """Who is ahead where, in one sentence, from the standings of the table."""
    parts = [
        _say(stretch, where(table, [standing.level for standing in stretch.standings])) for stretch in stretches(found)
    ]
    if not parts:
        return "Nothing is measured yet."
    nodes = any(standing.one_node and not standing.alone for standing in found)
    return f"{'On the nodes measured, ' if nodes else ''}{'; '.join(parts)}."


def answer_of_run(run: RunResults) -> str:
    """The same for all tables of a run."""
    return said_of_all(list(zip(run.tables, standings_of_run(run), strict=True)))


def standings_of_run(run: RunResults) -> list[tuple[Standing, ...]]:
    """Who is ahead at each level of each table of a run."""
    return standings(run.tables, next(iter(quantities(run)), ""))


def said_of_all(tables: Sequence[tuple[Table, Sequence[Standing]]]) -> str:
    """The same for several tables: what is held is said where there is more than one."""
    sentences = [(_held(table), said_of(table, found)) for table, found in tables]
    return " ".join(sentence if len(tables) == 1 else f"{held}: {sentence}" for held, sentence in sentences)


def expected_wrong(found: Iterable[Standing]) -> tuple[int, float]:
    """How many levels have a class that is said to be ahead, and of how many of them that is expected to be wrong at
    most (Gelman, Hill and Yajima, Journal of Research on Educational Effectiveness 5, 2012).
    """
    said = [each.doubt for each in found if not each.alone and each.outcome in {Outcome.BETTER, Outcome.AHEAD}]
    return len(said), sum(said)


def _held(table: Table) -> str:
    words = ", ".join(level_in_words(name, level) for name, level in table.held.items())
    return words[:1].upper() + words[1:]


def _say(stretch: Stretch, place: str) -> str:
    if not stretch.leaders:
        return f"nothing is known {place}"
    who, first = joined(stretch.leaders), stretch.standings[0]
    if stretch.alone:
        return f"only {who} is measured {place}"
    if stretch.outcome is Outcome.EQUAL:
        return f"{who} are equal within {percent(first.least)} {place}"
    if stretch.outcome is Outcome.AHEAD:
        return f"{who} is ahead {place}, perhaps by less than {percent(first.least)}"
    if stretch.outcome is Outcome.UNKNOWN:
        return f"it is not known which of {who} is ahead {place}"
    return f"{who} is ahead {place}{_by(stretch.margins)}"


def _by(margins: Sequence[float]) -> str:
    if not margins:
        return ""
    low, high = round(min(margins) * 100), round(max(margins) * 100)
    return f", by {low} %" if low == high else f", by {low}–{high} %"


def verdict(standing: Standing, quantity: str) -> str:
    """Who is ahead at one level, as short as a table wants it."""
    if not standing.leaders:
        return "–"
    if standing.alone:
        return f"only {standing.best}"
    if standing.outcome is Outcome.EQUAL:
        return f"equal: {joined(standing.leaders)}"
    if standing.outcome is Outcome.UNKNOWN:
        return f"not known: {joined(standing.leaders, 'or')}"
    sign = "−" if smaller_is_better(quantity) else "+"
    perhaps = "perhaps " if standing.outcome is Outcome.AHEAD else ""
    return f"{perhaps}{standing.best}, {sign}{round((standing.margin or 0) * 100)} %"


def retries(table: Table) -> str:
    """Where something had to be tried again, and whether messages were lost, in a sentence each."""
    measured = [name for name in table.columns if any(table.cell(row, name).tells_retries for row in table.rows)]
    if not measured:
        return "Of retries nothing is known."
    hit = {name: [row for row in table.rows if table.cell(row, name).retries] for name in measured}
    concerned = [name for name in measured if hit[name]]
    if not concerned:
        return f"No retries.{_losses(table)}"
    total = {name: sum(table.cell(row, name).retries for row in table.rows) for name in concerned}
    places = [f"on {name}, {_spots(table, hit[name])} ({total[name]} in all)" for name in concerned]
    only = " only" if len(concerned) < len(measured) else ""
    return f"Retries happened{only} {joined(places)}.{_losses(table)}"


def _losses(table: Table) -> str:
    """Of brokers: whether every message arrived."""
    lost = {name: sum(table.cell(row, name).lost or 0 for row in table.rows) for name in table.columns}
    if all(table.cell(row, name).lost is None for row in table.rows for name in table.columns):
        return ""
    places = [f"{number} on {name}" for name, number in lost.items() if number]
    return f" Messages were lost: {joined(places)}." if places else " Every message arrived."


def _spots(table: Table, levels: Sequence[str]) -> str:
    start = table.rows.index(levels[0])
    if table.rows[start : start + len(levels)] == tuple(levels):
        return where(table, levels)
    return f"at {joined([level_in_words(table.factor, level) for level in levels])}"
