"""Which class is ahead at which levels, where another comes ahead, and where to measure next to know it better."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import floor, log10, sqrt
from typing import Final

from tierbench.advice.estimate import Estimate, measured_quantities, node_estimates, relative_margin
from tierbench.advice.posterior import Comparison, Posterior, PosteriorModel
from tierbench.advice.tables import RunResults, Table
from tierbench.api.quantity import parse_size
from tierbench.api.result import ResultPhase
from tierbench.results.units import describe_level, level_number
from tierbench.stats.posterior import Relation

SMALLEST_MARGIN: Final = 0.05
"""The share that a difference must reach to be worth having, unless an advice says another."""
_DIGITS: Final = 3
_SMALLEST: Final = 10 ** (_DIGITS - 1)
_BINARY: Final = ("Ti", "Gi", "Mi", "Ki", "")
_DECIMAL: Final = ("T", "G", "M", "k", "")


@dataclass(frozen=True)
class LevelVerdict:
    """Who is ahead at one level. With a sole leader it is shown; several are equal, or it is not known which of them is
    (`outcome`); none means that nothing is measured.

    `best` has the best value, and `margin` is the share of the next class's value that lies between, None with one
    class. `doubt` is how likely it is not the best at most. With `one_node` this is said of nodes, not of classes.
    """

    level: str
    leaders: tuple[str, ...]
    best: str = ""
    margin: float | None = None
    only_one: bool = False
    outcome: Relation = Relation.UNKNOWN
    error_probability: float = 0.0
    one_node: bool = False
    smallest_margin: float = SMALLEST_MARGIN


@dataclass(frozen=True)
class LevelRange:
    """Neighbouring levels of which the same is said."""

    leaders: tuple[str, ...]
    verdicts: tuple[LevelVerdict, ...]
    only_one: bool
    outcome: Relation

    @property
    def has_winner(self) -> bool:
        """Whether one class is shown to be ahead."""
        return self.outcome is Relation.BETTER and not self.only_one

    @property
    def margins(self) -> tuple[float, ...]:
        """The margins that are known."""
        return tuple(standing.margin for standing in self.verdicts if standing.margin is not None)


def level_verdicts(
    tables: Sequence[Table], quantity: str, least: float = SMALLEST_MARGIN
) -> list[tuple[LevelVerdict, ...]]:
    """Who is ahead at each level of each table, with how far nodes differ learnt from all of them together."""
    places: dict[str, dict[Hashable, Mapping[str, Estimate]]] = {}
    for number, table in enumerate(tables):
        for (row, column), cell in table.cells.items():
            places.setdefault(column, {})[number, row] = node_estimates(cell, quantity)
    knowledge = PosteriorModel(quantity, places)
    return [
        tuple(_level_verdict(row, _comparison(knowledge, (number, row), table, quantity, least)) for row in table.rows)
        for number, table in enumerate(tables)
    ]


def _comparison(
    knowledge: PosteriorModel, place: tuple[int, str], table: Table, quantity: str, least: float
) -> Comparison:
    known: dict[str, Posterior] = {}
    for column in table.columns:
        cell = table.cell(place[1], column)
        found = knowledge.of(column, {place: 1.0}, cut_short=cell.cut_short) if cell.results else None
        if found is not None:
            known[column] = found
    return Comparison(quantity, known, least)


def _level_verdict(level: str, contest: Comparison) -> LevelVerdict:
    ranked, known = contest.ranked, contest.posteriors
    if not ranked:
        return LevelVerdict(level, ())
    alone = len(ranked) == 1
    lead = None if alone else relative_margin(known[ranked[0]].value, known[ranked[1]].value)
    doubt = 0.0 if alone else contest.error_probability
    return LevelVerdict(
        level, contest.leaders, ranked[0], lead, alone, contest.lead, doubt, contest.one_node, contest.margin
    )


def level_ranges(found: Sequence[LevelVerdict]) -> tuple[LevelRange, ...]:
    """Neighbouring levels of which the same is said, joined."""
    groups = groupby(found, key=lambda each: (_named(each), each.only_one, each.outcome))
    return tuple(LevelRange(leaders, tuple(items), alone, outcome) for (leaders, alone, outcome), items in groups)


def _named(standing: LevelVerdict) -> tuple[str, ...]:
    """The classes that are named: the one that is perhaps ahead, or all leaders."""
    return (standing.best,) if standing.outcome is Relation.AHEAD else standing.leaders


def expected_errors(found: Iterable[LevelVerdict]) -> tuple[int, float]:
    """How many levels have a class that is said to be ahead, and of how many of them that is expected to be wrong at
    most (Gelman, Hill and Yajima, Journal of Research on Educational Effectiveness 5, 2012).
    """
    said = [
        each.error_probability
        for each in found
        if not each.only_one and each.outcome in {Relation.BETTER, Relation.AHEAD}
    ]
    return len(said), sum(said)


@dataclass(frozen=True)
class Crossover:
    """`below` is ahead up to the level `lower`, `above` from the level `upper` on. Nothing is said of where in between:
    a limit may be reached there, at which times leap. `confidence` is how likely both are so, at least.
    """

    factor: str
    held: Mapping[str, str]
    below: str
    above: str
    lower: str
    upper: str
    confidence: float

    def __str__(self) -> str:
        """The crossover in a sentence."""
        first, last = describe_level(self.factor, self.lower), describe_level(self.factor, self.upper)
        return f"Between {first} and {last} {self.above} comes ahead of {self.below}."


def crossovers(table: Table, verdicts: Sequence[LevelVerdict]) -> tuple[Crossover, ...]:
    """Every change of the sole leader between levels at which it is shown who that is.

    Levels in between at which that is not shown belong to the crossover. `verdicts` are those of the table.
    """
    if not all(level_number(level) for level in table.rows):
        return ()
    decided = [item for item in verdicts if item.outcome is Relation.BETTER and not item.only_one]
    return tuple(
        Crossover(
            table.factor,
            table.held,
            before.best,
            after.best,
            before.level,
            after.level,
            max(0.0, 1 - before.error_probability - after.error_probability),
        )
        for before, after in pairwise(decided)
        if before.best != after.best
    )


@dataclass(frozen=True)
class RefinementLevel:
    """A crossover, and the `level` in the middle of its bracket. `levels` are those of all factors, with that one."""

    crossover: Crossover
    client_class: str
    level: str
    levels: Mapping[str, str]

    def __str__(self) -> str:
        """What is known, and what comes of it."""
        known = self.crossover
        held = "".join(f", {name} {level}" for name, level in known.held.items())
        between = f"{known.lower} and {known.upper}{held}"
        return f"{known.above} overtakes {known.below} between {between}: measures {self.level}"


def refinements(run: RunResults, factor: str, within: float) -> tuple[RefinementLevel, ...]:
    """The middle of every crossover along the factor, whose levels are sizes, with an upper end that is more than the
    share `within` beyond the lower.

    None of a bracket at which a case of any class failed, since what is ahead there is what did not; and none that is
    measured: if it does not tell who is ahead, no other level is guessed to.
    """
    tables = run.tables_by(factor)
    found = level_verdicts(tables, next(iter(measured_quantities(run)), ""))
    return tuple(
        middle
        for table, standing in zip(tables, found, strict=True)
        for crossover in crossovers(table, standing)
        for middle in _refinement(table, crossover, within)
    )


def _refinement(table: Table, crossover: Crossover, within: float) -> Iterator[RefinementLevel]:
    level = midpoint(crossover.lower, crossover.upper, within)
    known = {level_number(row) for row in table.rows}
    if level is None or level_number(level) in known or _failed(table, crossover):
        return
    one = table.cell(crossover.lower, crossover.below).results[0].spec
    yield RefinementLevel(crossover, one.client.node_class, level, {**one.levels, table.factor: level})


def _failed(table: Table, crossover: Crossover) -> bool:
    first, last = table.rows.index(crossover.lower), table.rows.index(crossover.upper)
    cells = (table.cell(row, column) for row in table.rows[first : last + 1] for column in table.columns)
    return any(result.status.phase is ResultPhase.FAILED for cell in cells for result in cell.results)


def midpoint(lower: str, upper: str, within: float) -> str | None:
    """The geometric mean of two sizes in three digits, with prefixes as they have them; None if they are no further
    apart than the share `within`, or nothing of three digits lies between.
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
    return _BINARY if "i" in levels else _DECIMAL
