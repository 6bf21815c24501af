"""Metric families and the samples of objects, in little memory.

An object stores its labels once and a number per sample. Objects with the same samples share one layout. The text is
written here because prometheus_client takes 18 µs per sample, which is 8 s for 10,000 results. Gauges and histograms
are the same in Prometheus' text format 0.0.4 and in OpenMetrics 1.0.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, Literal

Labels = Mapping[str, str]

_BATCH: Final = 500
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(frozen=True, eq=False)
class Family:
    """A metric family: its name, its type, and its help text."""

    name: str
    kind: Literal["gauge", "histogram"]
    text: str


def gauge(name: str, text: str) -> Family:
    """Returns a family of gauges."""
    return Family(name, "gauge", text)


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

    def add_histogram(self, family: Family, tails: Sequence[str], counts: Sequence[int], total: float) -> None:
        """Adds a histogram.

        `tails` are the bounds as `le` labels, of which the last is infinite. `counts` are the observations up to each
        bound, `total` is their sum.
        """
        buckets = [(family, "_bucket", tail) for tail in tails]
        self._extend([*buckets, (family, "_count", ""), (family, "_sum", "")], [*counts, counts[-1], total])

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
