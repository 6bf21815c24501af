"""What one trial of a network gives."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Final

from tierbench.api.contract import ClientShare, Echoes, Flow, ServerSample, TcpActivity
from tierbench.api.result import ResultTrial
from tierbench.results.shares import fairness

RATE: Final = "throughputBitsPerSecond"
MAIN: Final = (RATE,)
TIME: Final = ("pingNanoseconds",)
TIMES: Final[Mapping[str, str]] = {}
_NOT_SEEN: Final = ServerSample()


def of(trial: ResultTrial) -> dict[str, float | None]:
    """Quantities by name; None where the trial does not tell. Throughput is what receivers got, both ways together."""
    network, sample = trial.network, trial.server or _NOT_SEEN
    if network is None:
        return {}
    flows = [flow for flow in (network.upload, network.download) if flow is not None]
    return {
        "throughputBitsPerSecond": sum(flow.bits_per_second for flow in flows) if flows else None,
        "sentBitsPerSecond": _sum(flow.sent_bits_per_second for flow in flows),
        **_each_way(network.upload, network.download),
        **_each_client(network.shares),
        "retransmits": _sum(flow.retransmits for flow in flows),
        **_states([flow.tcp for flow in flows if flow.tcp is not None]),
        "lostPartsPerMillion": _share(_sum(f.lost_packets for f in flows), _sum(f.packets for f in flows)),
        "outOfOrderPackets": _sum(flow.out_of_order_packets for flow in flows),
        "jitterNanoseconds": _mean(flow.jitter_nanoseconds for flow in flows),
        **_echoes(network.ping or Echoes(), trial),
        "clientCpuPartsPerMillion": _share(trial.client.cpu_nanoseconds, trial.duration_nanoseconds),
        "iperf3CpuPartsPerMillion": _share(sample.process_cpu_nanoseconds, trial.duration_nanoseconds),
        "serverCpuPartsPerMillion": sample.cpu_parts_per_million,
        "tcpRoundTripNanoseconds": sample.round_trip_nanoseconds,
    }


def _each_way(upload: Flow | None, download: Flow | None) -> dict[str, float | None]:
    """Where data went both ways at once."""
    if upload is None or download is None:
        return {}
    return {"uploadBitsPerSecond": upload.bits_per_second, "downloadBitsPerSecond": download.bits_per_second}


def _each_client(shares: Sequence[ClientShare]) -> dict[str, float | None]:
    """Where several measured at once: Jain's index, and what each got, counted from 1."""
    rates = [share.bits_per_second for share in shares]
    if not any(rates):
        return {}
    each = {f"client{share.client + 1}BitsPerSecond": float(share.bits_per_second) for share in shares}
    return {"fairnessPartsPerMillion": 1e6 * fairness(rates), **each}


def _states(activities: Sequence[TcpActivity]) -> dict[str, float | None]:
    """The share of samples in which TCP had lost something, or was told of congestion: all states but Open."""
    samples = sum(activity.samples for activity in activities)
    if not samples:
        return {}
    is_open = sum(activity.states_parts_per_million.get("Open", 0) * activity.samples for activity in activities)
    return {"tcpNotOpenPartsPerMillion": 1e6 - is_open / samples}


def _echoes(echoes: Echoes, trial: ResultTrial) -> dict[str, float | None]:
    spread = trial.round_trip
    return {
        "pingNanoseconds": echoes.mean_nanoseconds,
        "pingMinimumNanoseconds": echoes.minimum_nanoseconds,
        "pingMaximumNanoseconds": echoes.maximum_nanoseconds,
        "pingStandardDeviationNanoseconds": echoes.standard_deviation_nanoseconds,
        "pingP50Nanoseconds": None if spread is None else spread.p50,
        "pingP90Nanoseconds": None if spread is None else spread.p90,
        "pingP99Nanoseconds": None if spread is None else spread.p99,
        "pingLostPartsPerMillion": _share(echoes.sent - echoes.received, echoes.sent),
    }


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _mean(values: Iterable[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _share(part: int | None, whole: int | None) -> float | None:
    return 1e6 * part / whole if whole and part is not None else None
