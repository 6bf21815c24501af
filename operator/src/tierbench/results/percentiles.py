"""Percentiles, with the interval that so many values allow."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import NormalDist
from typing import Final

from tierbench.api.contract import Distributions, Histogram, Outcome
from tierbench.api.result import BenchmarkResult, ResultTrial
from tierbench.kinds.registry import kind_of
from tierbench.results import histogram
from tierbench.results.parts import merge_distributions
from tierbench.results.quantities import quantities
from tierbench.results.statistics import CONFIDENCE, describe, incomplete_beta, percentile

_TAIL: Final = (1 - CONFIDENCE) / 2
_EXACT_UP_TO: Final = 10_000


@dataclass(frozen=True)
class Percentile:
    """The quantile `share` of `count` values, and its 95 % interval; an end that they are too few for is None."""

    share: float
    count: int
    value: float
    low: float | None
    high: float | None

    @property
    def known(self) -> bool:
        """Whether there are values enough for an upper bound."""
        return self.high is not None


def needed(share: float) -> int:
    """How many values a quantile needs, so that the largest is an upper bound of it (95 %, both ends): 368 for P99."""
    return math.ceil(math.log(_TAIL) / math.log(share))


def percentile_over(results: Iterable[BenchmarkResult], quantity: str, share: float) -> Percentile | None:
    """The quantile of a time over everything that the results measured, None if that is nothing.

    It is over operations (messages, echo requests) where trials have many, else over trials. Operations of one trial
    are alike, so the interval reaches as far as that of the trials' own quantiles, too. It says nothing of nodes that
    were not measured.
    """
    every = list(results)
    trials = [trial for result in every for trial in _good(result)]
    kept = kind_of(every[0].spec.benchmark.kind).measures.distributions if every else {}
    name = kept.get(quantity)
    merged: Distributions = merge_distributions(result.status.distributions for result in every)
    found: Histogram | None = None if name is None else getattr(merged, name)
    if found is not None and found.count:
        of_each = quantities(trials).get(quantity.replace("Nanoseconds", f"P{100 * share:.0f}Nanoseconds"), ())
        return _reaching(_of_histogram(found, share), of_each)
    values = sorted(quantities(trials).get(quantity, ()))
    return of_values(values, share) if values else None


def of_values(ordered: Sequence[float], share: float) -> Percentile:
    """The quantile of values in ascending order, and the order statistics that enclose it."""
    low, high = ranks(len(ordered), share)
    return Percentile(
        share,
        len(ordered),
        percentile(ordered, share),
        None if low is None else ordered[low - 1],
        None if high is None else ordered[high - 1],
    )


def ranks(count: int, share: float) -> tuple[int | None, int | None]:
    """Which of `count` values in ascending order, from 1, enclose the quantile `share` in 95 % of all samples.

    How many values lie below it is binomial, whatever their distribution (Conover, Practical Nonparametric Statistics,
    1999, section 3.2); from 10,000 values on by the normal distribution.
    """
    if count > _EXACT_UP_TO:
        half = NormalDist().inv_cdf(1 - _TAIL) * math.sqrt(count * share * (1 - share))
        low, high = math.floor(count * share - half), math.ceil(count * share + half) + 1
    else:
        below = range(1, count + 1)
        low = bisect_left(below, _TAIL, key=lambda rank: _at_most(rank - 1, count, share))
        high = bisect_left(below, 1 - _TAIL, key=lambda rank: _at_most(rank - 1, count, share)) + 1
    return low if low >= 1 else None, high if high <= count else None


def _at_most(number: int, count: int, share: float) -> float:
    """The binomial distribution function (A&S 26.5.24)."""
    return 1.0 if number >= count else incomplete_beta(1 - share, count - number, number + 1)


def _of_histogram(found: Histogram, share: float) -> Percentile:
    """The interval reaches to the far ends of the buckets that its ends are in."""
    up_to = list(accumulate(found.counts))
    low, high = ranks(found.count, share)
    return Percentile(
        share,
        found.count,
        histogram.quantile(found, share),
        None if low is None else histogram.upper_bound(found.indexes[bisect_left(up_to, low)] - 1),
        None if high is None else histogram.upper_bound(found.indexes[bisect_left(up_to, high)]),
    )


def _reaching(found: Percentile, of_each: Sequence[float]) -> Percentile:
    """The same with an interval that encloses that of the trials' own quantiles."""
    whole = describe(of_each) if len(of_each) > 1 else None
    if whole is None or whole.confidence_low is None or whole.confidence_high is None:
        return found
    low = None if found.low is None else min(found.low, whole.confidence_low)
    high = None if found.high is None else max(found.high, whole.confidence_high)
    return Percentile(found.share, found.count, found.value, low, high)


def _good(result: BenchmarkResult) -> list[ResultTrial]:
    return [trial for trial in result.status.trials if not trial.warmup and trial.outcome is Outcome.COMPLETED]
