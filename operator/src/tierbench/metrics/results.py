"""The metrics of benchmarks, and of the results of the newest ended run of each."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from tierbench.api.benchmark import Phase
from tierbench.api.quantity import parse_size
from tierbench.api.result import BenchmarkResult, ResultPhase
from tierbench.domain.results import NewestRun, ResultStore
from tierbench.kinds.registry import Metrics, kind_of
from tierbench.metrics.family import Labels, Samples, gauge, in_base_unit
from tierbench.results.nodes import network_quantities
from tierbench.results.units import is_size

PHASE: Final = gauge("tierbench_benchmark_phase", "1 for the phase of the benchmark, 0 for the other phases.")
CASES: Final = gauge("tierbench_benchmark_cases", "Cases of the active run, or of the last one, by state.")
LAST_SUCCESS: Final = gauge(
    "tierbench_benchmark_last_success_timestamp_seconds", "When a case of an ended run was last measured."
)
VERDICTS: Final = {
    "Passed": gauge(
        "tierbench_benchmark_passed",
        "1 if the last run met runPolicy.constraints, 0 if not; absent without constraints.",
    ),
    "Regressed": gauge(
        "tierbench_benchmark_regressed",
        "1 if the last run was shown to be worse than an earlier one, 0 if not; absent without a comparable run.",
    ),
}
MEASURED: Final = gauge("tierbench_result_measured", "1 if the case was measured, 0 if it failed.")
VALID: Final = gauge("tierbench_result_valid", "1 if nothing is known that may have distorted the numbers.")
INFO: Final = gauge("tierbench_result_info", "Facts of the nodes and parameters of all cases, always 1.")
_RUNNING: Final = "Running"
SERVER_MEANS: Final = {
    "serverIoWaitPartsPerMillion": gauge(
        "tierbench_server_io_wait_ratio", "Share of CPU time that the server's node waited for I/O, mean."
    ),
    "serverIoPressurePartsPerMillion": gauge(
        "tierbench_server_io_pressure_ratio",
        "Share of time in which some task of the server's node waited for I/O, mean.",
    ),
    "serverCpuPartsPerMillion": gauge(
        "tierbench_server_cpu_ratio", "Share of CPU time that the server's node was busy, mean."
    ),
    "serverResidentPartsPerMillion": gauge(
        "tierbench_server_resident_ratio", "Share of the served file in the page cache when a trial began, mean."
    ),
    "serverDeviceReadBytes": gauge(
        "tierbench_server_device_read_bytes", "Bytes that the served files' device read per trial, mean."
    ),
    "tcpRetransmits": gauge(
        "tierbench_server_tcp_retransmits", "TCP segments that the server's side sent again per trial, mean."
    ),
    "tcpRoundTripNanoseconds": gauge(
        "tierbench_server_round_trip_seconds", "Smoothed round-trip time of TCP at the server's side, mean."
    ),
}
_PREFLIGHT: Final = {
    "uploadBitsPerSecond": gauge(
        "tierbench_preflight_upload_bits_per_second", "Payload per second from client to server before the first case."
    ),
    "downloadBitsPerSecond": gauge(
        "tierbench_preflight_download_bits_per_second",
        "Payload per second from server to client before the first case.",
    ),
    "pingNanoseconds": gauge(
        "tierbench_preflight_ping_mean_seconds", "Round trip of echo requests before the first case, mean."
    ),
    "pingLostPartsPerMillion": gauge(
        "tierbench_preflight_ping_lost_ratio", "Share of echo requests before the first case without an answer."
    ),
}


def result_samples(result: BenchmarkResult) -> Samples:
    """Returns the samples of an ended result.

    Raises:
        ValueError: the level of a size is not a size.
    """
    spec, status = result.spec, result.status
    kind = kind_of(spec.benchmark.kind).metrics
    samples = Samples(
        {
            "benchmark_namespace": result.metadata.namespace or "",
            "benchmark": spec.benchmark.name,
            "server_class": spec.server.node_class,
            "client_class": spec.client.node_class,
            "server_node": spec.server.node,
            "client_node": spec.client.node,
            **_labels(spec.levels, kind.factors),
        }
    )
    kind.add(samples, result)
    samples.add_means(SERVER_MEANS, status.statistics)
    measured = status.phase is ResultPhase.MEASURED
    samples.add(MEASURED, int(measured))
    samples.add(VALID, int(status.valid is True) if measured else None)
    samples.add(INFO, 1, _info(result, kind))
    return samples


@cache
def label_name(name: str) -> str:
    """Returns the label of a factor or parameter: file_size for fileSize."""
    return re.sub("(?=[A-Z])", "_", name).lower()


def _labels(levels: Mapping[str, str], names: Sequence[str]) -> Labels:
    """Returns the levels with these names as labels. Sizes are in bytes."""
    known = {name: levels[name] for name in names if name in levels}
    return {label_name(name): str(parse_size(level)) if is_size(name) else level for name, level in known.items()}


def _info(result: BenchmarkResult, kind: Metrics) -> Labels:
    spec, status = result.spec, result.status
    return {
        "benchmark_kind": spec.benchmark.kind,
        "run": str(spec.run),
        "valid": "" if status.valid is None else str(status.valid).lower(),
        "architecture": spec.server.architecture,
        "kernel": spec.server.kernel,
        "server_access_network": spec.server.access_network,
        "server_storage": spec.server.storage,
        "client_access_network": spec.client.access_network,
        **_labels(spec.conditions, kind.parameters),
    }


def samples(store: ResultStore[Samples]) -> list[Samples]:
    """Returns the samples of all benchmarks and of the results of their newest ended runs. No labels occur twice.

    Two results have the same labels if a class lacks more than one node, or if a user has copied a result.
    """
    known: dict[str, Samples] = {}
    for newest in store.newest_runs():
        for found in (_benchmark_samples(newest), *newest.results):
            known.setdefault(found.labels, found)
    return list(known.values())


def _benchmark_samples(newest: NewestRun[Samples]) -> Samples:
    (kind, namespace, name), status = newest.key, newest.status
    samples = Samples({"benchmark_kind": kind, "benchmark_namespace": namespace, "benchmark": name})
    for phase in Phase:
        samples.add(PHASE, int(status.phase is phase), {"phase": phase.value})
    cases = status.cases
    states = {
        "Valid": cases.ended - cases.failed - cases.invalid,
        "Invalid": cases.invalid,
        "Failed": cases.failed,
        "Due": cases.total - cases.ended,
    }
    for state, number in states.items():
        samples.add(CASES, number, {"state": state})
    samples.add(LAST_SUCCESS, newest.measured)
    for condition in status.conditions:
        if condition.type in VERDICTS and condition.reason != _RUNNING and condition.status != "Unknown":
            samples.add(VERDICTS[condition.type], int(condition.status == "True"))
    for network in status.run.networks if status.run is not None else ():
        nodes = {"server_node": network.server_node, "client_node": network.client_node}
        for quantity, value in network_quantities(network).items():
            samples.add(_PREFLIGHT[quantity], in_base_unit(quantity, value), nodes)
    return samples
