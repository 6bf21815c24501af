"""Sparse exponential histograms: the bucket indexing of Prometheus native histograms, at schema 6."""

import math
from collections import Counter
from typing import Any, Final

_SCHEMA: Final = 6
_BUCKETS_PER_DOUBLING: Final = 2**_SCHEMA
_DOUBT: Final = 1e-6  # of a bucket: nearer to a bound than this, floating point does not decide


def index_of(value: int) -> int:
    """The bucket of a value in nanoseconds: the least i with value <= 2^(i/64). Values below 1 count as 1."""
    if value <= 1:
        return 0
    position = math.log2(value) * _BUCKETS_PER_DOUBLING
    if abs(position - round(position)) > _DOUBT:
        return math.ceil(position)
    return int(value**_BUCKETS_PER_DOUBLING - 1).bit_length()


class Histogram:
    """A distribution of nanoseconds."""

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self._sum = 0

    def add(self, nanoseconds: int) -> int:
        """One observation; the index of its bucket."""
        index = index_of(nanoseconds)
        self._buckets[index] += 1
        self._sum += nanoseconds
        return index

    def include(self, other: "Histogram") -> None:
        """All observations of another one."""
        self._buckets.update(other._buckets)
        self._sum += other._sum

    @property
    def count(self) -> int:
        """Observations."""
        return self._buckets.total()

    def median(self) -> float:
        """The upper end of the bucket that has it, of at least one observation."""
        ordered = sorted(self._buckets.elements())
        return math.pow(2, ordered[(len(ordered) - 1) // 2] / _BUCKETS_PER_DOUBLING)

    def to_json(self) -> dict[str, Any]:
        """As the contract writes it."""
        indexes = sorted(self._buckets)
        counts = [self._buckets[index] for index in indexes]
        return {
            "schema": _SCHEMA,
            "count": self.count,
            "sumNanoseconds": self._sum,
            "indexes": indexes,
            "counts": counts,
        }
