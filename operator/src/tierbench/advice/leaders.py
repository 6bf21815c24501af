"""Which class is ahead at each level, where the lead changes (crossovers), and which levels narrow a crossover."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import floor, log10, sqrt
from typing import Final

from tierbench.advice.posterior import Comparison, PosteriorModel
from tierbench.advice.tables import RunResults, Table, measured_quantities, node_estimates, relative_margin
from tierbench.api.quantity import parse_size
from tierbench.api.result import ResultPhase
from tierbench.results.units import describe_level, level_number
from tierbench.stats.estimates import Estimate
from tierbench.stats.posterior import Relation

SMALLEST_MARGIN: Final = 0.05
"""The smallest relative difference that matters, unless an advice names another one."""
_DIGITS: Final = 3
_SMALLEST: Final = 10 ** (_DIGITS - 1)
_BINARY_PREFIXES: Final = ("Ti", "Gi", "Mi", "Ki", "")
_DECIMAL_PREFIXES: Final = ("T", "G", "M", "k", "")


@dataclass(frozen=True)
class LevelVerdict:
    """Which class is ahead at one level.

    `leaders` are the best class and all classes that it is not shown to be better than; empty without data. `relation`
    is that of the best class to the other leaders. `margin` is the distance between the best class and the next one, as
    a share of the value of the latter. `error_probability` is an upper bound of the probability that `best` is not the
    best class. With `one_node` the verdict is about the measured nodes, not about their classes.
    """

    level: str
    leaders: tuple[str, ...]
    best: str = ""
    margin: float | None = None
    only_one: bool = False
    relation: Relation = Relation.NOT_KNOWN
    error_probability: float = 0.0
    one_node: bool = False
    smallest_margin: float = SMALLEST_MARGIN

    @property
    def is_comparison(self) -> bool:
        """Whether at least two classes have data."""
        return bool(self.leaders) and not self.only_one


@dataclass(frozen=True)
class LevelRange:
    """Neighbouring levels with the same verdict."""

    leaders: tuple[str, ...]
    verdicts: tuple[LevelVerdict, ...]
    only_one: bool
    relation: Relation

    @property
    def has_winner(self) -> bool:
        """Whether one class is shown to be better than all others."""
        return self.relation is Relation.BETTER and not self.only_one

    @property
    def margins(self) -> tuple[float, ...]:
        """The known margins of the levels."""
        return tuple(verdict.margin for verdict in self.verdicts if verdict.margin is not None)


def level_verdicts(
    tables: Sequence[Table], quantity: str, smallest_margin: float = SMALLEST_MARGIN
) -> list[tuple[LevelVerdict, ...]]:
    """Returns the verdict on each level of each table. The variation between nodes is estimated from all tables."""
    places: dict[str, dict[Hashable, Mapping[str, Estimate]]] = {}
    for number, table in enumerate(tables):
        for (row, column), cell in table.cells.items():
            places.setdefault(column, {})[number, row] = node_estimates(cell, quantity)
    model = PosteriorModel(quantity, places)

    def compare(number: int, row: str, table: Table) -> Comparison:
        cells = {column: cell for column in table.columns if (cell := table.cell(row, column)).results}
        found = {
            column: model.posterior(column, {(number, row): 1.0}, cut_short=cell.cut_short)
            for column, cell in cells.items()
        }
        known = {column: posterior for column, posterior in found.items() if posterior is not None}
        return Comparison(quantity, known, smallest_margin)

    return [
        tuple(_level_verdict(row, compare(number, row, table)) for row in table.rows)
        for number, table in enumerate(tables)
    ]


def _level_verdict(level: str, comparison: Comparison) -> LevelVerdict:
    ranked, posteriors = comparison.ranked, comparison.posteriors
    if not ranked:
        return LevelVerdict(level, ())
    only_one = len(ranked) == 1
    return LevelVerdict(
        level=level,
        leaders=comparison.leaders,
        best=ranked[0],
        margin=None if only_one else relative_margin(posteriors[ranked[0]].value, posteriors[ranked[1]].value),
        only_one=only_one,
        relation=comparison.lead,
        error_probability=0.0 if only_one else comparison.error_probability,
        one_node=comparison.one_node,
        smallest_margin=comparison.margin,
    )


def level_ranges(verdicts: Sequence[LevelVerdict]) -> tuple[LevelRange, ...]:
    """Returns the levels with neighbours of the same verdict joined."""
    groups = groupby(verdicts, key=lambda each: (_named_leaders(each), each.only_one, each.relation))
    return tuple(
        LevelRange(leaders, tuple(group), only_one, relation) for (leaders, only_one, relation), group in groups
    )


def _named_leaders(verdict: LevelVerdict) -> tuple[str, ...]:
    """Returns the classes that a text names: the one that is perhaps ahead, else all leaders."""
    return (verdict.best,) if verdict.relation is Relation.AHEAD else verdict.leaders


def expected_errors(verdicts: Iterable[LevelVerdict]) -> tuple[int, float]:
    """Returns how many levels name a leader, and an upper bound of how many of these are expected to be wrong.

    The method is that of Gelman, Hill and Yajima, Journal of Research on Educational Effectiveness 5, 2012.
    """
    named = [
        each.error_probability
        for each in verdicts
        if each.is_comparison and each.relation in {Relation.BETTER, Relation.AHEAD}
    ]
    return len(named), sum(named)


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
