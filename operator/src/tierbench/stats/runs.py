"""Compares a run with earlier runs, by how much runs differ.

Days differ more than the trials of one day, so each run is one value: the logarithm of its mean. These values are
normally distributed, with a standard deviation between runs and the error of the trials within. The prior of that
deviation is half-Cauchy with scale 0.01 (Gelman, Bayesian Analysis 1, 2006). Half of all machines vary by more than 1%
from run to run, a quarter by more than 2.4%, a tenth by more than 6%.
"""

from collections.abc import Sequence
from math import exp, log
from typing import Final, NamedTuple

from tierbench.stats.hierarchy import DEVIATIONS, half_cauchy
from tierbench.stats.means import Estimate
from tierbench.stats.posterior import Component, Mixture
from tierbench.stats.samples import TAIL

_PRIOR: Final = half_cauchy(DEVIATIONS, 0.01)


class RunMean(NamedTuple):
    """The logarithm of the mean of a run, its variance from the trials of the run, and the degrees of freedom."""

    value: float
    variance: float
    degrees: float


class RunDifference(NamedTuple):
    """The 95% interval of the ratio of a run to earlier ones, and the two-sided p-value of a ratio of 1."""

    low: float
    high: float
    p: float


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
    mixture = Mixture(
        tuple(
            _component(now, before, deviation, weight / sum(weights))
            for deviation, weight in zip(DEVIATIONS, weights, strict=True)
        )
    )
    below = mixture.cdf(0.0)
    low, high = (exp(mixture.quantile(tail)) for tail in (TAIL, 1 - TAIL))
    return RunDifference(low, high, min(1.0, 2 * min(below, 1 - below)))


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
