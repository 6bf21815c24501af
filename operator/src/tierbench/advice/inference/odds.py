"""How likely each of several classes is best, and what it costs to follow it."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import expm1, prod, sinh
from typing import Final, Protocol

from tierbench.advice.inference.verdict import Distribution

_POINTS: Final = 161
_REACH: Final = 5.0


class Belief(Distribution, Protocol):
    """What is known of the logarithm of a class's cost."""

    @property
    def deviation(self) -> float:
        """Its standard deviation, or about that."""

    def quantile(self, probability: float) -> float:
        """The value that is not exceeded with this probability."""


@dataclass(frozen=True)
class Odds:
    """`best` is the probability that no other class costs less; `loss` the share by which a class is expected to cost
    more than the best one, a geometric mean.
    """

    best: float
    loss: float


def odds(beliefs: Mapping[str, Belief]) -> dict[str, Odds]:
    """Of classes that are independent, from their distribution functions F.

    The class c is best with ∫ Π(1 - F_other) dF_c. With G = 1 - Π(1 - F_other), that of the least of the others, it is
    expected to lie ∫ G (1 - F_c) dx above that.
    """
    points = sorted(point for belief in beliefs.values() for point in _around(belief))
    above = {name: [1 - belief.cdf(x) for x in points] for name, belief in beliefs.items()}
    return {name: _of(name, above, points) for name in beliefs}


def _around(belief: Belief) -> list[float]:
    """Points that are dense about its centre, and reach 74 standard deviations to either side."""
    steps = (_REACH * (2 * number / (_POINTS - 1) - 1) for number in range(_POINTS))
    return [belief.centre + belief.deviation * sinh(step) for step in steps]


def _of(name: str, above: Mapping[str, list[float]], points: list[float]) -> Odds:
    mine = above[name]
    others = [prod(values) for values in zip(*(of for other, of in above.items() if other != name), strict=True)]
    best = loss = 0.0
    for (left, right), (start, end), (low, high) in zip(
        pairwise(mine), pairwise(others), pairwise(points), strict=True
    ):
        best += (left - right) * (start + end) / 2
        loss += (high - low) * ((1 - start) * left + (1 - end) * right) / 2
    return Odds(best, expm1(loss))
