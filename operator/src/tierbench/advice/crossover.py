"""Between which levels of a factor of numbers another class comes ahead."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tierbench.advice.inference.verdict import Outcome
from tierbench.advice.matrix import Table
from tierbench.advice.words import Standing
from tierbench.results.levels import level_in_words, number_of_level


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
        first, last = level_in_words(self.factor, self.lower), level_in_words(self.factor, self.upper)
        return f"Between {first} and {last} {self.above} comes ahead of {self.below}."


def crossovers(table: Table, standings: Sequence[Standing]) -> tuple[Crossover, ...]:
    """Every change of the sole leader between levels at which it is shown who that is.

    Levels in between at which that is not shown belong to the crossover. `standings` are those of the table.
    """
    if not all(number_of_level(level) for level in table.rows):
        return ()
    decided = [item for item in standings if item.outcome is Outcome.BETTER and not item.alone]
    return tuple(
        Crossover(
            table.factor,
            table.held,
            before.best,
            after.best,
            before.level,
            after.level,
            max(0.0, 1 - before.doubt - after.doubt),
        )
        for before, after in pairwise(decided)
        if before.best != after.best
    )
