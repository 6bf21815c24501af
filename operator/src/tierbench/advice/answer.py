"""The answer of a run in words, whatever it compares. Pure."""

from typing import Final

from tierbench.advice.alternatives import compared
from tierbench.advice.costs import costs_of_run, sentences
from tierbench.advice.matrix import RunResults
from tierbench.advice.together import said_at_once
from tierbench.advice.words import answer_of_run

_HANDFUL: Final = 3


def ranks(run: RunResults) -> bool:
    """Whether there is more than one class or setting, so that one can be ahead."""
    return len(compared(run).classes) > 1


def answer(run: RunResults) -> tuple[str, ...]:
    """Who is ahead where; of one class and setting, what clients have at once of what they have alone, or else what the
    factors cost."""
    at_once = said_at_once(run)
    if ranks(run):
        return (answer_of_run(compared(run)), *at_once)
    return at_once or tuple(sentences(costs_of_run(run))[:_HANDFUL]) or (answer_of_run(run),)
