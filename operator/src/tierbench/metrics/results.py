"""Metrics of all results: the newest complete run of each benchmark, computed when Prometheus asks."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from tierbench.api.benchmark import Phase
from tierbench.api.result import BenchmarkResult, ResultPhase
from tierbench.metrics import file_transfer
from tierbench.metrics.cache import CachedBenchmark, ResultCache
from tierbench.metrics.family import Families, Labels

KINDS: Final = {"FileTransferBenchmark": file_transfer}
_RATIOS: Final = {
    "serverIoWaitPartsPerMillion": ("tierbench_server_io_wait_ratio", "Share of CPU time waiting for I/O, mean."),
    "serverIoPressurePartsPerMillion": (
        "tierbench_server_io_pressure_ratio",
        "Share of time in which some task of the server's node waited for I/O, mean.",
    ),
    "serverCpuPartsPerMillion": ("tierbench_server_cpu_ratio", "Share of CPU time busy on the server's node, mean."),
    "serverResidentPartsPerMillion": (
        "tierbench_server_resident_ratio",
        "Share of the served file in the page cache when a trial began, mean.",
    ),
}


class ResultCollector(Collector):
    """Deleting a benchmark ends its series; a newer complete run takes the place of the older."""

    def __init__(self, cache: ResultCache) -> None:
        self._cache = cache

    def collect(self) -> Iterable[Metric]:
        """Every family, from what is cached now."""
        families = Families()
        for benchmark in self._cache.benchmarks:
            _benchmark(families, benchmark)
        for benchmark, results in self._cache.newest():
            for result in results:
                _result(families, benchmark, result)
        return families.collect()


def _benchmark(families: Families, benchmark: CachedBenchmark) -> None:
    known = {"benchmark_kind": benchmark.kind, "benchmark_namespace": benchmark.namespace, "benchmark": benchmark.name}
    status = benchmark.status
    for phase in Phase:
        text = "1 for the phase that the benchmark is in."
        value = float(status.phase is phase)
        families.gauge("tierbench_benchmark_phase", text, {**known, "phase": phase.value}, value)
    counts = {
        "total": status.cases.total,
        "ended": status.cases.ended,
        "failed": status.cases.failed,
        "invalid": status.cases.invalid,
    }
    for state, number in counts.items():
        families.gauge("tierbench_benchmark_cases", "Cases of the run by state.", {**known, "state": state}, number)
    run = status.run
    if run is not None and run.completion_time is not None and status.phase is Phase.COMPLETE:
        ended = datetime.fromisoformat(run.completion_time).timestamp()
        text = "When the newest successful run ended."
        families.gauge("tierbench_benchmark_last_success_timestamp_seconds", text, known, ended)


def _result(families: Families, benchmark: CachedBenchmark, result: BenchmarkResult) -> None:
    spec, status = result.spec, result.status
    common = {
        "benchmark_namespace": benchmark.namespace,
        "benchmark": benchmark.name,
        "server_class": spec.server.node_class,
        "client_class": spec.client.node_class,
        "server_node": spec.server.node,
        "client_node": spec.client.node,
    }
    kind = KINDS[benchmark.kind]
    kind.add(families, common, result)
    known = {**common, **kind.labels(result)}
    _server(families, known, result)
    measured = status.phase is ResultPhase.MEASURED
    families.gauge("tierbench_result_measured", "1 if the case was measured, 0 if it failed.", known, float(measured))
    if measured:
        text = "1 if nothing is known that could have spoiled the numbers."
        families.gauge("tierbench_result_valid", text, known, float(status.valid is True))
    _info(families, known, result)


def _server(families: Families, known: Labels, result: BenchmarkResult) -> None:
    statistics = result.status.statistics
    for name, (metric, text) in _RATIOS.items():
        value = statistics.get(name)
        families.gauge(metric, text, known, None if value is None else value.mean / 1e6)
    read = statistics.get("serverDeviceReadBytes")
    text = "Bytes that the served files' device read in a trial, mean."
    families.gauge("tierbench_server_device_read_bytes", text, known, None if read is None else read.mean)
    again = statistics.get("tcpRetransmits")
    text = "TCP segments sent again in a trial, mean."
    families.gauge("tierbench_server_tcp_retransmits", text, known, None if again is None else again.mean)
    trip = statistics.get("roundTripNanoseconds")
    text = "Smoothed round-trip time at the server, mean."
    families.gauge("tierbench_server_round_trip_seconds", text, known, None if trip is None else trip.mean / 1e9)


def _info(families: Families, known: Labels, result: BenchmarkResult) -> None:
    server = result.spec.server
    facts = {
        "run": str(result.spec.run),
        "architecture": server.architecture,
        "kernel": server.kernel,
        "access_network": server.access_network,
        "storage": server.storage,
    }
    families.gauge("tierbench_result_info", "What the server's node was.", {**known, **facts}, 1)
