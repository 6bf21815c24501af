"""The dashboards that are of no kind: the overview of benchmarks and node classes, and that of the operator."""

from typing import Final

from grafana_foundation_sdk.builders import timeseries
from grafana_foundation_sdk.models.dashboard import Dashboard

from tierbench.generate.dashboards.panels import (
    Panels,
    Topic,
    bars,
    board,
    facts,
    label_variable,
    number,
    over_time,
    query,
    result_variables,
    share_bars,
)
from tierbench.generate.dashboards.queries import Results, benchmarks, or_zero
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
_MINE: Final = 'instance=~"$instance"'
_INSTANCE: Final = "{{instance}}"
_ANSWER: Final = "{{method}} {{code}}"
_QUEUE: Final = f"tierbench_queue_length{{{_MINE}}}"
_RECONCILES: Final = "tierbench_reconcile_duration_seconds"


def overview() -> Dashboard:
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


def operator() -> Dashboard:
    """Returns the dashboard of the operator's metrics."""
    text = "The state of the operator and its work."
    instances = label_variable("instance", "Instance", "tierbench_operator_heartbeat_timestamp_seconds")
    topics = (
        Topic("Work", "reference/metrics.md", "The operator", _work()),
        Topic("Process", "how-to/monitor-the-operator.md", "Health and logs", _process()),
    )
    return board("operator", "Operator", text, (instances,), topics)


def _process_of(metric: str) -> str:
    """Returns a metric of the operators' processes. Only operators have the metric that it joins."""
    return f"{metric} and on (job, instance) {_QUEUE}"


def _work() -> Panels:
    durations = f"rate({_RECONCILES}_bucket{{{_MINE}}}[$__rate_interval])"
    errors = f"sum by (reason) (rate(tierbench_reconcile_errors_total{{{_MINE}}}[$__rate_interval]))"
    return (
        number(
            "Last reconcile",
            "Does it work? Time since the last reconcile ended. An idle operator does not reconcile. While a benchmark "
            "runs, it reconciles at least every 30 s.",
            "s",
            f"time() - (tierbench_operator_heartbeat_timestamp_seconds{{{_MINE}}} > 0)",
            _INSTANCE,
        ),
        number("Queue", "What waits? Benchmarks that need nodes that another one holds.", "short", _QUEUE, _INSTANCE),
        over_time(
            "Stored",
            "Is there room? Storage of results and records in etcd, and its limit. At the limit, no run starts until "
            "results are deleted.",
            "bytes",
            query(f"tierbench_stored_bytes{{{_MINE}}}", _INSTANCE),
            query(f"tierbench_stored_bytes_limit{{{_MINE}}}", f"{_INSTANCE}, limit"),
        ),
        number(
            "Leader",
            "Which operator is the leader? The leader of a release has 1, a standby has 0.",
            "short",
            f"tierbench_leader{{{_MINE}}}",
            _INSTANCE,
        ),
        bars(
            "Benchmarks",
            "In which phases are benchmarks? Number of benchmarks by phase.",
            "short",
            f"sum by (phase) (tierbench_benchmark_phase{{{_MINE}}})",
            "{{phase}}",
        ),
        over_time(
            "Cases due",
            "How much is left to do? Cases of current runs that are not measured yet. A flat line means that the "
            "benchmark is stuck.",
            "short",
            query(f'sum by (benchmark) (tierbench_benchmark_cases{{{_MINE},state="Due"}})', "{{benchmark}}"),
        ),
        over_time(
            "Reconciles",
            "How much does it do? Reconciles of benchmarks per second.",
            "ops",
            query(f"sum by (instance) (rate({_RECONCILES}_count{{{_MINE}}}[$__rate_interval]))", _INSTANCE),
        ),
        over_time(
            "Duration of a reconcile",
            "How long does a reconcile take? Median and 99th percentile. It grows with a slow API server.",
            "s",
            query(f"histogram_quantile(0.5, sum by (le) ({durations}))", "median"),
            query(f"histogram_quantile(0.99, sum by (le) ({durations}))", "99th percentile"),
        ),
        over_time(
            "Failed reconciles",
            "What went wrong? Failed reconciles per second by reason. A few conflicts are normal. The operator's log "
            "has details.",
            "ops",
            query(or_zero(errors, "reason", "none"), "{{reason}}"),
        ),
        over_time(
            "Definitions of another version",
            "Do they match the operator? The value is 1 while one of them is older, by reason, and 0 while they match.",
            "short",
            query(f"max by (reason) (tierbench_definitions_differ{{{_MINE}}})", "{{reason}}"),
        ),
        over_time(
            "Requests to the API server",
            "How does the API server answer? Responses per second by method and HTTP status, without watches. 404 and "
            "409 are normal. 403 is a missing right. 429 and 5xx mean that the API server is overloaded or failing.",
            "reqps",
            query(f"sum by (method, code) (rate(tierbench_api_requests_total{{{_MINE}}}[$__rate_interval]))", _ANSWER),
        ),
    )


def _process() -> Panels:
    cpu = "rate(process_cpu_seconds_total[$__rate_interval])"
    return (
        over_time(
            "CPU",
            "How much CPU does it need? CPU cores that the process uses.",
            "short",
            query(_process_of(cpu), _INSTANCE),
        ),
        over_time(
            "Memory",
            "How much memory does it need? Resident memory of the process. It grows with the number of results.",
            "bytes",
            query(_process_of("process_resident_memory_bytes"), _INSTANCE),
        ),
        over_time(
            "Open files",
            "Does it run out of files? Open files and connections of the process, and their limit.",
            "short",
            query(_process_of("process_open_fds"), "{{instance}}, open"),
            query(_process_of("process_max_fds"), "{{instance}}, limit"),
        ),
    )
