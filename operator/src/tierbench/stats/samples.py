"""Summaries of small samples of a quantity that is never negative, such as a time or a rate.

Percentiles are type 7 of Hyndman and Fan (linear between order statistics, The American Statistician 50, 1996). The 95%
confidence interval of a mean is Student's interval of the mean's logarithm. So neither end is ever negative.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Final

from tierbench.stats.special import student_quantile

CONFIDENCE: Final = 0.95
"""The probability with which an interval contains the true value."""
TAIL: Final = 0.025
"""The probability that a 95% interval leaves out at either end."""
_LARGEST_EXPONENT: Final = 13.0
"""Two values of which one is 0 reach 12.7."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The statistics of one sample, in the unit of its values.

    `deviation` is the sample standard deviation. `low` and `high` are the 95% confidence interval of the mean. All
    three are None for a sample of one value.
    """

    count: int
    mean: float
    deviation: float | None
    minimum: float
    maximum: float
    p50: float
    p90: float
    p99: float
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
    deviation = stdev(ordered) if count > 1 else None
    low, high = (None, None) if deviation is None else mean_interval(mean, deviation / math.sqrt(count), count - 1)
    p50, p90, p99 = (percentile(ordered, share) for share in (0.5, 0.9, 0.99))
    return Summary(count, mean, deviation, ordered[0], ordered[-1], p50, p90, p99, low, high)


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
    mean is the ratio (delta method). Minimum, maximum and percentiles are those of the rates.

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
