"""Sparse exponential histograms with the buckets of Prometheus native histograms at schema 6.

Bucket i holds the values v with 2^((i-1)/64) < v <= 2^(i/64), so it is about 1.1% wide. To merge histograms is to add
counts, so the result does not depend on the order.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate
from typing import Final, Protocol

SCHEMA: Final = 6
BUCKETS_PER_DOUBLING: Final = 2**SCHEMA
_ROUNDING: Final = 1e-9


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


def merge(histograms: Iterable[Buckets]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the indexes and the counts of the histogram of all observations."""
    merged: Counter[int] = Counter()
    for each in histograms:
        merged.update(dict(zip(each.indexes, each.counts, strict=True)))
    indexes = tuple(sorted(index for index, count in merged.items() if count))
    return indexes, tuple(merged[index] for index in indexes)


def quantile(buckets: Buckets, share: float) -> float:
    """Returns the upper bound of the bucket that contains the quantile: at most 1.1% too high.

    Raises:
        ValueError: the histogram is empty.
    """
    (found,) = quantiles(buckets, [share])
    return found


def quantiles(buckets: Buckets, shares: Iterable[float]) -> list[float]:
    """Returns several quantiles, each as `quantile` does.

    Raises:
        ValueError: the histogram is empty.
    """
    if not buckets.count:
        raise ValueError("an empty histogram has no quantiles")
    up_to = list(accumulate(buckets.counts))
    ranks = (max(1, math.ceil(share * buckets.count - _ROUNDING)) for share in shares)
    return [upper_bound(buckets.indexes[bisect_left(up_to, rank)]) for rank in ranks]


def count_up_to(buckets: Buckets, bound: float) -> int:
    """Returns the number of observations in buckets that end at or below `bound`.

    The number is exact if `bound` is the upper bound of a bucket.
    """
    limit = math.floor(math.log2(bound) * BUCKETS_PER_DOUBLING + _ROUNDING)
    return sum(count for index, count in zip(buckets.indexes, buckets.counts, strict=True) if index <= limit)
