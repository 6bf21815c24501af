"""Metric families and the samples of objects, in little memory.

An object stores its labels once and a number per sample. Objects with the same samples share one layout. The text is
written here because prometheus_client takes 18 µs per sample, which is 8 s for 10,000 results. Gauges and histograms
are the same in Prometheus' text format 0.0.4 and in OpenMetrics 1.0.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, Literal

from tierbench.api.result import Statistic

Labels = Mapping[str, str]

_BATCH: Final = 500
_UNITS: Final = {"Nanoseconds": 1e9, "PartsPerMillion": 1e6}
"""How many of the unit at the end of a quantity's name are one base unit of Prometheus."""
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(frozen=True, eq=False)
class Family:
    """A metric family: its name, its type, and its help text."""

    name: str
    kind: Literal["gauge", "histogram"]
    text: str


@dataclass(frozen=True, eq=False)
class Histogram(Family):
    """A family of histograms of times. The bounds are powers of two of a second, and the last bucket has none."""

    exponents: range

    @cached_property
    def bounds(self) -> Sequence[float]:
        """The upper bounds of the buckets, in seconds."""
        return [2.0**exponent for exponent in self.exponents]

    @cached_property
    def positions(self) -> Sequence[tuple[Family, str, str]]:
        """The positions of a histogram's samples."""
        bounds = (*map(repr, self.bounds), "+Inf")
        buckets = ((self, "_bucket", "," + label_text({"le": bound})) for bound in bounds)
        return [*buckets, (self, "_count", ""), (self, "_sum", "")]


def gauge(name: str, text: str) -> Family:
    """Returns a family of gauges."""
    return Family(name, "gauge", text)


def gauges(prefix: str) -> Callable[[str, str], Family]:
    """Returns a function like `gauge`, which puts a prefix before each name."""
    return lambda name, text: gauge(f"{prefix}_{name}", text)


def histogram(name: str, text: str, exponents: range) -> Histogram:
    """Returns a family of histograms. The bounds are 2 to the power of each exponent, in seconds."""
    return Histogram(name, "histogram", text, exponents)


def in_base_unit(quantity: str, value: float) -> float:
    """Returns a value in the base unit of Prometheus, such as seconds for a quantity in nanoseconds."""
    return value / next((number for unit, number in _UNITS.items() if quantity.endswith(unit)), 1)


def label_text(labels: Labels) -> str:
    """Returns labels as the text format writes them between braces."""
    return ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items())


_Position = tuple[Family, str, str]
"""The family of a sample, the suffix of its name, and the labels that follow those of the object."""


@dataclass(frozen=True)
class _Layout:
    """The positions of all samples of an object."""

    positions: tuple[_Position, ...]

    @cached_property
    def families(self) -> Mapping[Family, Sequence[int]]:
        """The indexes of the samples of each family."""
        found: dict[Family, list[int]] = {}
        for index, (family, _, _) in enumerate(self.positions):
            found.setdefault(family, []).append(index)
        return found


_shared_layout: Final = lru_cache(maxsize=4096)(_Layout)


class Samples:
    """All samples of one object, such as a result."""

    __slots__ = ("_layout", "_values", "labels")

    def __init__(self, labels: Labels) -> None:
        """Takes the labels of all samples of the object."""
        self.labels = label_text(labels)
        self._layout = _shared_layout(())
        self._values: tuple[float, ...] = ()

    def add(self, family: Family, value: float | None, more: Labels | None = None) -> None:
        """Adds a sample, unless the value is None. The labels `more` follow those of the object."""
        if value is not None:
            self._extend([(family, "", f",{label_text(more)}" if more else "")], [value])

    def add_means(self, families: Mapping[str, Family], statistics: Mapping[str, Statistic]) -> None:
        """Adds the means of quantities. `families` are by quantity."""
        for quantity, family in families.items():
            known = statistics.get(quantity)
            self.add(family, None if known is None else in_base_unit(quantity, known.mean))

    def add_histogram(
        self, family: Histogram, count_up_to: Callable[[float], int], count: int, nanoseconds: float
    ) -> None:
        """Adds a histogram.

        `count_up_to` returns the number of observations up to a bound in nanoseconds. `count` is the number of all
        observations, and `nanoseconds` is their sum.
        """
        counts = [*(count_up_to(round(bound * 1e9)) for bound in family.bounds), count]
        self._extend(family.positions, [*counts, count, nanoseconds / 1e9])

    def _extend(self, positions: Sequence[_Position], values: Sequence[float]) -> None:
        self._layout = _shared_layout((*self._layout.positions, *positions))
        self._values += tuple(values)

    @property
    def families(self) -> tuple[Family, ...]:
        """The families of the samples."""
        return tuple(self._layout.families)

    def lines(self, family: Family) -> Iterator[str]:
        """Yields the lines of the samples of a family."""
        for index in self._layout.families.get(family, ()):
            _, suffix, tail = self._layout.positions[index]
            yield f"{family.name}{suffix}{{{self.labels}{tail}}} {self._values[index]}\n"


def render(objects: Sequence[Samples]) -> Iterator[str]:
    """Yields the text of all samples, family by family, in pieces of at most a few megabytes."""
    families = dict.fromkeys(family for samples in objects for family in samples.families)
    for family in families:
        yield f"# HELP {family.name} {family.text}\n# TYPE {family.name} {family.kind}\n"
        for start in range(0, len(objects), _BATCH):
            text = "".join(line for samples in objects[start : start + _BATCH] for line in samples.lines(family))
            if text:
                yield text
