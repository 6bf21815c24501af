"""Distribution-free confidence intervals of quantiles: of a sample, and of an exponential histogram."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist
from typing import Final

from tierbench.stats import histogram
from tierbench.stats.samples import CONFIDENCE, TAIL, percentile
from tierbench.stats.special import binomial_cdf

_EXACT_UP_TO: Final = 10_000


@dataclass(frozen=True)
class Quantile:
    """The quantile `share` of `count` values with its 95% interval. Too few values for an end make it None."""

    share: float
    count: int
    value: float
    low: float | None
    high: float | None


def sample_quantile(ordered: Sequence[float], share: float) -> Quantile:
    """Returns the quantile of values in ascending order. The ends of its interval are order statistics."""
    low, high = interval_ranks(len(ordered), share)
    return Quantile(
        share,
        len(ordered),
        percentile(ordered, share),
        None if low is None else ordered[low - 1],
        None if high is None else ordered[high - 1],
    )


def histogram_quantile(buckets: histogram.Buckets, share: float) -> Quantile:
    """Returns the quantile of a histogram that is not empty. Its interval includes the buckets of both ends."""
    up_to = list(accumulate(buckets.counts))
    low, high = interval_ranks(buckets.count, share)
    return Quantile(
        share,
        buckets.count,
        histogram.quantile(buckets, share),
        None if low is None else histogram.upper_bound(buckets.indexes[bisect_left(up_to, low)] - 1),
        None if high is None else histogram.upper_bound(buckets.indexes[bisect_left(up_to, high)]),
    )


def required_count(share: float) -> int:
    """Returns how many values a quantile needs before the largest is an upper bound of it: 368 for the 99th percentile.

    The bound holds at the upper end of a two-sided 95% interval.
    """
    return math.ceil(math.log(TAIL) / math.log(share))


@lru_cache(maxsize=1024)
def interval_ranks(count: int, share: float) -> tuple[int | None, int | None]:
    """Returns the ranks, from 1, of the two values that enclose the quantile `share` in 95% of all samples of `count`.

    A rank is None if the sample is too small for that end. The number of values below a quantile is binomial for every
    distribution. Above 10,000 values the function uses the normal approximation.

    Source: Conover, Practical Nonparametric Statistics, 1999, section 3.2.
    """
    if count > _EXACT_UP_TO:
        half = NormalDist().inv_cdf(1 - TAIL) * math.sqrt(count * share * (1 - share))
        low, high = math.floor(count * share - half), math.ceil(count * share + half) + 1
    else:
        below = range(1, count + 1)
        low = bisect_left(below, TAIL, key=lambda rank: binomial_cdf(rank - 1, count, share))
        high = bisect_left(below, 1 - TAIL, key=lambda rank: binomial_cdf(rank - 1, count, share)) + 1
    return low if low >= 1 else None, high if high <= count else None


def quantile_error(ordered: Sequence[float], share: float) -> float | None:
    """Returns the standard error of the quantile `share` of values in ascending order; None for too few values.

    The error is the distribution-free interval between two order statistics, divided by the normal width of its exact
    binomial coverage.

    Source: Conover, Practical Nonparametric Statistics, 1999, section 3.2; McKean and Schrader, Communications in
    Statistics B 13, 1984.
    """
    ranks = _error_ranks(len(ordered), share)
    if ranks is None:
        return None
    below, above, width = ranks
    return (ordered[above - 1] - ordered[below - 1]) / width


@lru_cache(maxsize=256)
def _error_ranks(count: int, share: float) -> tuple[int, int, float] | None:
    """Returns the ranks of the two order statistics, from 1, and the number of standard errors between them."""
    half = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * math.sqrt(count * share * (1 - share))
    below, above = math.ceil(count * share - half), math.ceil(count * share + half)
    if below < 1 or above > count:
        return None
    terms = (math.comb(count, k) * share**k * (1 - share) ** (count - k) for k in range(below, above))
    return below, above, 2 * NormalDist().inv_cdf((1 + math.fsum(terms)) / 2)
