"""Whether a load came to a steady state, and after how many messages. Pure.

MSER-5 (White, Simulation 69, 1997; Hoad, Robinson and Davies, JORS 61, 2010) of the round trips of all pairs. It is of
their logarithms, the buckets' indexes, in which one stall is not taken for a trend.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from .histogram import Histogram

_BATCH: Final = 5  # messages
_MOST_BATCHES: Final = 256  # of a series: then each two become one
_SEGMENT: Final = 8  # batches whose distributions are kept together
_LEAST_BATCHES: Final = 40  # for a verdict


@dataclass
class Times:
    """Distributions of a pair's messages."""

    round_trip: Histogram = field(default_factory=Histogram)
    round_trip_actual: Histogram = field(default_factory=Histogram)
    acknowledge: Histogram = field(default_factory=Histogram)

    @property
    def operations(self) -> int:
        """Messages that came back; if none does, that were acknowledged."""
        return self.round_trip.count or self.acknowledge.count

    def include(self, other: "Times") -> None:
        """All observations of others."""
        self.round_trip.include(other.round_trip)
        self.round_trip_actual.include(other.round_trip_actual)
        self.acknowledge.include(other.acknowledge)


class Series:
    """The course of one pair's round trips: sums of batches, and the distributions of each segment of batches.

    However long it is, it keeps no more than 256 batches, of as many messages each.
    """

    def __init__(self) -> None:
        self.size = _BATCH
        self.sums: list[int] = []
        self.segments: list[Times] = []
        self.latest = Times()
        self._filling = self._filled = 0

    def add(self, round_trip: int, actual: int) -> None:
        """A message came back: nanoseconds from when it was to be sent, and from when it was."""
        self.latest.round_trip_actual.add(actual)
        self._log(self.latest.round_trip.add(round_trip))

    def acknowledge(self, nanoseconds: int, *, is_last: bool) -> None:
        """A message was acknowledged so long after it was sent; `is_last`: nothing more comes of it."""
        index = self.latest.acknowledge.add(nanoseconds)
        if is_last:
            self._log(index)

    def _log(self, index: int) -> None:
        self._filling += index
        self._filled += 1
        if self._filled == self.size:
            self._seal()

    def _seal(self) -> None:
        self.sums.append(self._filling)
        self._filling = self._filled = 0
        if len(self.sums) % _SEGMENT:
            return
        self.segments.append(self.latest)
        self.latest = Times()
        if len(self.sums) == _MOST_BATCHES:
            self.size *= 2
            self.sums = _coarser(self.sums, 2)
            for first, second in zip(self.segments[::2], self.segments[1::2], strict=True):
                first.include(second)
            del self.segments[1::2]

    def discard(self, messages: int) -> int:
        """Drops the segments that begin within so many messages; how many those were."""
        dropped = -(-messages // (self.size * _SEGMENT))
        discarded = sum(segment.operations for segment in self.segments[:dropped])
        del self.segments[:dropped]
        return discarded

    def times(self) -> Times:
        """The distributions of all that was not discarded."""
        merged = Times()
        for segment in (*self.segments, self.latest):
            merged.include(segment)
        return merged


def warm_up(all_series: Sequence[Series]) -> tuple[int, bool | None]:
    """How many messages of each pair came before the steady state, and whether there was one. None: too few to tell."""
    size = max(series.size for series in all_series)
    coarse = [_coarser(series.sums, size // series.size) for series in all_series]
    batches = [sum(sums) for sums in zip(*coarse, strict=False)]
    if len(batches) < _LEAST_BATCHES:
        return 0, None
    before = truncation(batches)
    steady = before <= len(batches) // 2
    return (before * size if steady else 0), steady


def truncation(values: Sequence[int]) -> int:
    """How many values are to be left out so that the standard error of the mean of the others is least.

    No fewer than a quarter remain.
    """
    last = [float(value - values[-1]) for value in reversed(values)]
    sums, squares = accumulate(last), accumulate(value * value for value in last)
    errors = [
        ((square - total * total / number) / number**2, len(values) - number)
        for number, (total, square) in enumerate(zip(sums, squares, strict=True), 1)
        if number >= len(values) // 4
    ]
    return min(errors)[1]


def _coarser(sums: Sequence[int], factor: int) -> list[int]:
    """Sums of each `factor` neighbours; what is left over is dropped."""
    whole = len(sums) - len(sums) % factor
    return [sum(sums[start : start + factor]) for start in range(0, whole, factor)]
