"""What is known of a logarithm: a mixture of t distributions, a part for each way that nodes may differ."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, log, sqrt
from typing import Final, NamedTuple

from tierbench.advice.inference.special import t_cdf

_BINS: Final = 24
_HALVINGS: Final = 40  # to a share of 1e-11 of the deviation


class Part(NamedTuple):
    """A t distribution with a weight. `unsure` is the sum of q² / df over the variances q within `variance` that were
    estimated from trials, each with df degrees of freedom; by it the whole has Satterthwaite's degrees (1946).
    """

    weight: float
    centre: float
    variance: float
    unsure: float

    @property
    def degrees(self) -> float:
        """Degrees of freedom."""
        return self.variance**2 / self.unsure if self.unsure else inf


@dataclass(frozen=True)
class Mixture:
    """Parts whose weights add up to 1."""

    parts: tuple[Part, ...]

    @cached_property
    def centre(self) -> float:
        """The mean of it."""
        return sum(part.weight * part.centre for part in self.parts)

    @cached_property
    def deviation(self) -> float:
        """The standard deviation, that of a normal taken for each part."""
        centre = self.centre
        return sqrt(sum(part.weight * (part.variance + (part.centre - centre) ** 2) for part in self.parts))

    @cached_property
    def _kernels(self) -> tuple[tuple[float, float, float, float], ...]:
        return tuple((part.weight, part.centre, sqrt(part.variance), part.degrees) for part in self.parts)

    def cdf(self, x: float) -> float:
        """The probability of at most `x`."""
        return sum([weight * t_cdf((x - centre) / sd, degrees) for weight, centre, sd, degrees in self._kernels])

    def quantile(self, probability: float) -> float:
        """The value that is not exceeded with this probability, by bisection."""
        return quantile(self.cdf, probability, self.centre, self.deviation)

    def minus(self, other: "Mixture") -> "Mixture":
        """The difference of two that are independent."""
        return gathered(
            Part(one.weight * two.weight, one.centre - two.centre, one.variance + two.variance, one.unsure + two.unsure)
            for one in self.parts
            for two in other.parts
        )


def single(centre: float, variance: float, unsure: float) -> Mixture:
    """One t distribution."""
    return Mixture((Part(1.0, centre, variance, unsure),))


def gathered(parts: Iterable[Part], bins: int = _BINS) -> Mixture:
    """Parts of about the same variance taken together, so that few are left: each bin is at most 1.5 times as wide as
    the one before where the variances lie within four powers of ten.
    """
    every = list(parts)
    variances = [part.variance for part in every]
    low, high = min(variances), max(variances)
    scale = (bins - 1e-9) / log(high / low) if high > low else 0.0
    groups: dict[int, list[Part]] = {}
    for part, variance in zip(every, variances, strict=True):
        groups.setdefault(int(scale * log(variance / low)), []).append(part)
    return Mixture(tuple(_one(group) for group in groups.values()))


def _one(group: Sequence[Part]) -> Part:
    if len(group) == 1:
        return group[0]
    total = centre = variance = unsure = square = 0.0
    for weight, part_centre, part_variance, part_unsure in group:
        total += weight
        centre += weight * part_centre
        square += weight * part_centre**2
        variance += weight * part_variance
        unsure += weight * part_unsure
    centre /= total
    spread = max(square / total - centre**2, 0.0)
    return Part(total, centre, variance / total + spread, unsure / total)


def quantile(cdf: Callable[[float], float], probability: float, centre: float, deviation: float) -> float:
    """Where a distribution function reaches a probability, by bisection from around `centre`."""
    reach = 4 * deviation
    while cdf(centre - reach) > probability or cdf(centre + reach) < probability:
        reach *= 2
    low, high = centre - reach, centre + reach
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if cdf(middle) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2
