"""Which class is ahead up to which level, said of the measured levels alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from tierbench.advice.contests import Contest, contests
from tierbench.advice.estimate import margin, means, quantities, smaller_is_better
from tierbench.advice.matrix import RunResults, Table
from tierbench.results.levels import level_in_words


@dataclass(frozen=True)
class Standing:
    """Who is ahead at one level. Several leaders cannot be told apart; none means that nothing is measured.

    `best` has the best mean; `margin` is the share of the next class's mean that lies between, None with one class.
    """

    level: str
    leaders: tuple[str, ...]
    best: str = ""
    margin: float | None = None
    alone: bool = False


@dataclass(frozen=True)
class Stretch:
    """Neighbouring levels with the same leaders."""

    leaders: tuple[str, ...]
    standings: tuple[Standing, ...]
    alone: bool

    @property
    def margins(self) -> tuple[float, ...]:
        """The margins that are known."""
        return tuple(standing.margin for standing in self.standings if standing.margin is not None)


def standings(table: Table, quantity: str) -> tuple[Standing, ...]:
    """Who is ahead at each level; what is said of all levels holds together."""
    found = contests({row: means(table, row, quantity) for row in table.rows}, quantity)
    return tuple(_standing(row, found[row]) for row in table.rows)


def _standing(level: str, contest: Contest) -> Standing:
    ranked, found = contest.ranked, contest.estimates
    if not ranked:
        return Standing(level, ())
    lead = margin(found[ranked[0]].mean, found[ranked[1]].mean) if len(ranked) > 1 else None
    return Standing(level, contest.leaders, ranked[0], lead, alone=len(ranked) == 1)


def stretches(found: Sequence[Standing]) -> tuple[Stretch, ...]:
    """Neighbouring levels with the same leaders, joined."""
    groups = groupby(found, key=lambda standing: (standing.leaders, standing.alone))
    return tuple(Stretch(leaders, tuple(items), alone) for (leaders, alone), items in groups)


def where(table: Table, levels: Sequence[str]) -> str:
    """A stretch of neighbouring levels in words: at 1 MB, up to 2 GB, from 3 GB on, at every file size."""
    first, last = level_in_words(table.factor, levels[0]), level_in_words(table.factor, levels[-1])
    if len(levels) == len(table.rows):
        return f"from {first} to {last}" if len(levels) > 1 else f"at {first}"
    if len(levels) == 1:
        return f"at {first}"
    if levels[-1] == table.rows[-1]:
        return f"from {first} on"
    return f"up to {last}" if levels[0] == table.rows[0] else f"from {first} to {last}"


def joined(parts: Sequence[str], word: str = "and") -> str:
    """A list in words."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}" if parts else ""


def answer(table: Table, quantity: str) -> str:
    """Who is ahead where, in one sentence."""
    return said_of(table, standings(table, quantity))


def said_of(table: Table, found: Sequence[Standing]) -> str:
    """The same from the standings of the table."""
    parts = [
        _say(stretch, where(table, [standing.level for standing in stretch.standings])) for stretch in stretches(found)
    ]
    return f"{'; '.join(parts)}." if parts else "Nothing is measured yet."


def answer_of_run(run: RunResults) -> str:
    """The same for all tables of a run."""
    quantity = next(iter(quantities(run)), "")
    return said_of_all([(table, standings(table, quantity)) for table in run.tables])


def said_of_all(tables: Sequence[tuple[Table, Sequence[Standing]]]) -> str:
    """The same for several tables: what is held is said where there is more than one."""
    sentences = [(_held(table), said_of(table, found)) for table, found in tables]
    return " ".join(sentence if len(tables) == 1 else f"{held}: {sentence}" for held, sentence in sentences)


def _held(table: Table) -> str:
    words = ", ".join(level_in_words(name, level) for name, level in table.held.items())
    return words[:1].upper() + words[1:]


def _say(stretch: Stretch, place: str) -> str:
    if not stretch.leaders:
        return f"nothing is measured {place}"
    if stretch.alone:
        return f"only {stretch.leaders[0]} is measured {place}"
    if len(stretch.leaders) > 1:
        return f"{joined(stretch.leaders)} are tied {place}"
    return f"{stretch.leaders[0]} is ahead {place}{_by(stretch.margins)}"


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
        return f"only {standing.leaders[0]}"
    if len(standing.leaders) > 1:
        return f"tied: {joined(standing.leaders)}"
    sign = "−" if smaller_is_better(quantity) else "+"
    return f"{standing.leaders[0]}, {sign}{round((standing.margin or 0) * 100)} %"


def retries(table: Table) -> str:
    """Where something had to be tried again, and whether messages were lost, in a sentence each."""
    measured = [name for name in table.columns if any(table.cell(row, name).measured for row in table.rows)]
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
