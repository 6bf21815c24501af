"""The overview: how benchmarks stand, and how the classes of nodes compare."""

from typing import Final

from grafana_foundation_sdk.models.dashboard import Dashboard

from tierbench.generate.dashboards.panels import (
    Panels,
    Topic,
    bars,
    board,
    facts,
    number,
    over_time,
    query,
    result_variables,
    share_bars,
)
from tierbench.generate.dashboards.queries import Results, benchmarks
from tierbench.kinds.registry import probe

_RESULTS: Final = Results()
_BY_BENCHMARK: Final = "benchmark_namespace, benchmark"
_BENCHMARK: Final = "{{benchmark_namespace}}/{{benchmark}}"
_CLASS: Final = "{{server_class}}"
_NODES: Final = "{{client_node}} to {{server_node}}"
_NODE_FACTS: Final = (
    "server_class, server_node, architecture, kernel, server_access_network, server_storage, client_access_network, "
    "benchmark, run"
)
_MULTIPLE: Final = (
    "The fastest is 1. Mean over all levels that were measured, each compared with the same level; the dashboard of "
    "the kind tells them apart, and a PlacementAdvice says whether a difference is more than chance."
)
_ALL: Final = "mean over all that was measured on the class"


def dashboard() -> Dashboard:
    """All kinds of benchmarks together."""
    text = "How benchmarks stand, and how the classes of nodes compare."
    topics = (
        Topic("Benchmarks", "how-to-run-repeatedly.md", "Further runs", _benchmarks()),
        Topic("Node classes", "concepts/advice.md", "Objectives", _classes()),
        Topic("The servers' nodes", "concepts/file-transfers.md", "The computers", _servers()),
        Topic(
            "The network before the first case", "concepts/networks.md", "Before a benchmark of a service", _networks()
        ),
    )
    return board("overview", "Overview", text, result_variables(_RESULTS), topics)


def _benchmarks() -> Panels:
    cases, due = benchmarks("tierbench_benchmark_cases"), benchmarks("tierbench_benchmark_cases", 'state="Due"')
    success = benchmarks("tierbench_benchmark_last_success_timestamp_seconds")
    return (
        number(
            "Benchmarks",
            "How do benchmarks stand? By phase. Queued: another benchmark measures on the nodes that it needs.",
            "short",
            f"sum by (phase) ({benchmarks('tierbench_benchmark_phase')})",
            "{{phase}}",
        ),
        number(
            "Cases",
            "How do their cases stand? Of the runs under way, or of the last ones. Invalid: measured, but something "
            "may have spoiled the numbers. Due: not measured yet.",
            "short",
            f"sum by (state) ({cases})",
            "{{state}}",
        ),
        number(
            "Regressed",
            "Has one become worse? Benchmarks whose last run was shown to be worse than an earlier one: their "
            "condition Regressed names the cases.",
            "short",
            f"sum ({benchmarks('tierbench_benchmark_regressed')}) or vector(0)",
            "regressed",
        ),
        number(
            "Constraints kept",
            "Do they keep what they are held to? Share of the benchmarks with runPolicy.constraints whose last run "
            "kept to them.",
            "percentunit",
            f"avg ({benchmarks('tierbench_benchmark_passed')})",
            "passed",
        ),
        share_bars(
            "Progress",
            "How far are they? Share of the run's cases that have ended.",
            f"1 - sum by ({_BY_BENCHMARK}) ({due}) / sum by ({_BY_BENCHMARK}) ({cases})",
            _BENCHMARK,
        ),
        bars(
            "Last measured",
            "How old are the results? Time since the newest case of the runs that have ended was measured.",
            "s",
            f"time() - max by ({_BY_BENCHMARK}) ({success})",
            _BENCHMARK,
        ),
    )


def _classes() -> Panels:
    return (
        bars(
            "File transfers: time, as a multiple of the fastest class",
            f"How much slower are files from each class than from the fastest? {_MULTIPLE}",
            "none",
            _RESULTS.multiple_of_fastest("tierbench_file_transfer_duration_mean_seconds"),
            _CLASS,
        ),
        bars(
            "Brokers: round trip, as a multiple of the fastest class",
            f"How much slower are brokers on each class than on the fastest? {_MULTIPLE}",
            "none",
            _RESULTS.multiple_of_fastest("tierbench_broker_round_trip_mean_seconds"),
            _CLASS,
        ),
        share_bars(
            "Measured",
            "Could everything be measured? Share of the cases that were. The others failed: their results say why.",
            f"avg by (server_class) {_RESULTS.counted('tierbench_result_measured')}",
            _CLASS,
        ),
        share_bars(
            "Valid",
            "Can the numbers be trusted? Share of the measured cases of which nothing is known that could have "
            "spoiled the numbers.",
            f"avg by (server_class) {_RESULTS.counted('tierbench_result_valid')}",
            _CLASS,
        ),
        facts(
            "Nodes",
            "What computers were they? The nodes that hosted servers as they were when they were measured, and the "
            "access network of the clients.",
            f"count by ({_NODE_FACTS}) ({_RESULTS.chosen()})",
            "Results",
        ),
    )


def _servers() -> Panels:
    return (
        over_time(
            "CPU",
            f"Was a server's CPU the limit? Share of CPU time that its node was busy during trials, {_ALL}.",
            "percentunit",
            query(_mean("tierbench_server_cpu_ratio"), _CLASS),
        ),
        over_time(
            "Waiting for I/O",
            "Was a server's disk the limit? Share of CPU time spent waiting for I/O, and of the time in which some "
            f"task waited for it (pressure), {_ALL}. High values on one class alone: its disk is the limit.",
            "percentunit",
            query(_mean("tierbench_server_io_wait_ratio"), "{{server_class}}, wait"),
            query(_mean("tierbench_server_io_pressure_ratio"), "{{server_class}}, pressure"),
        ),
        over_time(
            "TCP retransmits",
            f"Was the network the limit? Segments that the server's side sent again in a trial, {_ALL}. Many: it was.",
            "short",
            query(_mean("tierbench_server_tcp_retransmits"), _CLASS),
        ),
        over_time(
            "TCP round trip",
            f"How far away were the clients? Smoothed round-trip time at the server's side, {_ALL}. It grows with "
            "queues.",
            "s",
            query(_mean("tierbench_server_round_trip_seconds"), _CLASS),
        ),
    )


def _networks() -> Panels:
    return (
        over_time(
            "Throughput between nodes",
            f"What did the network carry before the first case? Payload that {probe().program} carried each way, of "
            "benchmarks with a preflight. A step is a new run.",
            "bps",
            query(_between_nodes("upload_bits_per_second"), f"{_NODES}, upload"),
            query(_between_nodes("download_bits_per_second"), f"{_NODES}, download"),
        ),
        over_time(
            "Round trip between nodes",
            "How far apart are the nodes? Mean of the echo requests before that.",
            "s",
            query(_between_nodes("ping_mean_seconds"), _NODES),
        ),
        share_bars(
            "Echo requests between nodes that were not answered",
            "Did the network lose anything by itself? Share of those sent.",
            _between_nodes("ping_lost_ratio"),
            _NODES,
        ),
    )


def _mean(metric: str) -> str:
    return _RESULTS.mean(metric, by="server_class")


def _between_nodes(metric: str) -> str:
    return f"avg by (server_node, client_node) ({benchmarks(f'tierbench_preflight_{metric}')})"
