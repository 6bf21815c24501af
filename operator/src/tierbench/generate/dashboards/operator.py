"""The dashboard of the operator: its queue, the duration of reconciles, and errors."""

from typing import Final

from grafana_foundation_sdk.models.dashboard import Dashboard

from tierbench.generate.dashboards.panels import Panels, Topic, bars, board, label_variable, number, over_time, query
from tierbench.generate.dashboards.queries import or_zero

_MINE: Final = 'instance=~"$instance"'
_INSTANCE: Final = "{{instance}}"
_ANSWER: Final = "{{method}} {{code}}"
_QUEUE: Final = f"tierbench_queue_length{{{_MINE}}}"
_RECONCILES: Final = "tierbench_reconcile_duration_seconds"


def dashboard() -> Dashboard:
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
