"""How often something happened: events of a count of trials, as a rate with its interval."""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Final

from tierbench.api.result import Statistic
from tierbench.results.statistics import CONFIDENCE, describe

RETRIES: Final = "retriesPerTrialPartsPerMillion"
"""How results keep them: a whole number of retries a trial would be 0 for most."""
_PRECISE: Final = 1e-14
_STEPS: Final = 80
_LARGE: Final = 1000
_FEWEST_FOR_DISPERSION: Final = 2


def rate_interval(events: float, exposure: float, dispersion: float = 1.0) -> tuple[float, float]:
    """The 95 % interval of events per unit of exposure (trials, say): from 0 where none happened.

    Jeffreys' for a Poisson rate, the quantiles of Gamma(events + 1/2) / exposure (Brown, Cai and DasGupta, Journal of
    Statistical Planning and Inference 107, 2003). Events that come in bursts tell less: both are divided by the
    `dispersion`, the variance as a multiple of the mean.

    Raises:
        ValueError: the exposure or the dispersion is not positive.
    """
    if exposure <= 0 or dispersion <= 0:
        raise ValueError("a rate needs a positive exposure and dispersion")
    shape, scale = events / dispersion + 0.5, dispersion / exposure
    tail = (1 - CONFIDENCE) / 2
    low = gamma_quantile(tail, shape) * scale if events else 0.0
    return low, gamma_quantile(1 - tail, shape) * scale


def dispersion(counts: Sequence[float]) -> float:
    """The variance of counts of equal exposure as a multiple of their mean, at least 1 (Pearson's chi-squared over its
    degrees of freedom)."""
    mean = math.fsum(counts) / len(counts) if counts else 0.0
    if len(counts) < _FEWEST_FOR_DISPERSION or not mean:
        return 1.0
    return max(1.0, math.fsum((count - mean) ** 2 for count in counts) / mean / (len(counts) - 1))


def describe_rate(counts: Sequence[float]) -> Statistic:
    """Counts, one a trial, in parts per million of one a trial, with the interval of a rate.

    Raises:
        ValueError: there is none.
    """
    low, high = rate_interval(math.fsum(counts), len(counts), dispersion(counts))
    ends = {"confidence_low": round(1e6 * low), "confidence_high": round(1e6 * high)}
    return describe([1e6 * count for count in counts]).model_copy(update=ends)


@lru_cache(maxsize=1024)  # every pass of a case asks for the same few again
def gamma_quantile(probability: float, shape: float) -> float:
    """The quantile of the Gamma distribution of this shape and scale 1: by bisection, for large shapes by Wilson and
    Hilferty's cube of a normal (Proceedings of the National Academy of Sciences 17, 1931).

    Raises:
        ValueError: `shape` is not positive, or `probability` not between 0 and 1.
    """
    if shape <= 0 or not 0 < probability < 1:
        raise ValueError(f"no quantile {probability} of Gamma({shape})")
    if shape > _LARGE:
        return shape * (1 - 1 / (9 * shape) + NormalDist().inv_cdf(probability) / (3 * math.sqrt(shape))) ** 3
    low, high = 0.0, shape + 10 * math.sqrt(shape) + 50
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if gamma_distribution(middle, shape) < probability else (low, middle)
    return (low + high) / 2


def gamma_distribution(x: float, shape: float) -> float:
    """P(X <= x) for Gamma of this shape and scale 1: the regularised incomplete gamma function, by its series below
    shape + 1 (DLMF 8.11.4) and its continued fraction above (DLMF 8.9.2)."""
    if x <= 0:
        return 0.0
    front = math.exp(shape * math.log(x) - x - math.lgamma(shape))
    if x < shape + 1:
        term = total = 1 / shape
        number = shape
        while term > _PRECISE * total:
            number += 1
            term *= x / number
            total += term
        return front * total
    return 1 - front * _gamma_fraction(x, shape)


def _gamma_fraction(x: float, shape: float) -> float:
    """By the modified Lentz algorithm."""
    b = x + 1 - shape
    c, d = math.inf, 1 / b
    fraction = d
    number = 0
    while True:
        number += 1
        a = -number * (number - shape)
        b += 2
        d, c = 1 / (a * d + b), b + a / c
        fraction *= c * d
        if abs(c * d - 1) < _PRECISE:
            return fraction
