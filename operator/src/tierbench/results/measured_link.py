"""Makes a link of what a benchmark has measured of a network, so that it can be imitated elsewhere."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import fmean
from typing import Final, Literal

from tierbench.api.link import USUAL_QUEUE_MILLISECONDS, Link, LinkPath, LinkTrace, TraceReference
from tierbench.api.result import BenchmarkResult, ResultPhase
from tierbench.results.quantities import good_trials
from tierbench.results.traces import ConnectionTrace, decode_trace

Way = Literal["up", "down"]
WAYS: Final[Mapping[Way, str]] = {"up": "Upload", "down": "Download"}
_SENDERS: Final[Mapping[Way, str]] = {"up": "Client", "down": "Server"}
_RATES: Final[Mapping[Way, str]] = {"up": "uploadBitsPerSecond", "down": "downloadBitsPerSecond"}
_FRAME: Final = 1514 / 1448
"""Bytes of an Ethernet frame per byte of payload of a full TCP segment, with timestamps."""
_LEAST_KILOBITS: Final = 100
_MOST_KILOBITS: Final = 1_000_000
_MOST_MICROSECONDS: Final = 500_000
_MOST_LOSS: Final = 500_000
_MOST_QUEUE: Final = 10_000
_UNIFORM: Final = sqrt(3 / 2)
"""The bound of two uniform jitters whose sum has a standard deviation of 1."""


@dataclass(frozen=True)
class MeasuredLink:
    """A link, the texts of its trace by key, and what it does not hold."""

    link: Link
    trace: Mapping[Way, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def measured_link(results: Sequence[BenchmarkResult], name: str, *, traced: bool = False) -> MeasuredLink:
    """Returns the link between the client and the server of these results.

    With `traced`, the rates are those over time that TCP's sender reported, and the link refers to a ConfigMap of its
    name.

    Raises:
        ValueError: the results are not about one network, or lack something that a link needs.
    """
    known = _usable(results)
    notes = _Notes()
    rates = {way: _rate(known, way, notes) for way in WAYS}
    traces = {way: _trace(known, way) for way in WAYS} if traced else {}
    for way in WAYS:
        if traced and not traces[way]:
            raise ValueError(
                f"no record has samples of TCP in the direction {WAYS[way]}: measure it with traceIntervalMilliseconds "
                "above 0, and read a file that has the records, as export -o json writes them"
            )
    paths = {way: _path(known, way, None if traced else rates[way], notes) for way in WAYS}
    reference = LinkTrace(config_map_ref=TraceReference(name=name)) if traced else None
    if traced:
        notes.add("The trace is what TCP made of the network: its slow start, its losses and its pauses are in it.")
    notes.add("The place where you replay it adds its own round trip and its own limits.")
    return MeasuredLink(
        Link(name=name, up=paths["up"], down=paths["down"], trace=reference), traces, tuple(notes.texts)
    )


class _Notes:
    """Sentences, each once."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, text: str) -> None:
        if text not in self.texts:
            self.texts.append(text)


def _usable(results: Sequence[BenchmarkResult]) -> list[BenchmarkResult]:
    networks = [
        result
        for result in results
        if "direction" in result.spec.levels
        and "pingNanoseconds" in result.status.statistics
        and result.status.phase is ResultPhase.COMPLETE
    ]
    if not networks:
        raise ValueError("no selected result has echo requests and a direction: a NetworkBenchmark with ping has them")
    known = [result for result in networks if result.spec.link is None and not result.spec.clients]
    if not known:
        raise ValueError("all selected results are over an imitated link, or of several clients at the same time")
    pairs = dict.fromkeys((result.spec.client.node_class, result.spec.server.node_class) for result in known)
    if len(pairs) > 1:
        found = ", ".join(f"{client} to {server}" for client, server in pairs)
        raise ValueError(f"the results are about several networks ({found}): name --client-class and --server-class")
    return known


def _mean(results: Sequence[BenchmarkResult], quantity: str) -> float | None:
    found = [result.status.statistics[quantity].mean for result in results if quantity in result.status.statistics]
    return fmean(found) if found else None


def _of(results: Sequence[BenchmarkResult], way: Way, protocol: str) -> list[BenchmarkResult]:
    return [
        result
        for result in results
        if result.spec.levels["direction"] == WAYS[way] and result.spec.levels.get("protocol") == protocol
    ]


def _rate(results: Sequence[BenchmarkResult], way: Way, notes: _Notes) -> int | None:
    """Returns the kilobits per second of frames: the highest mean rate of TCP."""
    of_way = [_mean([result], "throughputBitsPerSecond") for result in _of(results, way, "TCP")]
    of_both = [_mean([result], _RATES[way]) for result in results if result.spec.levels.get("protocol") == "TCP"]
    found = [rate for rate in of_way or of_both if rate]
    if not found:
        raise ValueError(f"no result has the rate of TCP in the direction {WAYS[way]}: measure it, too")
    kilobits = round(max(found) * _FRAME / 1000)
    if kilobits > _MOST_KILOBITS:
        notes.add(f"{WAYS[way]}s are faster than 1 Gbit/s, which no link imitates: {way} has no rate.")
        return None
    return max(kilobits, _LEAST_KILOBITS)


def _path(results: Sequence[BenchmarkResult], way: Way, kilobits: int | None, notes: _Notes) -> LinkPath:
    mean, spread = _mean(results, "pingNanoseconds") or 0, _mean(results, "pingStandardDeviationNanoseconds") or 0
    notes.add("Each direction has half of the round trip: a ping does not tell them apart.")
    delay = min(round(mean / 2000), _MOST_MICROSECONDS)
    return LinkPath(
        kilobits_per_second=kilobits,
        delay_microseconds=delay,
        jitter_microseconds=min(round(spread / 1000 * _UNIFORM), delay),
        loss_parts_per_million=min(round(_loss(results, way, notes)), _MOST_LOSS),
        queue_milliseconds=_queue(results, way, mean, notes),
    )


def _loss(results: Sequence[BenchmarkResult], way: Way, notes: _Notes) -> float:
    """Returns the lost packets per million: of UDP in this direction, or half of the lost echo requests."""
    packets = _mean(_of(results, way, "UDP"), "lostPartsPerMillion")
    if packets is not None:
        notes.add("Losses are those of UDP at the rate that was sent, with those of a full queue.")
        return packets
    echoes = _mean(results, "pingLostPartsPerMillion") or 0
    if echoes:
        notes.add("Losses are those of echo requests, shared between the directions: UDP tells them apart.")
    else:
        notes.add("No echo request was lost. Rare losses need UDP, or more requests.")
    return 1e6 * (1 - sqrt(1 - min(echoes, 1e6) / 1e6))


def _queue(results: Sequence[BenchmarkResult], way: Way, idle: float, notes: _Notes) -> int:
    """Returns the milliseconds by which a full queue delays echo requests in most cases."""
    loaded = _mean(_of(results, way, "TCP"), "pingUnderLoadP99Nanoseconds")
    if loaded is None:
        notes.add(f"The queue is the usual one of {USUAL_QUEUE_MILLISECONDS} ms: ping.underLoad measures it.")
        return USUAL_QUEUE_MILLISECONDS
    return max(1, min(round((loaded - idle) / 1e6), _MOST_QUEUE))


def _trace(results: Sequence[BenchmarkResult], way: Way) -> str:
    """Returns the rate in each second of the good trials of TCP, one after the other, as lines of seconds,Mbit/s."""
    lines: list[str] = []
    for result in _of(results, way, "TCP"):
        good = {trial.trial for trial in good_trials(result.recorded.trials)}
        for trace in result.recorded.traces:
            if trace.side == _SENDERS[way] and not trace.warmup and trace.trial in good:
                for rate in _seconds(decode_trace(trace)):
                    lines.append(f"{len(lines)},{rate * _FRAME / 1e6:.3f}\n")
    return "".join(lines)


def _seconds(connections: Sequence[ConnectionTrace]) -> Iterator[float]:
    """Yields the mean rate of all connections together in each second."""
    seconds: dict[int, list[float]] = {}
    for connection in connections:
        own: dict[int, list[int]] = {}
        for at, rate in zip(connection.milliseconds, connection.delivery_bits_per_second, strict=True):
            own.setdefault(at // 1000, []).append(rate)
        for second, rates in own.items():
            seconds.setdefault(second, []).append(fmean(rates))
    for second in sorted(seconds):
        yield sum(seconds[second])
