"""The overview dashboard: the state of benchmarks, and a comparison of node classes."""

from typing import Final

from grafana_foundation_sdk.builders import timeseries
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
from tierbench.metrics.results import SERVER_MEANS

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
    "The fastest is 1. Mean over all measured levels, each compared with the same level. The dashboard of the kind "
    "shows them separately. A PlacementAdvice reports whether a difference is more than chance."
)
_ALL: Final = "mean over all cases of the class"


def dashboard() -> Dashboard:
    """Returns the dashboard of all kinds of benchmarks."""
    text = "The state of benchmarks, and a comparison of node classes."
    topics = (
        Topic("Benchmarks", "how-to/run-repeatedly.md", "Further runs", _benchmarks()),
        Topic("Node classes", "explanation/advice.md", "Objectives", _classes()),
        Topic("The servers' nodes", "explanation/file-transfers.md", "The computers", _servers()),
        Topic(
            "The network before the first case",
            "explanation/networks.md",
            "Before a benchmark of a service",
            _networks(),
        ),
    )
    return board("overview", "Overview", text, result_variables(_RESULTS), topics)


def _benchmarks() -> Panels:
    cases, due = benchmarks("tierbench_benchmark_cases"), benchmarks("tierbench_benchmark_cases", 'state="Due"')
    success = benchmarks("tierbench_benchmark_last_success_timestamp_seconds")
    return (
        number(
            "Benchmarks",
            "In which phases are benchmarks? Their number by phase. Queued: another one holds nodes that it needs.",
            "short",
            f"sum by (phase) ({benchmarks('tierbench_benchmark_phase')})",
            "{{phase}}",
        ),
        number(
            "Cases",
            "In which states are their cases? Cases of current or last runs. Invalid: something may have distorted the "
            "numbers. Due: not measured yet.",
            "short",
            f"sum by (state) ({cases})",
            "{{state}}",
        ),
        number(
            "Regressed",
            "Has one become worse? Benchmarks whose last run is shown to be worse than an earlier one. The condition "
            "Regressed names the cases.",
            "short",
            f"sum ({benchmarks('tierbench_benchmark_regressed')}) or vector(0)",
            "regressed",
        ),
        number(
            "Constraints kept",
            "Do they meet their constraints? Share of the benchmarks with runPolicy.constraints whose last run met "
            "them.",
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
            "How old are the results? Time since the last measurement of a case.",
            "s",
            f"time() - max by ({_BY_BENCHMARK}) ({success})",
            _BENCHMARK,
        ),
    )


def _classes() -> Panels:
    return (
        bars(
            "File transfers: time, as a multiple of the fastest class",
            f"How much slower are files from each class than from the fastest one? {_MULTIPLE}",
            "none",
            _RESULTS.multiple_of_fastest("tierbench_file_transfer_duration_mean_seconds"),
            _CLASS,
        ),
        bars(
            "Brokers: round trip, as a multiple of the fastest class",
            f"How much slower are brokers on each class than on the fastest one? {_MULTIPLE}",
            "none",
            _RESULTS.multiple_of_fastest("tierbench_broker_round_trip_mean_seconds"),
            _CLASS,
        ),
        share_bars(
            "Measured",
            "Could everything be measured? Share of the measured cases. The results of failed cases have a reason.",
            f"avg by (server_class) {_RESULTS.counted('tierbench_result_measured')}",
            _CLASS,
        ),
        share_bars(
            "Valid",
            "Can the numbers be trusted? Share of the measured cases without a known problem that may have distorted "
            "the numbers.",
            f"avg by (server_class) {_RESULTS.counted('tierbench_result_valid')}",
            _CLASS,
        ),
        facts(
            "Nodes",
            "Which computers were measured? The nodes of servers at the time of the measurement, and the access "
            "network of the clients.",
            f"count by ({_NODE_FACTS}) ({_RESULTS.chosen()})",
            "Results",
        ),
    )


def _servers() -> Panels:
    return (
        _by_class("CPU", "Was a server's CPU the limit?", "percentunit", "serverCpuPartsPerMillion"),
        over_time(
            "Waiting for I/O",
            "Was a server's disk the limit? Share of CPU time spent waiting for I/O, and of the time in which some "
            f"task waited for it (pressure), {_ALL}. If only one class has high values, its disk is the limit.",
            "percentunit",
            query(_mean("serverIoWaitPartsPerMillion"), "{{server_class}}, wait"),
            query(_mean("serverIoPressurePartsPerMillion"), "{{server_class}}, pressure"),
        ),
        _by_class("TCP retransmits", "Was the network the limit?", "short", "tcpRetransmits"),
        _by_class("TCP round trip", "How far away were the clients?", "s", "tcpRoundTripNanoseconds"),
    )


def _by_class(title: str, question: str, unit: str, quantity: str) -> timeseries.Panel:
    text = f"{question} {SERVER_MEANS[quantity].text} Over all cases of the class."
    return over_time(title, text, unit, query(_mean(quantity), _CLASS))


def _networks() -> Panels:
    return (
        over_time(
            "Throughput between nodes",
            f"What did the network carry before the first case? Payload of {probe().program} in each direction, for "
            "benchmarks with a preflight. A step is a new run.",
            "bps",
            query(_between_nodes("upload_bits_per_second"), f"{_NODES}, upload"),
            query(_between_nodes("download_bits_per_second"), f"{_NODES}, download"),
        ),
        over_time(
            "Round trip between nodes",
            "How far apart are the nodes? Mean round trip of the echo requests of the preflight.",
            "s",
            query(_between_nodes("ping_mean_seconds"), _NODES),
        ),
        share_bars(
            "Unanswered echo requests between nodes",
            "Did the network lose packets before the load? Share of the echo requests that were sent.",
            _between_nodes("ping_lost_ratio"),
            _NODES,
        ),
    )


def _mean(quantity: str) -> str:
    return _RESULTS.mean(SERVER_MEANS[quantity].name, by="server_class")


def _between_nodes(metric: str) -> str:
    return f"avg by (server_node, client_node) ({benchmarks(f'tierbench_preflight_{metric}')})"
