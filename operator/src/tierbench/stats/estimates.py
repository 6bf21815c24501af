"""Estimates of means and of rates of events, with their errors: pooled over trials and nodes, and compared.

Means are compared by Welch's t-test. A run is compared with earlier runs by how much runs differ. Days differ more than
the trials of one day, so each run is one value: the logarithm of its mean. These values are normally distributed, with
a standard deviation between runs and the error of the trials within. The prior of that deviation is half-Cauchy with
scale 0.01 (Gelman, Bayesian Analysis 1, 2006). Half of all machines vary by more than 1% from run to run, a quarter by
more than 2.4%, a tenth by more than 6%.

Events, such as the retries of trials, are Poisson counts with Jeffreys' prior.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb, exp, fsum, hypot, inf, log, sqrt
from statistics import fmean, stdev
from typing import Final, NamedTuple, TypeVar

from tierbench.stats.distributions import CONFIDENCE, TAIL, mean_interval
from tierbench.stats.hierarchy import DEVIATIONS, half_cauchy
from tierbench.stats.posterior import Component, Distribution, Mixture
from tierbench.stats.special import (
    digamma,
    gamma_cdf,
    gamma_quantile,
    incomplete_beta,
    student_cdf,
    student_quantile,
    trigamma,
)

Key = TypeVar("Key", bound=Hashable)
_PRIOR: Final = half_cauchy(DEVIATIONS, 0.01)
_JEFFREYS: Final = 0.5
_FEWEST_FOR_DISPERSION: Final = 2


@dataclass(frozen=True)
class Estimate:
    """The estimate of a mean, in the unit of the quantity.

    It is from `count` trials with the sample standard deviation `deviation`. `error` is the standard error, with
    `degrees` of freedom, from `size` independent values: nodes if there are several, else trials. Unknown values are
    None. A `count` of 0 is a published mean without its number of trials: reports show it, and no verdict uses it.
    """

    count: int
    mean: float
    deviation: float | None
    error: float | None
    degrees: float
    size: int
    nodes: int = 1

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """The 95% confidence interval of the mean.

        It is that of the logarithm of the mean, by the delta method. So no end of it is below 0.
        """
        return None if self.error is None else mean_interval(self.mean, self.error, self.degrees)

    @property
    def low(self) -> float | None:
        """The lower end of the interval."""
        return None if self.interval is None else self.interval[0]

    @property
    def high(self) -> float | None:
        """The upper end of the interval."""
        return None if self.interval is None else self.interval[1]


def pool_trials(estimates: Sequence[Estimate]) -> Estimate:
    """Returns one estimate from all trials on one node."""
    if len(estimates) == 1:
        return estimates[0]
    count = sum(item.count for item in estimates)
    mean = sum(item.mean * item.count for item in estimates) / count
    deviation = _deviation(estimates)
    error = None if deviation is None else deviation / sqrt(count)
    return Estimate(count, mean, deviation, error, max(1, count - 1), count)


def pool_nodes(nodes: Sequence[Estimate]) -> Estimate | None:
    """Returns one estimate from the nodes of a class; None without nodes.

    With several nodes, each node is one value. Trials on one node are not independent evidence about the class, so the
    error follows from the spread of the means of nodes. This is an analysis by cluster means (Donner and Klar, Design
    and Analysis of Cluster Randomization Trials, 2000, section 6.2).
    """
    if len(nodes) <= 1:
        return nodes[0] if nodes else None
    means = [node.mean for node in nodes]
    error = stdev(means) / sqrt(len(means))
    count, deviation = sum(node.count for node in nodes), _deviation(nodes)
    return Estimate(count, fmean(means), deviation, error, len(nodes) - 1, len(nodes), len(nodes))


def _deviation(estimates: Sequence[Estimate]) -> float | None:
    """Returns the sample standard deviation of all trials; None if it is unknown."""
    count = sum(item.count for item in estimates)
    if count == 1 or any(item.deviation is None and item.count > 1 for item in estimates):
        return None
    mean = sum(item.mean * item.count for item in estimates) / count
    within = sum((item.deviation or 0) ** 2 * (item.count - 1) for item in estimates)
    between = sum(item.count * (item.mean - mean) ** 2 for item in estimates)
    return sqrt((within + between) / (count - 1))


def difference(first: Estimate, second: Estimate) -> tuple[float, float, float] | None:
    """Returns how much larger the second mean is, with Welch's 95% confidence interval; None without an interval."""
    if first.error is None or second.error is None:
        return None
    variances = [(first.error**2, first.degrees), (second.error**2, second.degrees)]
    half = student_quantile((1 + CONFIDENCE) / 2, satterthwaite(variances)) * hypot(first.error, second.error)
    found = second.mean - first.mean
    return found, found - half, found + half


def satterthwaite(variances: Sequence[tuple[float, float]]) -> float:
    """Returns the degrees of freedom of a sum of variances, from pairs of a variance and its degrees of freedom.

    The formula is that of Satterthwaite, Biometrics Bulletin 2, 1946. If all variances are 0, it is the least of the
    degrees.
    """
    total = sum(variance for variance, _ in variances)
    if not total:
        return min((degrees for _, degrees in variances), default=inf)
    return 1 / sum((variance / total) ** 2 / degrees for variance, degrees in variances)


@dataclass(frozen=True)
class MeanDifference:
    """`first` minus `second`, with Welch's t-test (Biometrika 34, 1947)."""

    first: Estimate
    second: Estimate

    @property
    def value(self) -> float:
        """The difference of the means."""
        return self.first.mean - self.second.mean

    @cached_property
    def error(self) -> float | None:
        """The standard error of the difference; None if that of a mean is unknown."""
        if self.first.error is None or self.second.error is None:
            return None
        return sqrt(self.first.error**2 + self.second.error**2)

    @cached_property
    def degrees(self) -> float:
        """The degrees of freedom of the standard error."""
        return satterthwaite([((item.error or 0) ** 2, item.degrees) for item in (self.first, self.second)])

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% confidence interval of the difference."""
        if self.error is None:
            return None
        half = student_quantile((1 + CONFIDENCE) / 2, self.degrees) * self.error if self.error else 0.0
        return self.value - half, self.value + half

    @property
    def p(self) -> float:
        """The two-sided p-value; 1 if the standard error is unknown.

        Without variance there is no t. The p-value is then that of the permutation test for samples without overlap.
        Source: Pitman, Supplement to the Journal of the Royal Statistical Society 4, 1937.
        """
        if self.error is None or not self.value:
            return 1.0
        if not self.error:
            return min(1.0, 2 / comb(self.first.size + self.second.size, self.first.size))
        return 2 * student_cdf(-abs(self.value) / self.error, self.degrees)


def holm_adjusted(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """Returns p-values that are adjusted for all comparisons (Holm, Scandinavian Journal of Statistics 6, 1979)."""
    found: dict[Key, float] = {}
    least = 0.0
    for rank, key in enumerate(sorted(p_values, key=lambda key: p_values[key])):
        least = max(least, min(1.0, p_values[key] * (len(p_values) - rank)))
        found[key] = least
    return found


class RunMean(NamedTuple):
    """The logarithm of the mean of a run, its variance from the trials of the run, and the degrees of freedom."""

    value: float
    variance: float
    degrees: float


@dataclass(frozen=True)
class RunDifference:
    """The ratio of a run to earlier ones, by the distribution of its logarithm."""

    logarithm: Distribution

    @cached_property
    def p(self) -> float:
        """The two-sided p-value of a ratio of 1."""
        below = self.logarithm.cdf(0.0)
        return min(1.0, 2 * min(below, 1 - below))

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the ratio. It takes ten times as long as the p-value."""
        return exp(self.logarithm.quantile(TAIL)), exp(self.logarithm.quantile(1 - TAIL))


def run_mean(found: Estimate) -> RunMean | None:
    """Returns the estimate of a run as a RunMean; None if its error is unknown or its mean has no logarithm."""
    if found.error is None or found.mean <= 0:
        return None
    return RunMean(log(found.mean), (found.error / found.mean) ** 2, found.degrees)


def compare_with_runs(now: RunMean, before: Sequence[RunMean], spread: Sequence[RunMean] = ()) -> RunDifference:
    """Compares a run with the mean of at least one earlier run.

    The runs of `spread` update the prior of the deviation between runs. By default these are the runs before.
    """
    likelihoods = [_log_likelihood(spread or before, deviation) for deviation in DEVIATIONS]
    highest = max(likelihoods)
    weights = [prior * exp(each - highest) for prior, each in zip(_PRIOR, likelihoods, strict=True)]
    total = sum(weights)
    components = (
        _component(now, before, deviation, weight / total)
        for deviation, weight in zip(DEVIATIONS, weights, strict=True)
    )
    return RunDifference(Mixture(tuple(components)))


def _log_likelihood(runs: Sequence[RunMean], deviation: float) -> float:
    """Returns the restricted log-likelihood of a standard deviation between runs."""
    weights, mean = _weighted_mean(runs, deviation)
    squares = sum(weight * (run.value - mean) ** 2 for weight, run in zip(weights, runs, strict=True))
    return -0.5 * (log(sum(weights)) - sum(map(log, weights)) + squares)


def _weighted_mean(runs: Sequence[RunMean], deviation: float) -> tuple[list[float], float]:
    weights = [1 / (deviation**2 + run.variance) for run in runs]
    return weights, sum(weight * run.value for weight, run in zip(weights, runs, strict=True)) / sum(weights)


def _component(now: RunMean, before: Sequence[RunMean], deviation: float, weight: float) -> Component:
    """Returns the distribution of the difference for one standard deviation between runs."""
    weights, mean = _weighted_mean(before, deviation)
    total = sum(weights)
    uncertainty = now.variance**2 / now.degrees + sum(
        ((weight / total) ** 2 * run.variance) ** 2 / run.degrees for weight, run in zip(weights, before, strict=True)
    )
    return Component(weight, now.value - mean, deviation**2 + now.variance + 1 / total, uncertainty)


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
    mean = fsum(counts) / len(counts) if counts else 0.0
    squares = fsum((count - mean) ** 2 for count in counts)
    return dispersion_of(len(counts), mean, sqrt(squares / max(1, len(counts) - 1)))


def dispersion_of(count: int, mean: float, deviation: float) -> float:
    """Returns the dispersion of `count` counts with this mean and standard deviation."""
    return max(1.0, deviation**2 / mean) if count >= _FEWEST_FOR_DISPERSION and mean else 1.0


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
        return digamma(self.shape) - log(self.exposure)

    @cached_property
    def deviation(self) -> float:
        """The standard deviation."""
        return sqrt(trigamma(self.shape))

    def cdf(self, x: float) -> float:
        """Returns the probability of at most `x`."""
        return gamma_cdf(self.exposure * exp(x), self.shape)

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
        return sqrt(self.first.deviation**2 + self.second.deviation**2)

    def cdf(self, x: float) -> float:
        """Returns the probability of at most `x`."""
        odds = exp(x) * self.first.exposure / self.second.exposure
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
