"""What is said of two classes, with a smallest margin that is worth having."""

from enum import StrEnum
from math import log1p
from typing import Final, Protocol

TAIL: Final = 0.025
"""What the 95 % interval leaves out on either side."""


class Outcome(StrEnum):
    """The first of two against the second."""

    BETTER = "better"
    WORSE = "worse"
    EQUAL = "equal"
    AHEAD = "ahead"
    """Better, but perhaps by less than the margin."""
    BEHIND = "behind"
    UNKNOWN = "unknown"

    @property
    def turned(self) -> "Outcome":
        """The second against the first."""
        return _TURNED.get(self, self)


_TURNED: Final = {
    Outcome.BETTER: Outcome.WORSE,
    Outcome.WORSE: Outcome.BETTER,
    Outcome.AHEAD: Outcome.BEHIND,
    Outcome.BEHIND: Outcome.AHEAD,
}


class Distribution(Protocol):
    """What is known of a number."""

    @property
    def centre(self) -> float:
        """Its mean."""

    def cdf(self, x: float) -> float:
        """The probability of at most `x`."""


def judge(difference: Distribution, margin: float, *, may_be_equal: bool = True) -> Outcome:
    """The outcome from the difference of the logarithms of two costs, first minus second.

    Equal: its 95 % interval lies within ± log(1 + margin) (Kruschke, AMPPS 1, 2018). Better: the interval excludes 0
    and its centre reaches the margin.
    """
    reach = log1p(margin)
    within = difference.cdf(-reach) <= TAIL and difference.cdf(reach) >= 1 - TAIL
    if within and may_be_equal and margin:
        return Outcome.EQUAL
    below = difference.cdf(0.0)
    beyond = abs(difference.centre) >= reach
    if below >= 1 - TAIL:
        return Outcome.BETTER if beyond else Outcome.AHEAD
    if below <= TAIL:
        return Outcome.WORSE if beyond else Outcome.BEHIND
    return Outcome.UNKNOWN
