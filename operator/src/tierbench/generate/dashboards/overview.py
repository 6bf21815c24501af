"""The overview: how benchmarks stand, and how the classes of nodes compare."""

from typing import Final

from grafana_foundation_sdk.models.dashboard import Dashboard

from tierbench.generate.dashboards.board import Panels, board, result_variables
from tierbench.generate.dashboards.panels import bars, facts, number, over_time, query, share_bars
from tierbench.generate.dashboards.queries import benchmarks, mean, multiple_of_fastest, results

_BY_BENCHMARK: Final = "benchmark_namespace, benchmark"
_BENCHMARK: Final = "{{benchmark_namespace}}/{{benchmark}}"
_CLASS: Final = "{{server_class}}"
_NODES: Final = "{{client_node}} to {{server_node}}"
_NODE_FACTS: Final = (
    "server_class, server_node, architecture, kernel, access_network, storage, client_access_network, benchmark, run"
)
_MULTIPLE: Final = (
    "1 is the fastest. Mean over all levels that were measured; the dashboard of the kind tells them apart, and a "
    "PlacementAdvice says whether a difference is more than chance."
)


def dashboard() -> Dashboard:
    """All kinds of benchmarks together."""
    text = "How benchmarks stand, and how the classes of nodes compare."
    rows = {
        "Benchmarks": _benchmarks(),
        "Node classes": _classes(),
        "The servers' nodes": _servers(),
        "The network before the first case": _networks(),
    }
    return board("overview", "Overview", text, result_variables(), rows)


def _benchmarks() -> Panels:
    cases, due = benchmarks("tierbench_benchmark_cases"), benchmarks("tierbench_benchmark_cases", 'state="Due"')
    success = benchmarks("tierbench_benchmark_last_success_timestamp_seconds")
    return (
        number(
            "Benchmarks",
            "By phase. Queued: another benchmark measures on the nodes that it needs.",
            "short",
            f"sum by (phase) ({benchmarks('tierbench_benchmark_phase')})",
            "{{phase}}",
        ),
        number(
            "Cases",
            "Of the runs under way, or of the last ones. Invalid: measured, but something may have spoiled the "
            "numbers. Due: not measured yet.",
            "short",
            f"sum by (state) ({cases})",
            "{{state}}",
        ),
        number(
            "Regressed",
            "Benchmarks whose last run was shown to be worse than an earlier one: their condition Regressed names the "
            "cases.",
            "short",
            f"sum ({benchmarks('tierbench_benchmark_regressed')}) or vector(0)",
            "regressed",
        ),
        number(
            "Constraints kept",
            "Share of the benchmarks with runPolicy.constraints whose last run kept to them.",
            "percentunit",
            f"avg ({benchmarks('tierbench_benchmark_passed')})",
            "passed",
        ),
        share_bars(
            "Progress",
            "Share of the run's cases that have ended.",
            f"1 - sum by ({_BY_BENCHMARK}) ({due}) / sum by ({_BY_BENCHMARK}) ({cases})",
            _BENCHMARK,
        ),
        bars(
            "Last measured",
            "How long ago the newest case of the runs that have ended was measured.",
            "s",
            f"time() - max by ({_BY_BENCHMARK}) ({success})",
            _BENCHMARK,
        ),
    )


def _classes() -> Panels:
    return (
        bars(
            "File transfers: time, as a multiple of the fastest class",
            _MULTIPLE,
            "none",
            multiple_of_fastest("tierbench_file_transfer_duration_mean_seconds"),
            _CLASS,
        ),
        bars(
            "Brokers: round trip, as a multiple of the fastest class",
            _MULTIPLE,
            "none",
            multiple_of_fastest("tierbench_broker_round_trip_mean_seconds"),
            _CLASS,
        ),
        share_bars(
            "Measured",
            "Share of the cases that could be measured. The others failed: their results say why.",
            f"avg by (server_class) ({results('tierbench_result_measured')})",
            _CLASS,
        ),
        share_bars(
            "Valid",
            "Share of the measured cases of which nothing is known that could have spoiled the numbers.",
            f"avg by (server_class) ({results('tierbench_result_valid')})",
            _CLASS,
        ),
        facts(
            "Nodes",
            "What the nodes that hosted servers were when they were measured, and the access network of the clients.",
            f"count by ({_NODE_FACTS}) ({results('tierbench_result_info')})",
            "Results",
        ),
    )


def _servers() -> Panels:
    return (
        over_time(
            "CPU",
            "Share of CPU time that the server's node was busy during trials.",
            "percentunit",
            query(mean("server_class", "tierbench_server_cpu_ratio"), _CLASS),
        ),
        over_time(
            "Waiting for I/O",
            "Share of CPU time spent waiting for I/O, and of the time in which some task waited for it (pressure). "
            "High values on one class alone: its disk is the limit.",
            "percentunit",
            query(mean("server_class", "tierbench_server_io_wait_ratio"), "{{server_class}}, wait"),
            query(mean("server_class", "tierbench_server_io_pressure_ratio"), "{{server_class}}, pressure"),
        ),
        over_time(
            "TCP retransmits",
            "Segments that the server's side sent again in a trial, mean. Many: the network is the limit.",
            "short",
            query(mean("server_class", "tierbench_server_tcp_retransmits"), _CLASS),
        ),
        over_time(
            "TCP round trip",
            "Smoothed round-trip time at the server's side, mean of the trials. It grows with the queues on the way.",
            "s",
            query(mean("server_class", "tierbench_server_round_trip_seconds"), _CLASS),
        ),
    )


def _networks() -> Panels:
    return (
        over_time(
            "Throughput between nodes",
            "Payload that iperf3 carried each way, of benchmarks with a preflight. A step is a new run.",
            "bps",
            query(_between_nodes("upload_bits_per_second"), f"{_NODES}, upload"),
            query(_between_nodes("download_bits_per_second"), f"{_NODES}, download"),
        ),
        over_time(
            "Round trip between nodes",
            "Mean of the echo requests before that.",
            "s",
            query(_between_nodes("ping_mean_seconds"), _NODES),
        ),
        share_bars(
            "Echo requests between nodes that were not answered",
            "Share of those sent.",
            _between_nodes("ping_lost_ratio"),
            _NODES,
        ),
    )


def _between_nodes(metric: str) -> str:
    return f"avg by (server_node, client_node) ({benchmarks(f'tierbench_preflight_{metric}')})"
