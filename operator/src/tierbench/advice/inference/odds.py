"""How likely each of several classes is best, and what it costs to follow it."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
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
    above = {name: _above(belief, points) for name, belief in beliefs.items()}
    products = [(prod(filter(None, values)), values.count(0.0)) for values in zip(*above.values(), strict=True)]
    return {name: _of(mine, products, points) for name, mine in above.items()}


def _around(belief: Belief) -> list[float]:
    """Points that are dense about its centre, and reach 74 standard deviations to either side."""
    steps = (_REACH * (2 * number / (_POINTS - 1) - 1) for number in range(_POINTS))
    return [belief.centre + belief.deviation * sinh(step) for step in steps]


def _above(belief: Belief, points: Sequence[float]) -> list[float]:
    """1 - F at ascending points. Most are other classes' and lie where F is 0 or rises no more."""
    most = belief.cdf(points[-1])
    first = bisect_right(points, 0.0, key=belief.cdf)
    last = bisect_left(points, most, lo=first, key=belief.cdf)
    return [1.0] * first + [1 - belief.cdf(x) for x in points[first:last]] + [1 - most] * (len(points) - last)


def _of(mine: Sequence[float], products: Sequence[tuple[float, int]], points: Sequence[float]) -> Odds:
    """At each point `products` are that of 1 - F over the classes where it is not 0, and at how many it is."""
    others = [
        0.0 if zeros > (one == 0) else product / (one or 1.0)
        for one, (product, zeros) in zip(mine, products, strict=True)
    ]
    best = loss = 0.0
    for (left, right), (start, end), (low, high) in zip(
        pairwise(mine), pairwise(others), pairwise(points), strict=True
    ):
        best += (left - right) * (start + end) / 2
        loss += (high - low) * ((1 - start) * left + (1 - end) * right) / 2
    return Odds(best, expm1(loss))
