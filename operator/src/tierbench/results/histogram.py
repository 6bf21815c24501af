"""Sparse exponential histograms: the bucket indexing of Prometheus native histograms, at schema 6.

Bucket i holds values v with 2^((i-1)/64) < v <= 2^(i/64). Merging adds counts, so it is exact in any order.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate
from typing import Final

from tierbench.api.contract import HISTOGRAM_SCHEMA, Histogram

BUCKETS_PER_DOUBLING: Final = 2**HISTOGRAM_SCHEMA
_ROUNDING: Final = 1e-9


def upper_bound(index: int) -> float:
    """The largest value of a bucket, in nanoseconds."""
    whole, part = divmod(index, BUCKETS_PER_DOUBLING)
    return math.ldexp(2 ** (part / BUCKETS_PER_DOUBLING), whole)


def index_of(value: int) -> int:
    """The bucket of a value in nanoseconds, exactly: the least i with value^64 <= 2^i. Values below 1 count as 1."""
    return int(max(value, 1) ** BUCKETS_PER_DOUBLING - 1).bit_length()


def of(values: Iterable[int]) -> Histogram:
    """The histogram of values in nanoseconds."""
    known = list(values)
    return _from_counter(Counter(map(index_of, known)), sum(known))


def merge(histograms: Iterable[Histogram]) -> Histogram:
    """All observations together."""
    counter: Counter[int] = Counter()
    total = 0
    for histogram in histograms:
        counter.update(dict(zip(histogram.indexes, histogram.counts, strict=True)))
        total += histogram.sum_nanoseconds
    return _from_counter(counter, total)


def _from_counter(counter: Counter[int], total: int) -> Histogram:
    indexes = tuple(sorted(index for index, count in counter.items() if count))
    counts = tuple(counter[index] for index in indexes)
    return Histogram(count=sum(counts), sum_nanoseconds=total, indexes=indexes, counts=counts)


def quantile(histogram: Histogram, share: float) -> float:
    """The upper bound of the bucket in which the quantile lies, in nanoseconds: at most 1.1 % too high.

    Raises:
        ValueError: the histogram is empty.
    """
    (found,) = quantiles(histogram, [share])
    return found


def quantiles(histogram: Histogram, shares: Iterable[float]) -> list[float]:
    """Several quantiles.

    Raises:
        ValueError: the histogram is empty.
    """
    if not histogram.count:
        raise ValueError("an empty histogram has no quantiles")
    up_to = list(accumulate(histogram.counts))
    wanted = (max(1, math.ceil(share * histogram.count - _ROUNDING)) for share in shares)
    return [upper_bound(histogram.indexes[bisect_left(up_to, number)]) for number in wanted]


def count_up_to(histogram: Histogram, bound: float) -> int:
    """Observations in buckets that lie wholly at or below `bound` nanoseconds; exact where `bound` is a bucket's."""
    limit = math.floor(math.log2(bound) * BUCKETS_PER_DOUBLING + _ROUNDING)
    return sum(count for index, count in zip(histogram.indexes, histogram.counts, strict=True) if index <= limit)
