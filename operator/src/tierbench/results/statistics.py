"""What is said of a few trials together.

Percentiles are Hyndman and Fan's type 7 (linear between order statistics, The American Statistician 50, 1996). The
confidence interval of the mean is Student's, two-sided, 95 %, of its logarithm: what is measured is never negative, and
so no end of its interval is.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist, fmean, stdev
from typing import Final

from tierbench.api.result import Statistic

CONFIDENCE: Final = 0.95
_PRECISE: Final = 1e-15
_LARGEST_EXPONENT: Final = 13.0
"""Of the factor of an interval: two trials, one of which is 0, reach 12.7."""


def describe(values: Sequence[float]) -> Statistic:
    """A quantity over the trials of a case, rounded to whole units.

    Raises:
        ValueError: there is no value.
    """
    if not values:
        raise ValueError("a statistic needs at least one value")
    ordered = sorted(values)
    mean = fmean(ordered)
    spread = stdev(ordered) if len(ordered) > 1 else None
    ends = None if spread is None else interval(mean, spread / math.sqrt(len(ordered)), len(ordered) - 1)
    return Statistic(
        count=len(ordered),
        mean=round(mean),
        standard_deviation=None if spread is None else round(spread),
        minimum=round(ordered[0]),
        maximum=round(ordered[-1]),
        p50=round(percentile(ordered, 0.5)),
        p90=round(percentile(ordered, 0.9)),
        p99=round(percentile(ordered, 0.99)),
        confidence_low=None if ends is None else round(ends[0]),
        confidence_high=None if ends is None else round(ends[1]),
    )


def percentile(ordered: Sequence[float], share: float) -> float:
    """The quantile `share` of values in ascending order (Hyndman and Fan, type 7)."""
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def quantile_error(ordered: Sequence[float], share: float) -> float | None:
    """The standard error of the quantile `share` of values in ascending order; None if there are too few.

    The distribution-free interval between two order statistics (Conover, Practical Nonparametric Statistics, 1999,
    section 3.2), divided by the normal width of its exact binomial coverage (McKean and Schrader, Communications in
    Statistics B 13, 1984).
    """
    ranks = _ranks(len(ordered), share)
    if ranks is None:
        return None
    below, above, width = ranks
    return (ordered[above - 1] - ordered[below - 1]) / width


@lru_cache(maxsize=256)
def _ranks(count: int, share: float) -> tuple[int, int, float] | None:
    """The two order statistics, counted from 1, and how many standard errors lie between them."""
    half = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * math.sqrt(count * share * (1 - share))
    below, above = math.ceil(count * share - half), math.ceil(count * share + half)
    if below < 1 or above > count:
        return None
    terms = (math.comb(count, k) * share**k * (1 - share) ** (count - k) for k in range(below, above))
    return below, above, 2 * NormalDist().inv_cdf((1 + math.fsum(terms)) / 2)


def interval(mean: float, error: float, degrees: float) -> tuple[float, float]:
    """The confidence interval of the mean of a quantity that is never negative, from its standard error.

    Student's, of the mean's logarithm, whose standard error is error / mean (delta method): the ends are mean / f and
    mean * f. A mean of 0 is its own interval.
    """
    if mean <= 0 or not error:
        return mean, mean
    factor = math.exp(min(student_quantile((1 + CONFIDENCE) / 2, degrees) * error / mean, _LARGEST_EXPONENT))
    return mean / factor, mean * factor


def standard_error(mean: float, high: float, degrees: float) -> float:
    """The standard error that `interval` made the upper end `high` from."""
    if mean <= 0 or high <= mean:
        return 0.0
    return mean * math.log(high / mean) / student_quantile((1 + CONFIDENCE) / 2, degrees)


def student_quantile(probability: float, degrees: float) -> float:
    """The quantile of Student's t distribution, for probabilities above one half.

    Newton's method on the distribution function, from the normal quantile's expansion in 1/degrees (Abramowitz and
    Stegun 26.7.5). Agrees with reference tables to nine digits.

    Raises:
        ValueError: `degrees` is not positive, or `probability` not between 0.5 and 1.
    """
    if degrees <= 0 or not 0.5 <= probability < 1:  # noqa: PLR2004 (the upper half)
        raise ValueError(f"no quantile {probability} of t with {degrees} degrees of freedom")
    if degrees == 1:
        return math.tan(math.pi * (probability - 0.5))
    if degrees == 2:  # noqa: PLR2004 (has a closed form)
        return (2 * probability - 1) * math.sqrt(2 / (4 * probability * (1 - probability)))
    z = NormalDist().inv_cdf(probability)
    t = z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    for _ in range(50):
        step = (student_distribution(t, degrees) - probability) / _student_density(t, degrees)
        t -= step
        if abs(step) < 1e-12 * max(1.0, t):
            break
    return t


def _student_density(t: float, degrees: float) -> float:
    scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - 0.5 * math.log(degrees * math.pi)
    return math.exp(scale - (degrees + 1) / 2 * math.log1p(t * t / degrees))


def student_distribution(t: float, degrees: float) -> float:
    """P(T <= t) for Student's t, t >= 0, by the regularised incomplete beta function (A&S 26.7.1)."""
    if t * t < degrees:  # where the other form's argument is rounded to 1, and small t are lost
        return 0.5 + 0.5 * incomplete_beta(t * t / (degrees + t * t), 0.5, degrees / 2)
    return 1 - 0.5 * incomplete_beta(degrees / (degrees + t * t), degrees / 2, 0.5)


def incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction (DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(1 - x, b, a)
    front = math.exp(a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)) / a
    return front * _beta_fraction(x, a, b)


def _beta_fraction(x: float, a: float, b: float) -> float:
    """1/(1+ d1/(1+ d2/(1+ ...))) by the modified Lentz algorithm."""
    tiny = 1e-300
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1), tiny)
    fraction = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = 1.0
        for coefficient in (even, odd):
            d = 1 / _away_from_zero(1 + coefficient * d, tiny)
            c = _away_from_zero(1 + coefficient / c, tiny)
            change = c * d
            fraction *= change
        if abs(change - 1) < _PRECISE:
            break
    return fraction


def _away_from_zero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny


def fairness(rates: Sequence[float]) -> float:
    """Jain's index: 1 where all have the same, 1/n where one has everything (Jain, Chiu and Hawe, DEC-TR-301, 1984).

    Raises:
        ValueError: All shares are 0.
    """
    squares = sum(rate * rate for rate in rates)
    if not squares:
        raise ValueError("all shares are 0")
    return sum(rates) ** 2 / (len(rates) * squares)
