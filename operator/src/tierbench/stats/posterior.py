"""Posterior distributions of a logarithm, the relation of two quantities, and the prospects of a choice among several.

The quantities are costs, so less is better. A posterior is a mixture of t distributions.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from math import expm1, inf, log, log1p, prod, sinh, sqrt
from typing import Final, NamedTuple, Protocol

from tierbench.stats.distributions import TAIL
from tierbench.stats.special import student_cdf

_BINS: Final = 24
_BISECTIONS: Final = 40  # to a share of 1e-11 of the deviation
_POINTS: Final = 161
_REACH: Final = 5.0


class Distribution(Protocol):
    """The distribution of a real number."""

    @property
    def centre(self) -> float:
        """The mean."""

    @property
    def deviation(self) -> float:
        """The standard deviation, or an approximation of it."""

    def cdf(self, x: float) -> float:
        """Returns the probability of at most `x`."""

    def quantile(self, probability: float) -> float:
        """Returns the value that is not exceeded with this probability, by bisection around the centre."""
        reach = 4 * self.deviation
        while self.cdf(self.centre - reach) > probability or self.cdf(self.centre + reach) < probability:
            reach *= 2
        low, high = self.centre - reach, self.centre + reach
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if self.cdf(middle) < probability:
                low = middle
            else:
                high = middle
        return (low + high) / 2


class Component(NamedTuple):
    """One t distribution of a mixture.

    `variance` is a sum of variances. `uncertainty` is the sum of q²/df over those terms q of it that were estimated
    with df degrees of freedom. The degrees of freedom of the whole follow from it (Satterthwaite, Biometrics Bulletin
    2, 1946).
    """

    weight: float
    centre: float
    variance: float
    uncertainty: float

    @property
    def degrees(self) -> float:
        """The degrees of freedom; infinite if nothing was estimated."""
        return self.variance**2 / self.uncertainty if self.uncertainty else inf


@dataclass(frozen=True)
class Mixture(Distribution):
    """A mixture of t distributions. The weights of its components add up to 1."""

    components: tuple[Component, ...]

    @cached_property
    def centre(self) -> float:
        """The mean."""
        return sum(one.weight * one.centre for one in self.components)

    @cached_property
    def deviation(self) -> float:
        """The standard deviation, with each component taken as normal."""
        centre = self.centre
        return sqrt(sum(one.weight * (one.variance + (one.centre - centre) ** 2) for one in self.components))

    @cached_property
    def _kernels(self) -> tuple[tuple[float, float, float, float], ...]:
        return tuple((one.weight, one.centre, sqrt(one.variance), one.degrees) for one in self.components)

    def cdf(self, x: float) -> float:
        """Returns the probability of at most `x`."""
        return sum(
            [
                weight * student_cdf((x - centre) / deviation, degrees)
                for weight, centre, deviation, degrees in self._kernels
            ]
        )

    def minus(self, other: "Mixture") -> "Mixture":
        """Returns the distribution of the difference, if the two are independent."""
        return condense(
            Component(
                one.weight * two.weight,
                one.centre - two.centre,
                one.variance + two.variance,
                one.uncertainty + two.uncertainty,
            )
            for one in self.components
            for two in other.components
        )


def student(centre: float, variance: float, uncertainty: float) -> Mixture:
    """Returns a single t distribution; `Component` explains the arguments."""
    return Mixture((Component(1.0, centre, variance, uncertainty),))


def condense(components: Iterable[Component], bins: int = _BINS) -> Mixture:
    """Returns a mixture of at most `bins` components, each of which replaces those of about the same variance.

    The bins are geometric. With variances within four powers of ten each bin is at most 1.5 times as wide as the one
    before.
    """
    every = list(components)
    variances = [one.variance for one in every]
    low, high = min(variances), max(variances)
    scale = (bins - 1e-9) / log(high / low) if high > low else 0.0
    groups: dict[int, list[Component]] = {}
    for one, variance in zip(every, variances, strict=True):
        groups.setdefault(int(scale * log(variance / low)), []).append(one)
    return Mixture(tuple(_moments(group) for group in groups.values()))


def _moments(group: Sequence[Component]) -> Component:
    """Returns the component with the mean and the variance of the group."""
    if len(group) == 1:
        return group[0]
    total = centre = variance = uncertainty = square = 0.0
    for weight, own_centre, own_variance, own_uncertainty in group:
        total += weight
        centre += weight * own_centre
        square += weight * own_centre**2
        variance += weight * own_variance
        uncertainty += weight * own_uncertainty
    centre /= total
    between = max(square / total - centre**2, 0.0)
    return Component(total, centre, variance / total + between, uncertainty / total)


class Relation(StrEnum):
    """How the first of two costs relates to the second."""

    BETTER = "better"
    WORSE = "worse"
    EQUAL = "equal"
    AHEAD = "ahead"
    """The first is better, but perhaps by less than the margin."""
    BEHIND = "behind"
    """The first is worse, but perhaps by less than the margin."""
    INCONCLUSIVE = "not known"

    @property
    def inverse(self) -> "Relation":
        """The relation of the second to the first."""
        return _INVERSE.get(self, self)


_INVERSE: Final = {
    Relation.BETTER: Relation.WORSE,
    Relation.WORSE: Relation.BETTER,
    Relation.AHEAD: Relation.BEHIND,
    Relation.BEHIND: Relation.AHEAD,
}


def relation(difference: Distribution, margin: float, *, may_be_equal: bool = True) -> Relation:
    """Returns the relation of two costs from the difference of their logarithms, first minus second.

    They are equal if the 95% interval lies within ± log(1 + margin) (Kruschke, Advances in Methods and Practices in
    Psychological Science 1, 2018). The first is better if the interval excludes 0 and the centre reaches the margin.
    """
    reach = log1p(margin)
    within = difference.cdf(-reach) <= TAIL and difference.cdf(reach) >= 1 - TAIL
    if within and may_be_equal and margin:
        return Relation.EQUAL
    below = difference.cdf(0.0)
    beyond = abs(difference.centre) >= reach
    if below >= 1 - TAIL:
        return Relation.BETTER if beyond else Relation.AHEAD
    if below <= TAIL:
        return Relation.WORSE if beyond else Relation.BEHIND
    return Relation.INCONCLUSIVE


@dataclass(frozen=True)
class Prospect:
    """What to expect from the choice of one alternative.

    `best` is the probability that no other alternative costs less. `loss` is the share by which the alternative is
    expected to cost more than the best one, as a geometric mean.
    """

    best: float
    loss: float


def prospects(posteriors: Mapping[str, Distribution]) -> dict[str, Prospect]:
    """Returns the prospect of each of several independent alternatives, from the posteriors of their logarithmic costs.

    With the distribution functions F, alternative c is best with the probability ∫ Π(1 - F_other) dF_c. The least cost
    of the others has the distribution G = 1 - Π(1 - F_other). The expected distance of c from it is ∫ G (1 - F_c) dx.
    The integrals are trapezoidal sums.
    """
    points = sorted(point for posterior in posteriors.values() for point in _grid(posterior))
    above = {name: _survival(posterior, points) for name, posterior in posteriors.items()}
    products = [(prod(filter(None, values)), values.count(0.0)) for values in zip(*above.values(), strict=True)]
    return {name: _prospect(own, products, points) for name, own in above.items()}


def _grid(posterior: Distribution) -> list[float]:
    """Returns points that are dense around the centre and reach 74 standard deviations to either side."""
    steps = (_REACH * (2 * number / (_POINTS - 1) - 1) for number in range(_POINTS))
    return [posterior.centre + posterior.deviation * sinh(step) for step in steps]


def _survival(posterior: Distribution, points: Sequence[float]) -> list[float]:
    """Returns 1 - F at ascending points. Most points belong to other alternatives, where F is flat."""
    most = posterior.cdf(points[-1])
    first = bisect_right(points, 0.0, key=posterior.cdf)
    last = bisect_left(points, most, lo=first, key=posterior.cdf)
    return [1.0] * first + [1 - posterior.cdf(x) for x in points[first:last]] + [1 - most] * (len(points) - last)


def _prospect(own: Sequence[float], products: Sequence[tuple[float, int]], points: Sequence[float]) -> Prospect:
    """Integrates one alternative.

    `own` is 1 - F of the alternative. `products` has two values per point: the product of 1 - F over the alternatives
    where it is not 0, and the number of the others.
    """
    others = [
        0.0 if zeros > (one == 0) else product / (one or 1.0)
        for one, (product, zeros) in zip(own, products, strict=True)
    ]
    best = loss = 0.0
    for (left, right), (start, end), (low, high) in zip(pairwise(own), pairwise(others), pairwise(points), strict=True):
        best += (left - right) * (start + end) / 2
        loss += (high - low) * ((1 - start) * left + (1 - end) * right) / 2
    return Prospect(best, expm1(loss))
