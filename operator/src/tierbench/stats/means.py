"""Means with their standard errors: pooled over trials and nodes, and compared by Welch's t-test."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb, inf, sqrt
from statistics import fmean, stdev
from typing import TypeVar

from tierbench.stats.samples import CONFIDENCE, mean_interval
from tierbench.stats.special import student_cdf, student_quantile

Key = TypeVar("Key", bound=Hashable)


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
