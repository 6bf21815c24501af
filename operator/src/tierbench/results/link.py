"""Compares the link that a client measured with the link that the spec declares."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tierbench.api.contract import LinkSample
from tierbench.api.link import Link, LinkPath
from tierbench.api.record import ResultTrial
from tierbench.api.result import Note, ResultSpec
from tierbench.results.units import show

_RATE_SHARE: Final = 0.05
_ROUND_TRIP_SHARE: Final = 0.05
_ROUND_TRIP_NANOSECONDS: Final = 1_000_000
_HANDSHAKE_BITS: Final = 74 * 8
"""The first packet of a connection, which takes time on a slow link."""


def link_facts(spec: ResultSpec, good: Sequence[ResultTrial]) -> list[Note]:
    """Returns what clients measured of their links, next to what was asked."""
    if spec.link is None:
        return []
    texts = dict.fromkeys(_describe(spec.link, sample) for sample in _samples(good))
    return [Note(reason="LinkMeasured", message=f"Link {spec.link.name}: {'; '.join(texts)}."[:512])] if texts else []


def link_problems(spec: ResultSpec, good: Sequence[ResultTrial]) -> list[Note]:
    """Returns that a link differs from what was asked, or is not known."""
    if spec.link is None or not good:
        return []
    samples = _samples(good)
    if len(samples) < len(good) or any(_is_incomplete(spec.link, sample) for sample in samples):
        message = f"A client could not measure all of its link {spec.link.name}."
        return [Note(reason="LinkNotMeasured", message=message)]
    texts = dict.fromkeys(text for sample in samples for text in _differences(spec.link, sample))
    if not texts:
        return []
    message = f"Link {spec.link.name} is not as declared: {', '.join(texts)}."
    return [Note(reason="LinkDiffers", message=message[:512])]


def _samples(good: Sequence[ResultTrial]) -> list[LinkSample]:
    return [trial.client.link for trial in good if trial.client.link is not None]


@dataclass(frozen=True)
class _Rate:
    """The asked and the measured rate of a direction, in bits per second."""

    name: str
    path: LinkPath
    asked: int
    measured: int | None

    def __str__(self) -> str:
        return _compared(self.name, "rateBitsPerSecond", self.measured or 0, self.asked)

    @property
    def differs(self) -> bool:
        """Whether the rate is not the asked one. TCP does not fill a link that loses packets."""
        known = self.measured is not None and not self.path.loss_parts_per_million
        return known and abs((self.measured or 0) / self.asked - 1) > _RATE_SHARE


def _rates(link: Link, sample: LinkSample) -> list[_Rate]:
    """Returns the rates of the directions that have one."""
    measured = sample.upload_bits_per_second, sample.download_bits_per_second
    return [
        _Rate(name, path, path.kilobits_per_second * 1000, rate)
        for name, path, rate in zip(("up", "down"), link.paths, measured, strict=True)
        if path.kilobits_per_second is not None
    ]


def _is_incomplete(link: Link, sample: LinkSample) -> bool:
    return sample.round_trip_nanoseconds is None or any(rate.measured is None for rate in _rates(link, sample))


def _round_trip(link: Link) -> float:
    """Returns the nanoseconds of a round trip of small packets that the link asks for."""
    return sum(
        1000 * path.delay_microseconds + 1e6 * _HANDSHAKE_BITS / (path.kilobits_per_second or 1e6)
        for path in link.paths
    )


def _describe(link: Link, sample: LinkSample) -> str:
    texts = [str(rate) for rate in _rates(link, sample) if rate.measured is not None]
    if sample.round_trip_nanoseconds is not None:
        texts.insert(0, _compared_round_trip(link, sample.round_trip_nanoseconds))
    return ", ".join(texts) or "nothing was measured"


def _differences(link: Link, sample: LinkSample) -> Iterator[str]:
    asked, measured = _round_trip(link), sample.round_trip_nanoseconds or 0
    jitter = sum(1000 * path.jitter_microseconds for path in link.paths)
    allowed = _ROUND_TRIP_NANOSECONDS + _ROUND_TRIP_SHARE * asked + jitter
    # A trace makes packets wait.
    if measured < asked - allowed or (measured > asked + allowed and link.trace is None):
        yield _compared_round_trip(link, measured)
    yield from (str(rate) for rate in _rates(link, sample) if rate.differs)


def _compared_round_trip(link: Link, measured: int) -> str:
    return _compared("round trip", "roundTripNanoseconds", measured, _round_trip(link))


def _compared(name: str, quantity: str, measured: float, asked: float) -> str:
    return f"{name} {show(quantity, measured)} ({show(quantity, asked)} asked)"
