"""Whether a run lies beyond what earlier runs of the same differ by.

Days differ by more than trials of one day do, so a run is one value: the logarithm of its mean. Values of runs are
normal around a common one, with a standard deviation rho between runs and the trials' own error within. rho has a
half-Cauchy prior of scale 0.01 (Gelman, Bayesian Analysis 1, 2006): runs usually differ by 1 %, one machine in four by
more than 2.4 %, one in ten by more than 6 %. Earlier runs turn it into what was seen; with one, it is all there is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import atan, exp, inf, log, log1p, pi, sqrt
from statistics import NormalDist
from typing import Final

from tierbench.advice.estimate import Estimate

SHOWN: Final = 0.02
"""Two-sided: one case in a hundred is called worse by chance."""
_SCALE: Final = 0.01
_GRID: Final = tuple(exp(log(0.001) + step * log(1000) / 19) for step in range(20))
_STEPS: Final = 50
_TAIL: Final = 0.025


@dataclass(frozen=True)
class Run:
    """The logarithm of a run's mean, the variance of that within the run, and its degrees of freedom."""

    value: float
    variance: float
    degrees: float


@dataclass(frozen=True)
class Drift:
    """How far a run lies from earlier ones, as a ratio with its 95 % interval. `p`, two-sided, is how likely runs are
    to lie so far apart when nothing has changed but the day."""

    ratio: float
    low: float
    high: float
    p: float


def of_estimate(found: Estimate) -> Run | None:
    """A run as it counts here; None where its error is not known, or its mean has no logarithm."""
    if found.error is None or found.mean <= 0:
        return None
    return Run(log(found.mean), (found.error / found.mean) ** 2, found.degrees)


def drift(now: Run, before: Sequence[Run], spread: Sequence[Run] = ()) -> Drift:
    """The run against the mean of earlier ones, of which there is at least one. How far runs differ is what `spread`
    says; by default these."""
    parts = [(_likelihood(spread or before, rho), *_part(now, before, rho)) for rho in _GRID]
    heaviest = max(likelihood for likelihood, *_ in parts)
    weights = [mass * exp(part[0] - heaviest) for mass, part in zip(_PRIOR, parts, strict=True)]
    total = sum(weights)
    mixture = [(weight / total, *part[1:]) for weight, part in zip(weights, parts, strict=True)]

    def at_most(x: float) -> float:
        return sum(weight * _student((x - centre) / spread, degrees) for weight, centre, spread, degrees in mixture)

    below = at_most(0.0)
    middle = sum(weight * centre for weight, centre, _, _ in mixture)
    reach = 10 + abs(middle)
    low, high = (_quantile(at_most, tail, middle - reach, middle + reach) for tail in (_TAIL, 1 - _TAIL))
    return Drift(exp(middle), exp(low), exp(high), min(1.0, 2 * min(below, 1 - below)))


def _likelihood(runs: Sequence[Run], rho: float) -> float:
    """The restricted log-likelihood of rho."""
    weights, mean = _mean(runs, rho)
    squares = sum(weight * (run.value - mean) ** 2 for weight, run in zip(weights, runs, strict=True))
    return -0.5 * (log(sum(weights)) - sum(map(log, weights)) + squares)


def _mean(runs: Sequence[Run], rho: float) -> tuple[list[float], float]:
    weights = [1 / (rho**2 + run.variance) for run in runs]
    return weights, sum(weight * run.value for weight, run in zip(weights, runs, strict=True)) / sum(weights)


def _part(now: Run, before: Sequence[Run], rho: float) -> tuple[float, float, float]:
    """For one rho: centre, spread and degrees (Satterthwaite's) of the difference."""
    weights, mean = _mean(before, rho)
    total = sum(weights)
    variance = rho**2 + now.variance + 1 / total
    of_trials = now.variance**2 / now.degrees + sum(
        ((weight / total) ** 2 * run.variance) ** 2 / run.degrees for weight, run in zip(weights, before, strict=True)
    )
    return now.value - mean, sqrt(variance), variance**2 / of_trials if of_trials else inf


def _student(t: float, degrees: float) -> float:
    """The distribution function of Student's t by Wallace's normal approximation (Annals of Mathematical Statistics
    30, 1959)."""
    if degrees == inf:
        return NormalDist().cdf(t)
    z = (8 * degrees + 1) / (8 * degrees + 3) * sqrt(degrees * log1p(t * t / degrees))
    return NormalDist().cdf(z if t >= 0 else -z)


def _quantile(at_most: Callable[[float], float], probability: float, low: float, high: float) -> float:
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if at_most(middle) < probability else (low, middle)
    return (low + high) / 2


def _prior() -> tuple[float, ...]:
    """The probability of the half-Cauchy between the geometric midpoints of the grid; its ends take the tails."""
    middles = [sqrt(one * next_one) for one, next_one in pairwise(_GRID)]
    up_to = [0.0, *(2 / pi * atan(middle / _SCALE) for middle in middles), 1.0]
    return tuple(next_one - one for one, next_one in pairwise(up_to))


_PRIOR: Final = _prior()
