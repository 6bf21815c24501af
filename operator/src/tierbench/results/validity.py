"""What may have distorted the numbers of a case, and the facts that explain them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tierbench.api.contract import Computer, LinkSample
from tierbench.api.link import Link, LinkPath
from tierbench.api.measurements import TcpRate
from tierbench.api.record import ResultTrial
from tierbench.api.result import Note, ResultSpec, Statistic
from tierbench.kinds.registry import kind_of, probe
from tierbench.results.quantities import good_trials, main_quantity
from tierbench.results.units import show

_SATURATED_SHARE: Final = 0.9
_WIDE_VARIATION: Final = 0.3
_NARROW_NANOSECONDS: Final = 10_000_000
_QUOTA_SHARE: Final = 0.01
_FULL_FREQUENCY_SHARE: Final = 0.9
_BOUND_SHARE: Final = 0.9
_BEYOND_SHARE: Final = 1.1
"""A trial that was faster than this had a burst or another network, so the network was not the limit."""
_FIXED_GOVERNOR: Final = "performance"
_RATE_SHARE: Final = 0.05
_ROUND_TRIP_SHARE: Final = 0.05
_ROUND_TRIP_NANOSECONDS: Final = 1_000_000
_HANDSHAKE_BITS: Final = 74 * 8
"""The first packet of a connection, which takes time on a slow link."""


def facts(spec: ResultSpec, trials: Sequence[ResultTrial], interruptions: int) -> tuple[Note, ...]:
    """Returns the notes that explain the numbers of the good trials and do not make them invalid."""
    good = good_trials(trials)
    notes = [
        *kind_of(spec.benchmark.kind).measures.facts(spec, good),
        *_network_facts(spec, good),
        *_computer_facts(good),
        *_link_facts(spec, good),
    ]
    again = sum(trial.interrupted for trial in trials)
    if again:
        message = f"{again} trial(s) were measured again, because a node was not Ready meanwhile."
        notes.append(Note(reason="Interrupted", message=message))
    if interruptions:
        message = f"The client ended early {interruptions} time(s). A new client continued with the missing trials."
        notes.append(Note(reason="Resumed", message=message))
    return tuple(notes)


def invalid(
    spec: ResultSpec,
    counted: Sequence[ResultTrial],
    good: Sequence[ResultTrial],
    statistics: Mapping[str, Statistic],
    cause: Note | None = None,
) -> tuple[Note, ...]:
    """Returns the notes on what may have distorted the numbers. `cause` is why the case ended early, if it did."""
    notes = [
        *_incomplete(spec, counted, good, cause),
        *kind_of(spec.benchmark.kind).measures.invalid(spec, good),
        *_throttled(good),
        *_link_problems(spec, good),
    ]
    saturated = sum(map(_is_client_saturated, good))
    if saturated:
        message = f"In {saturated} of {len(good)} trials the client used all its CPU: it may have been the limit."
        notes.append(Note(reason="ClientSaturated", message=message))
    if good and spec.server.node and all(trial.server is None for trial in good):
        message = "The agent next to the server sent no sample: disk, cache and CPU of the server's node are unknown."
        notes.append(Note(reason="ServerNotObserved", message=message))
    name = main_quantity(spec.benchmark.kind, statistics)
    main = statistics.get(name)
    if main is not None and _is_wide(main, name):
        share = 100 * (main.standard_deviation or 0) / main.mean
        message = (
            f"The standard deviation is {share:.0f}% of the mean: increase repetitions, or look for other load on the "
            "nodes."
        )
        notes.append(Note(reason="SpreadTooWide", message=message))
    return tuple(notes)


def _incomplete(
    spec: ResultSpec, counted: Sequence[ResultTrial], good: Sequence[ResultTrial], cause: Note | None
) -> list[Note]:
    notes = []
    if len(counted) < spec.trials:
        message = (
            f"Only {len(counted)} of {spec.trials} trials were run{'.' if cause is None else f': {cause.message}'}"
        )
        notes.append(Note(reason="TrialsMissing", message=message[:512]))
    if len(good) < len(counted):
        message = f"{len(counted) - len(good)} of {len(counted)} trials failed and are not in the statistics."
        notes.append(Note(reason="TrialsFailed", message=message))
    return notes


def _is_client_saturated(trial: ResultTrial) -> bool:
    """Whether the client used 90% of its CPU limit; False if it had none."""
    limit = trial.client.cpu_limit_millicores
    if limit is None:
        return False
    return trial.client.cpu_nanoseconds >= _SATURATED_SHARE * limit / 1000 * trial.duration_nanoseconds


def _is_wide(main: Statistic, quantity: str) -> bool:
    """Whether trials differ too much. A few milliseconds are noise on any computer, also in a short time."""
    deviation = main.standard_deviation or 0
    narrow = _NARROW_NANOSECONDS if quantity.endswith("Nanoseconds") else 0
    return deviation > narrow and deviation > _WIDE_VARIATION * main.mean


def _computer_facts(good: Sequence[ResultTrial]) -> list[Note]:
    """Reports processors below their highest frequency. This is usual while all cores are busy."""
    slow = sum(any(_is_below_maximum(computer) for _, computer in _computers(trial)) for trial in good)
    if not slow:
        return []
    message = (
        f"In {slow} of {len(good)} trials processors ran below {100 * _FULL_FREQUENCY_SHARE:.0f}% of their highest "
        f"frequency, although their governor is {_FIXED_GOVERNOR}."
    )
    return [Note(reason="FrequencyBelowMaximum", message=message)]


def _throttled(good: Sequence[ResultTrial]) -> list[Note]:
    """Reports computers that were throttled because of heat, or by a CPU quota."""
    causes = [tuple(_throttle_causes(trial)) for trial in good]
    throttled = sum(map(bool, causes))
    if not throttled:
        return []
    named = sorted({cause for found in causes for cause in found})
    message = f"In {throttled} of {len(good)} trials a computer was throttled: {', '.join(named)}."
    return [Note(reason="Throttled", message=message)]


def _throttle_causes(trial: ResultTrial) -> Iterator[str]:
    for side, computer in _computers(trial):
        if computer.thermal_throttles:
            yield f"the {side}'s because of heat"
        if (computer.quota_throttled_nanoseconds or 0) > _QUOTA_SHARE * trial.duration_nanoseconds:
            yield f"the {side}'s by a CPU quota"


def _computers(trial: ResultTrial) -> Iterator[tuple[str, Computer]]:
    if trial.client.computer is not None:
        yield "client", trial.client.computer
    if trial.server is not None and trial.server.computer is not None:
        yield "server", trial.server.computer


def _is_below_maximum(computer: Computer) -> bool:
    now, highest = computer.cpu_frequency_kilohertz, computer.cpu_max_kilohertz
    if now is None or highest is None or computer.cpu_governor != _FIXED_GOVERNOR:
        return False
    return now < _FULL_FREQUENCY_SHARE * highest


def _network_facts(spec: ResultSpec, good: Sequence[ResultTrial]) -> list[Note]:
    """Reports trials that were as fast as the network between the nodes, if the preflight has measured it."""
    if len(spec.networks) != 1:
        return []
    network, bits_per_second = spec.networks[0], kind_of(spec.benchmark.kind).measures.bits_per_second
    for name, way in (("down", network.download), ("up", network.upload)):
        rates = [rate for trial in good if way is not None and (rate := bits_per_second(trial, name)) is not None]
        bound = [rate for rate in rates if way is not None and _is_bound(rate, way)]
        if way is not None and bound:
            message = (
                f"The network was the limit in {len(bound)} of {len(good)} trials: at least {100 * _BOUND_SHARE:.0f}% "
                f"of the {show('throughputBitsPerSecond', way.bits_per_second)} {name} that {probe().program} measured "
                "in the preflight."
            )
            return [Note(reason="NetworkBound", message=message)]
    return []


def _is_bound(rate: float, way: TcpRate) -> bool:
    return _BOUND_SHARE <= rate / max(way.bits_per_second, 1) <= _BEYOND_SHARE


def _link_facts(spec: ResultSpec, good: Sequence[ResultTrial]) -> list[Note]:
    """Returns what clients measured of their links, next to what was asked."""
    if spec.link is None:
        return []
    texts = dict.fromkeys(_describe(spec.link, sample) for sample in _samples(good))
    return [Note(reason="LinkMeasured", message=f"Link {spec.link.name}: {'; '.join(texts)}."[:512])] if texts else []


def _link_problems(spec: ResultSpec, good: Sequence[ResultTrial]) -> list[Note]:
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
