"""Where between two sizes to measure next, to know more closely where another class comes ahead."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10, sqrt
from typing import Final

from tierbench.advice.crossover import Crossover, crossovers
from tierbench.advice.estimate import quantities
from tierbench.advice.matrix import RunResults, Table
from tierbench.advice.words import standings
from tierbench.api.quantity import parse_size
from tierbench.api.result import ResultPhase
from tierbench.results.levels import number_of_level

_DIGITS: Final = 3
_SMALLEST: Final = 10 ** (_DIGITS - 1)
_BINARY: Final = ("Ti", "Gi", "Mi", "Ki", "")
_DECIMAL: Final = ("T", "G", "M", "k", "")


@dataclass(frozen=True)
class Middle:
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


def middles(run: RunResults, factor: str, within: float) -> tuple[Middle, ...]:
    """The middle of every crossover along the factor, whose levels are sizes, with an upper end that is more than the
    share `within` beyond the lower.

    None of a bracket at which a case of any class failed, since what is ahead there is what did not; and none that is
    measured: if it does not tell who is ahead, no other level is guessed to.
    """
    tables = run.along(factor)
    found = standings(tables, next(iter(quantities(run)), ""))
    return tuple(
        middle
        for table, standing in zip(tables, found, strict=True)
        for crossover in crossovers(table, standing)
        for middle in _middle(table, crossover, within)
    )


def _middle(table: Table, crossover: Crossover, within: float) -> Iterator[Middle]:
    level = middle_of(crossover.lower, crossover.upper, within)
    known = {number_of_level(row) for row in table.rows}
    if level is None or number_of_level(level) in known or _failed(table, crossover):
        return
    one = table.cell(crossover.lower, crossover.below).results[0].spec
    yield Middle(crossover, one.client.node_class, level, {**one.levels, table.factor: level})


def _failed(table: Table, crossover: Crossover) -> bool:
    first, last = table.rows.index(crossover.lower), table.rows.index(crossover.upper)
    cells = (table.cell(row, column) for row in table.rows[first : last + 1] for column in table.columns)
    return any(result.status.phase is ResultPhase.FAILED for cell in cells for result in cell.results)


def middle_of(lower: str, upper: str, within: float) -> str | None:
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
