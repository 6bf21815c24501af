"""Where, along a factor of numbers, another class comes ahead."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log, sqrt

from tierbench.advice.estimate import means, satterthwaite
from tierbench.advice.matrix import Table
from tierbench.advice.words import Standing
from tierbench.results.levels import level_in_words, number_of_level, show_number
from tierbench.results.statistics import CONFIDENCE, student_quantile


@dataclass(frozen=True)
class Crossover:
    """`below` is ahead up to the level `lower`, `above` from the level `upper` on; at `point` they are even.

    `low` and `high` are the ends of the point's 95 % interval. All three are in the unit of the factor's levels, and
    None where a mean is 0, which has no ratio to another.
    """

    factor: str
    held: Mapping[str, str]
    below: str
    above: str
    lower: str
    upper: str
    point: float | None
    low: float | None
    high: float | None

    def __str__(self) -> str:
        """The crossover in a sentence."""
        first, last = level_in_words(self.factor, self.lower), level_in_words(self.factor, self.upper)
        sentence = f"Between {first} and {last} {self.above} comes ahead of {self.below}"
        if self.point is None or self.low is None or self.high is None:
            return f"{sentence}."
        point, low, high = (show_number(self.factor, value, self.lower) for value in (self.point, self.low, self.high))
        return f"{sentence}, at about {point} (95 % interval {low} to {high})."


@dataclass(frozen=True)
class Ratio:
    """The logarithm of the ratio of two means at the logarithm of a level, and its variance by the delta method."""

    at: float
    value: float
    variance: float
    degrees: float


def crossovers(table: Table, quantity: str, standings: Sequence[Standing]) -> tuple[Crossover, ...]:
    """Every change of the sole leader between levels at which it is shown who that is.

    Levels in between at which classes are tied belong to the crossover. `standings` are those of the table.
    """
    numbers = [number_of_level(level) for level in table.rows]
    if not all(numbers):
        return ()
    decided = [item for item in standings if len(item.leaders) == 1 and not item.alone]
    return tuple(
        _crossover(table, quantity, before, after)
        for before, after in pairwise(decided)
        if before.leaders != after.leaders
    )


def _crossover(table: Table, quantity: str, before: Standing, after: Standing) -> Crossover:
    below, above = before.leaders[0], after.leaders[0]
    rows = table.rows[table.rows.index(before.level) : table.rows.index(after.level) + 1]
    point, low, high = even(list(_ratios(table, rows, quantity, below, above)))
    return Crossover(table.factor, table.held, below, above, before.level, after.level, point, low, high)


def even(ratios: Sequence[Ratio]) -> tuple[float | None, float | None, float | None]:
    """Where the ratio is 1, interpolated between neighbouring levels, and the interval; of several, the middle one."""
    steps = list(pairwise(ratios))
    turns = [(a, b) for a, b in steps if (a.value > 0) != (b.value > 0)]
    if not turns:
        return None, None, None
    a, b = turns[len(turns) // 2]
    point = a.at + (b.at - a.at) * a.value / (a.value - b.value)
    t = student_quantile((1 + CONFIDENCE) / 2, min(ratio.degrees for ratio in ratios))
    places = [point, *(place for a, b in steps for place in _uncertain(a, b, t))]
    return exp(point), exp(min(places)), exp(max(places))


def _ratios(table: Table, rows: Sequence[str], quantity: str, first: str, second: str) -> Iterator[Ratio]:
    for row in rows:
        found, number = means(table, row, quantity), number_of_level(row)
        one, other = found.get(first), found.get(second)
        if not number or one is None or other is None or min(one.mean, other.mean) <= 0:
            continue
        parts = [((item.error or 0) / item.mean) ** 2 for item in (one, other)]
        degrees = satterthwaite(list(zip(parts, (one.degrees, other.degrees), strict=True)))
        yield Ratio(log(number), log(one.mean / other.mean), sum(parts), degrees)


def _uncertain(a: Ratio, b: Ratio, t: float) -> Iterator[float]:
    """The ends of where between two levels the interpolated ratio does not differ from 1.

    Fieller's theorem (Journal of the Royal Statistical Society B 16, 1954): with u from 0 to 1 between the levels,
    (a + u(b - a))² <= t² ((1 - u)² var(a) + u² var(b)).
    """
    step = b.value - a.value
    square = step**2 - t**2 * (a.variance + b.variance)
    linear = 2 * a.value * step + 2 * t**2 * a.variance
    constant = a.value**2 - t**2 * a.variance
    inner = [u for u in _roots(square, linear, constant) if 0 < u < 1]
    for start, end in pairwise(sorted([0.0, *inner, 1.0])):
        middle = (start + end) / 2
        if square * middle**2 + linear * middle + constant <= 0:
            yield from (a.at + u * (b.at - a.at) for u in (start, end))


def _roots(square: float, linear: float, constant: float) -> tuple[float, ...]:
    if not square:
        return (-constant / linear,) if linear else ()
    inside = linear**2 - 4 * square * constant
    return tuple((-linear + sign * sqrt(inside)) / (2 * square) for sign in (-1, 1)) if inside >= 0 else ()
