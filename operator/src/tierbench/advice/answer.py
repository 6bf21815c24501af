"""The answer of a run in words, whatever it compares. Pure."""

from typing import Final

from tierbench.advice.alternatives import compared
from tierbench.advice.costs import costs_of_run, sentences
from tierbench.advice.inference.verdict import Outcome
from tierbench.advice.matrix import RunResults
from tierbench.advice.words import Standing, answer_of_run, standings_of_run
from tierbench.kinds.registry import kind_of

EQUAL: Final = "equal"
DEPENDS: Final = "depends"
INCONCLUSIVE: Final = "inconclusive"
LONGEST_BEST: Final = 32

_HANDFUL: Final = 3


def ranks(run: RunResults) -> bool:
    """Whether there is more than one class or setting, so that one can be ahead."""
    return len(compared(run).classes) > 1


def own_answers(run: RunResults) -> tuple[str, ...]:
    """What a run answers beside who is ahead, by its kind of benchmark."""
    return kind_of(run.benchmark.kind).report.answers(run)


def answer(run: RunResults) -> tuple[str, ...]:
    """Who is ahead where; of one class and setting, what its kind of benchmark answers beside that, or else what the
    factors cost."""
    own = own_answers(run)
    if ranks(run):
        return (answer_of_run(compared(run)), *own)
    return own or tuple(sentences(costs_of_run(run))[:_HANDFUL]) or (answer_of_run(run),)


def best(run: RunResults) -> str:
    """The answer in a word or two: the best alternative, or why there is none; nothing where only one was measured.

    The best one is shown to be better at one level at least, and leads at all others. It depends where that holds for
    some levels only.
    """
    if not ranks(run):
        return ""
    every = [standing for found in standings_of_run(compared(run)) for standing in found]
    better = {each.best for each in every if _is_compared(each) and each.outcome is Outcome.BETTER}
    if not better:
        equal = all(_is_compared(each) and each.outcome is Outcome.EQUAL for each in every)
        return EQUAL if every and equal else INCONCLUSIVE
    name = min(better)
    if not all(_leads(name, each) for each in every):
        return DEPENDS
    return name if len(name) <= LONGEST_BEST else f"{name[: LONGEST_BEST - 1]}…"


def _is_compared(standing: Standing) -> bool:
    return bool(standing.leaders) and not standing.alone


def _leads(name: str, standing: Standing) -> bool:
    """Whether an alternative is ahead at a level, or equal to the others that are."""
    if standing.outcome is Outcome.EQUAL:
        return _is_compared(standing) and name in standing.leaders
    return _is_compared(standing) and standing.outcome is not Outcome.UNKNOWN and name == standing.best
