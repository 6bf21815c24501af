"""Distributions of measured values that are never negative, such as times and rates: samples, histograms and quantiles.

Percentiles of samples are type 7 of Hyndman and Fan (linear between order statistics, The American Statistician 50,
1996). The 95% confidence interval of a mean is Student's interval of the mean's logarithm. So neither end is ever
negative. The intervals of quantiles hold for every distribution.

Histograms are sparse and exponential, with the buckets of Prometheus native histograms at schema 6. Bucket i holds the
values v with 2^((i-1)/64) < v <= 2^(i/64), so it is about 1.1% wide. To merge histograms is to add counts, so the
result does not depend on the order.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist, fmean
from typing import Final, Protocol

from tierbench.stats.special import binomial_cdf, student_quantile

CONFIDENCE: Final = 0.95
"""The probability with which an interval contains the true value."""
TAIL: Final = 0.025
"""The probability that a 95% interval leaves out at either end."""
_LARGEST_EXPONENT: Final = 13.0
"""Two values of which one is 0 reach 12.7."""
SCHEMA: Final = 6
BUCKETS_PER_DOUBLING: Final = 2**SCHEMA
_ROUNDING: Final = 1e-9
_EXACT_UP_TO: Final = 10_000


@dataclass(frozen=True, slots=True)
class Summary:
    """The statistics of one sample, in the unit of its values.

    `deviation` is the sample standard deviation. `low` and `high` are the 95% confidence interval of the mean. All
    three are None for a sample of one value.
    """

    count: int
    mean: float
    deviation: float | None
    p50: float
    low: float | None
    high: float | None


def summarize(values: Sequence[float]) -> Summary:
    """Returns the summary of a sample.

    Raises:
        ValueError: the sample is empty.
    """
    if not values:
        raise ValueError("a summary needs at least one value")
    ordered = sorted(values)
    count, mean = len(ordered), fmean(ordered)
    deviation = math.sqrt(variance_of(ordered, mean)) if count > 1 else None
    low, high = (None, None) if deviation is None else mean_interval(mean, deviation / math.sqrt(count), count - 1)
    return Summary(count, mean, deviation, percentile(ordered, 0.5), low, high)


def summarize_trimmed(values: Sequence[float], lowest: int, highest: int) -> Summary:
    """Returns the summary of a sample without its `lowest` and its `highest` values.

    `values` has more values than are trimmed. The interval is that of a trimmed mean. Its standard error comes from the
    Winsorized sum of squares, because the deviation of the values that are left is too small.

    Source: Tukey and McLaughlin, Sankhyā A 25, 1963.
    """
    ordered = sorted(values)
    rest = ordered[lowest : len(ordered) - highest]
    summary = summarize(rest)
    if len(rest) == 1:
        return summary
    winsorized = [rest[0]] * lowest + rest + [rest[-1]] * highest
    middle = fmean(winsorized)
    squares = sum((value - middle) ** 2 for value in winsorized)
    degrees = len(rest) - 1
    low, high = mean_interval(summary.mean, math.sqrt(squares / degrees / len(rest)), degrees)
    return replace(summary, low=low, high=high)


def summarize_ratio(rates: Sequence[float], times: Sequence[float]) -> Summary:
    """Returns the summary of a ratio of sums: the sum of rate × time by the sum of times.

    `rates` and `times` have the same length. The deviation and the interval are those of the linearised values, whose
    mean is the ratio (delta method). The median is that of the rates.

    Source: Cochran, Sampling Techniques, 1977, section 2.11.
    """
    mean_time = fmean(times)
    ratio = fmean(rate * time for rate, time in zip(rates, times, strict=True)) / mean_time
    found = summarize([ratio + (rate - ratio) * time / mean_time for rate, time in zip(rates, times, strict=True)])
    return replace(summarize(rates), mean=found.mean, deviation=found.deviation, low=found.low, high=found.high)


def percentile(ordered: Sequence[float], share: float) -> float:
    """Returns the quantile `share` of values in ascending order (Hyndman and Fan, type 7)."""
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def variance_of(values: Sequence[float], mean: float) -> float:
    """Returns the sample variance of two or more values with this mean.

    The standard library computes it with fractions, which takes 40 times as long.
    """
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def mean_interval(mean: float, error: float, degrees: float) -> tuple[float, float]:
    """Returns the 95% confidence interval of the mean of a quantity that is never negative.

    `error` is the standard error of the mean, `degrees` are the degrees of freedom of that error. The interval is
    Student's interval of the mean's logarithm, whose standard error is error / mean (delta method). So the ends are
    mean / f and mean × f. The interval of a mean of 0 is 0 to 0.
    """
    if mean <= 0 or not error:
        return mean, mean
    factor = math.exp(min(student_quantile((1 + CONFIDENCE) / 2, degrees) * error / mean, _LARGEST_EXPONENT))
    return mean / factor, mean * factor


def standard_error(mean: float, high: float, degrees: float) -> float:
    """Returns the standard error from which `mean_interval` computes the upper end `high`."""
    if mean <= 0 or high <= mean:
        return 0.0
    return mean * math.log(high / mean) / student_quantile((1 + CONFIDENCE) / 2, degrees)


def jain_index(rates: Sequence[float]) -> float:
    """Returns Jain's fairness index: 1 if all rates are equal, 1/n if one of n rates has everything.

    Source: Jain, Chiu and Hawe, DEC-TR-301, 1984.

    Raises:
        ValueError: all rates are 0.
    """
    squares = sum(rate * rate for rate in rates)
    if not squares:
        raise ValueError("all rates are 0")
    return sum(rates) ** 2 / (len(rates) * squares)


def ratio(part: float | None, whole: float | None) -> float | None:
    """Returns a part divided by its whole, or None if one of them is not known or the whole is 0."""
    return part / whole if whole and part is not None else None


def parts_per_million(part: float | None, whole: float | None) -> float | None:
    """Returns a ratio in parts per million."""
    return None if part is None else ratio(1e6 * part, whole)


class Buckets(Protocol):
    """A histogram."""

    @property
    def indexes(self) -> tuple[int, ...]:
        """The ascending indexes of the buckets that are not empty."""

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of observations in each of these buckets."""

    @property
    def count(self) -> int:
        """The number of all observations."""


def upper_bound(index: int) -> float:
    """Returns the largest value of a bucket."""
    whole, part = divmod(index, BUCKETS_PER_DOUBLING)
    return math.ldexp(2 ** (part / BUCKETS_PER_DOUBLING), whole)


def exponent_of(nanoseconds: float) -> int:
    """Returns the smallest e with a time of at most 2^e seconds, to a billionth of it."""
    return math.ceil(math.log2(max(nanoseconds, 1) / 1e9) - _ROUNDING)


def merge_buckets(histograms: Iterable[Buckets]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the indexes and the counts of the histogram of all observations."""
    merged: Counter[int] = Counter()
    for each in histograms:
        merged.update(dict(zip(each.indexes, each.counts, strict=True)))
    indexes = tuple(sorted(index for index, count in merged.items() if count))
    return indexes, tuple(merged[index] for index in indexes)


def bucket_quantile(buckets: Buckets, share: float) -> float:
    """Returns the upper bound of the bucket that contains the quantile: at most 1.1% too high.

    Raises:
        ValueError: the histogram is empty.
    """
    (found,) = bucket_quantiles(buckets, [share])
    return found


def bucket_quantiles(buckets: Buckets, shares: Iterable[float]) -> list[float]:
    """Returns several quantiles, each as `bucket_quantile` does.

    Raises:
        ValueError: the histogram is empty.
    """
    if not buckets.count:
        raise ValueError("an empty histogram has no quantiles")
    up_to = list(accumulate(buckets.counts))
    ranks = (max(1, math.ceil(share * buckets.count - _ROUNDING)) for share in shares)
    return [upper_bound(buckets.indexes[bisect_left(up_to, rank)]) for rank in ranks]


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


def histogram_quantile(buckets: Buckets, share: float) -> Quantile:
    """Returns the quantile of a histogram that is not empty. Its interval includes the buckets of both ends."""
    up_to = list(accumulate(buckets.counts))
    low, high = interval_ranks(buckets.count, share)
    return Quantile(
        share,
        buckets.count,
        bucket_quantile(buckets, share),
        None if low is None else upper_bound(buckets.indexes[bisect_left(up_to, low)] - 1),
        None if high is None else upper_bound(buckets.indexes[bisect_left(up_to, high)]),
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
