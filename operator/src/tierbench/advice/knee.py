"""From which level of a factor of numbers on nothing more is gained. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from tierbench.advice.classes import Contest
from tierbench.advice.effect_words import sentence
from tierbench.advice.effects import by_level, depends_on
from tierbench.advice.estimate import smaller_is_better
from tierbench.advice.factorial import Factorial
from tierbench.advice.inference.verdict import Outcome
from tierbench.advice.words import place_in_words
from tierbench.api.advice_answer import KneeCourse
from tierbench.results.levels import is_size
from tierbench.results.units import in_sentence, title

_FEWEST: Final = 3
_LESS: Final = frozenset({Outcome.WORSE, Outcome.BEHIND})


@dataclass(frozen=True)
class Turn:
    """The knee at one level of what the factor's effects depend on: no later level is shown to be better than this one
    by the margin or more.
    """

    level: str
    knee: str
    course: KneeCourse


@dataclass(frozen=True)
class Knee:
    """Of one factor, by the levels of the factor `by` if there is one; `every` are all levels of that."""

    factor: str
    quantity: str
    by: str
    every: tuple[str, ...]
    turns: tuple[Turn, ...]
    one_node: bool

    def __str__(self) -> str:
        """The knee in a sentence."""
        groups = groupby(self.turns, key=lambda turn: (turn.knee, turn.course))
        clauses = [f"{self._said(*said)}{self._place([turn.level for turn in of])}" for said, of in groups]
        return sentence(f"{'; '.join(clauses)}.", one_node=self.one_node)

    def _place(self, levels: Sequence[str]) -> str:
        said_of_all = len(levels) == len(self.turns)
        return "" if said_of_all else f" {place_in_words(self.by, self.every, levels)}"

    def _said(self, knee: str, course: KneeCourse) -> str:
        noun = in_sentence(title(self.quantity))
        return {
            KneeCourse.GROWS: f"{noun} grows to the last level measured, {knee}",
            KneeCourse.FALLS: f"{noun} is highest with {knee}, and falls beyond",
            KneeCourse.LEVEL: f"from {knee} on nothing more of {noun} is gained",
            KneeCourse.NOT_KNOWN: f"beyond {knee} no more of {noun} is shown to be gained",
        }[course]


def knees(every: Factorial, factors: Iterable[str], margin: float) -> Iterator[Knee]:
    """Of each of these factors that has at least three numbers, where the quantity is a rate."""
    if smaller_is_better(every.quantity):
        return
    for factor in factors:
        layout = every.laid_out(factor)
        names = tuple(layout.settings)
        if not layout.numbers or len(names) < _FEWEST or (is_size(factor) and not _counts_bytes(every.quantity)):
            continue
        by = depends_on(layout, layout.pairs, margin)
        levels = every.levels.get(by, ("",))
        found = {
            level: contest
            for level, places in by_level(layout.shared(names), by, levels).items()
            if len((contest := layout.contest(names, places, margin)).known) == len(names)
        }
        turns = tuple(_turn(level, contest, names) for level, contest in found.items())
        if turns:
            yield Knee(factor, every.quantity, by, levels, turns, any(each.one_node for each in found.values()))


def _counts_bytes(quantity: str) -> bool:
    """Whether what carries more may be faster for it, as it is not in messages."""
    return quantity.endswith(("BytesPerSecond", "BitsPerSecond"))


def _turn(level: str, contest: Contest, names: Sequence[str]) -> Turn:
    for number, name in enumerate(names):
        beyond = names[number + 1 :]
        if not any(contest.beats(other, name) for other in beyond):
            return Turn(level, name, _course(contest, name, beyond))
    raise AssertionError("there is nothing beyond the last level")


def _course(contest: Contest, knee: str, beyond: Sequence[str]) -> KneeCourse:
    if not beyond:
        return KneeCourse.GROWS
    if all(contest.outcome(other, knee) in _LESS for other in beyond):
        return KneeCourse.FALLS
    most = max(contest.ratio(other, knee).high for other in beyond)
    sure = not contest.one_node and not contest.known[knee].cut_short
    return KneeCourse.LEVEL if sure and most <= 1 + contest.margin else KneeCourse.NOT_KNOWN
