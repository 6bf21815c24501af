"""How often something happens: counts by exposure, as retries a trial."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, log, sqrt
from typing import Final

from tierbench.advice.inference.mixture import quantile
from tierbench.advice.inference.special import digamma, trigamma
from tierbench.results.rates import gamma_distribution
from tierbench.results.statistics import incomplete_beta

_JEFFREYS: Final = 0.5


@dataclass(frozen=True)
class Count:
    """`events` in `exposure` (trials)."""

    events: float
    exposure: float


@dataclass(frozen=True)
class Rate:
    """What is known of the logarithm of a rate: that of a gamma variable of this shape, divided by the exposure."""

    shape: float
    exposure: float

    @cached_property
    def centre(self) -> float:
        """Its mean."""
        return digamma(self.shape) - log(self.exposure)

    @cached_property
    def deviation(self) -> float:
        """Its standard deviation."""
        return sqrt(trigamma(self.shape))

    def cdf(self, x: float) -> float:
        """The probability of at most `x`."""
        return gamma_distribution(self.exposure * exp(x), self.shape)

    def quantile(self, probability: float) -> float:
        """The value that is not exceeded with this probability."""
        return quantile(self.cdf, probability, self.centre, self.deviation)

    def minus(self, other: "Rate") -> "RateRatio":
        """The logarithm of the ratio of two."""
        return RateRatio(self, other)


@dataclass(frozen=True)
class RateRatio:
    """The difference of two: with X = λ₁E₁ / (λ₁E₁ + λ₂E₂) a beta variable of their shapes."""

    first: Rate
    second: Rate

    @property
    def centre(self) -> float:
        """Its mean."""
        return self.first.centre - self.second.centre

    @property
    def deviation(self) -> float:
        """Its standard deviation."""
        return sqrt(self.first.deviation**2 + self.second.deviation**2)

    def cdf(self, x: float) -> float:
        """The probability of at most `x`."""
        odds = exp(x) * self.first.exposure / self.second.exposure
        return incomplete_beta(odds / (1 + odds), self.first.shape, self.second.shape)

    def quantile(self, probability: float) -> float:
        """The value that is not exceeded with this probability."""
        return quantile(self.cdf, probability, self.centre, self.deviation)


def rate(levels: Sequence[tuple[float, Sequence[Count]]]) -> Rate:
    """The rate of a class: Σ w λ over levels of these weights, each with a count a node.

    Jeffreys' prior: gamma(k + 1/2) / E (Brown, Cai and DasGupta, Statistical Science 16, 2001). A weighted sum has the
    gamma distribution of its mean and variance (Fay and Feuer, Statistics in Medicine 16, 1997). What nodes differ more
    than Poisson counts do widens it by their Pearson χ² by its degrees of freedom.
    """
    terms = [(weight / sum(c.exposure for c in counts), sum(c.events for c in counts)) for weight, counts in levels]
    mean, square = sum(w * k for w, k in terms), sum(w * w * k for w, k in terms)
    if mean:
        events, exposure = mean * mean / square, mean / square
    else:
        events, exposure = 0.0, len(terms) / sum(w for w, _ in terms)
    wider = _overdispersion(levels)
    return Rate(events / wider + _JEFFREYS, exposure / wider)


def _overdispersion(levels: Sequence[tuple[float, Sequence[Count]]]) -> float:
    chi, degrees = 0.0, 0
    for _, counts in levels:
        common = sum(c.events for c in counts) / sum(c.exposure for c in counts)
        degrees += len(counts) - 1
        if common:
            chi += sum((c.events - c.exposure * common) ** 2 / (c.exposure * common) for c in counts)
    return max(1.0, chi / degrees) if degrees else 1.0
