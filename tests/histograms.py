"""Exponential histograms of values, computed exactly with integers: the reference for the clients' histograms."""

from collections import Counter
from collections.abc import Iterable

from tierbench.api.contract import Histogram
from tierbench.stats.distributions import BUCKETS_PER_DOUBLING


def bucket_index(value: int) -> int:
    """Returns the bucket of a value: the least i with value^64 <= 2^i. Values below 1 count as 1."""
    return int(max(value, 1) ** BUCKETS_PER_DOUBLING - 1).bit_length()


def histogram_of(values: Iterable[int]) -> Histogram:
    """Returns the histogram of values in nanoseconds."""
    known = list(values)
    buckets = sorted(Counter(map(bucket_index, known)).items())
    return Histogram(
        count=len(known),
        sum_nanoseconds=sum(known),
        indexes=tuple(index for index, _ in buckets),
        counts=tuple(count for _, count in buckets),
    )
