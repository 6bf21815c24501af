"""Rates of events, such as retries per trial: Poisson counts with Jeffreys' prior."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tierbench.stats.posterior import Distribution
from tierbench.stats.samples import TAIL
from tierbench.stats.special import digamma, gamma_cdf, gamma_quantile, incomplete_beta, trigamma

_JEFFREYS: Final = 0.5
_FEWEST_FOR_DISPERSION: Final = 2


def rate_interval(events: float, exposure: float, dispersion: float = 1.0) -> tuple[float, float]:
    """Returns the 95% interval of the number of events per unit of exposure. It begins at 0 if there is no event.

    The ends are quantiles of Gamma(events + 1/2) / exposure. Events in bursts carry less information: both are divided
    by the `dispersion`, which is the variance divided by the mean.

    Source: Brown, Cai and DasGupta, Journal of Statistical Planning and Inference 107, 2003.

    Raises:
        ValueError: the exposure or the dispersion is not positive.
    """
    if exposure <= 0 or dispersion <= 0:
        raise ValueError("a rate needs a positive exposure and dispersion")
    shape, scale = events / dispersion + _JEFFREYS, dispersion / exposure
    low = gamma_quantile(TAIL, shape) * scale if events else 0.0
    return low, gamma_quantile(1 - TAIL, shape) * scale


def dispersion(counts: Sequence[float]) -> float:
    """Returns the variance of counts of equal exposure divided by their mean, but at least 1.

    This is Pearson's chi-squared divided by its degrees of freedom.
    """
    mean = math.fsum(counts) / len(counts) if counts else 0.0
    if len(counts) < _FEWEST_FOR_DISPERSION or not mean:
        return 1.0
    return max(1.0, math.fsum((count - mean) ** 2 for count in counts) / mean / (len(counts) - 1))


@dataclass(frozen=True)
class EventCount:
    """A number of events in an exposure, such as retries in a number of trials."""

    events: float
    exposure: float


def equal_rates_p(first: EventCount, second: EventCount) -> float:
    """Returns the two-sided p-value of two counts of events of the same rate: of all events, the first is binomial."""
    if not first.exposure or not second.exposure or not first.events + second.events:
        return 1.0
    share = first.exposure / (first.exposure + second.exposure)
    at_least = incomplete_beta(share, first.events, second.events + 1) if first.events else 1.0
    at_most = 1 - incomplete_beta(share, first.events + 1, second.events) if second.events else 1.0
    return min(1.0, 2 * min(at_least, at_most))


@dataclass(frozen=True)
class LogRate(Distribution):
    """The posterior of the logarithm of a rate: a gamma variable of this shape, divided by the exposure."""

    shape: float
    exposure: float

    @cached_property
    def centre(self) -> float:
        """The mean."""
        return digamma(self.shape) - math.log(self.exposure)

    @cached_property
    def deviation(self) -> float:
        """The standard deviation."""
        return math.sqrt(trigamma(self.shape))

    def cdf(self, x: float) -> float:
        """Returns the probability of at most `x`."""
        return gamma_cdf(self.exposure * math.exp(x), self.shape)

    def minus(self, other: "LogRate") -> "LogRateRatio":
        """Returns the distribution of the logarithm of the ratio of two independent rates."""
        return LogRateRatio(self, other)


@dataclass(frozen=True)
class LogRateRatio(Distribution):
    """The distribution of the logarithm of the ratio of two rates.

    With the rates λ and the exposures E, λ₁E₁ / (λ₁E₁ + λ₂E₂) is a beta variable of the two shapes.
    """

    first: LogRate
    second: LogRate

    @property
    def centre(self) -> float:
        """The mean."""
        return self.first.centre - self.second.centre

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        return math.sqrt(self.first.deviation**2 + self.second.deviation**2)

    def cdf(self, x: float) -> float:
        """Returns the probability of at most `x`."""
        odds = math.exp(x) * self.first.exposure / self.second.exposure
        return incomplete_beta(odds / (1 + odds), self.first.shape, self.second.shape)


def pool_rates(levels: Sequence[tuple[float, Sequence[EventCount]]]) -> LogRate:
    """Returns the posterior of Σ w λ over levels, each given by its weight w and one count per node.

    A weighted sum of gamma variables has about the gamma distribution of its mean and variance (Fay and Feuer,
    Statistics in Medicine 16, 1997). If nodes differ by more than Poisson counts do, Pearson's chi-squared divided by
    its degrees of freedom widens the posterior. The prior is Jeffreys' (Brown, Cai and DasGupta, Statistical Science
    16, 2001).
    """
    terms = [(weight / sum(c.exposure for c in counts), sum(c.events for c in counts)) for weight, counts in levels]
    mean, square = sum(w * k for w, k in terms), sum(w * w * k for w, k in terms)
    if mean:
        events, exposure = mean * mean / square, mean / square
    else:
        events, exposure = 0.0, len(terms) / sum(w for w, _ in terms)
    wider = _dispersion_of_nodes(levels)
    return LogRate(events / wider + _JEFFREYS, exposure / wider)


def _dispersion_of_nodes(levels: Sequence[tuple[float, Sequence[EventCount]]]) -> float:
    chi, degrees = 0.0, 0
    for _, counts in levels:
        common = sum(c.events for c in counts) / sum(c.exposure for c in counts)
        degrees += len(counts) - 1
        if common:
            chi += sum((c.events - c.exposure * common) ** 2 / (c.exposure * common) for c in counts)
    return max(1.0, chi / degrees) if degrees else 1.0
