"""What one trial of a network gives."""

from collections.abc import Iterable
from statistics import fmean
from typing import Final

from tierbench.api.contract import Echoes, Flow, ServerSample
from tierbench.api.result import ResultTrial

MAIN: Final = "throughputBitsPerSecond"
TIME: Final = "pingNanoseconds"
RATE: Final = MAIN


def of(trial: ResultTrial) -> dict[str, float | None]:
    """Quantities by name; None where the trial does not tell. Throughput is what receivers got, both ways together."""
    network, sample = trial.network, trial.server or ServerSample()
    if network is None:
        return {}
    flows = [flow for flow in (network.upload, network.download) if flow is not None]
    return {
        "throughputBitsPerSecond": sum(flow.bits_per_second for flow in flows) if flows else None,
        **_each_way(network.upload, network.download),
        "retransmits": _sum(flow.retransmits for flow in flows),
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


def _echoes(echoes: Echoes, trial: ResultTrial) -> dict[str, float | None]:
    spread = trial.round_trip
    return {
        "pingNanoseconds": echoes.mean_nanoseconds,
        "pingMinimumNanoseconds": echoes.minimum_nanoseconds,
        "pingMaximumNanoseconds": echoes.maximum_nanoseconds,
        "pingStandardDeviationNanoseconds": echoes.standard_deviation_nanoseconds,
        "pingP50Nanoseconds": None if spread is None else spread.p50,
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
