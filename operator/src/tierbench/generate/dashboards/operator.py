"""The operator itself: what it waits for, how long its passes take, and what goes wrong."""

from typing import Final

from grafana_foundation_sdk.models.dashboard import Dashboard

from tierbench.generate.dashboards.panels import Panels, Topic, bars, board, label_variable, number, over_time, query
from tierbench.generate.dashboards.queries import or_zero

_MINE: Final = 'instance=~"$instance"'
_INSTANCE: Final = "{{instance}}"
_ANSWER: Final = "{{method}} {{code}}"
_QUEUE: Final = f"tierbench_queue_length{{{_MINE}}}"
_PASSES: Final = "tierbench_reconcile_duration_seconds"


def dashboard() -> Dashboard:
    """The operator's own metrics."""
    text = "Whether the operator works, and what it works on."
    instances = label_variable("instance", "Instance", "tierbench_operator_heartbeat_timestamp_seconds")
    topics = (
        Topic("Work", "concepts/metrics.md", "The operator", _work()),
        Topic("Process", "operating.md", "Health and logs", _process()),
    )
    return board("operator", "Operator", text, (instances,), topics)


def _process_of(metric: str) -> str:
    """A metric of the operators' processes: their Prometheus jobs are known by what only an operator says."""
    return f"{metric} and on (job, instance) {_QUEUE}"


def _work() -> Panels:
    passes = f"rate({_PASSES}_bucket{{{_MINE}}}[$__rate_interval])"
    errors = f"sum by (reason) (rate(tierbench_reconcile_errors_total{{{_MINE}}}[$__rate_interval]))"
    return (
        number(
            "Last pass",
            "Does it work? Time since a pass over a benchmark last ended. While nothing is due there are no passes; "
            "while a benchmark runs there is one every 30 s at the least.",
            "s",
            f"time() - (tierbench_operator_heartbeat_timestamp_seconds{{{_MINE}}} > 0)",
            _INSTANCE,
        ),
        number(
            "Queue", "What waits? Benchmarks that need nodes on which another one measures.", "short", _QUEUE, _INSTANCE
        ),
        over_time(
            "Stored",
            "Is there room? What results and traces take in etcd, and what they may: above 80 % of it old runs are "
            "announced, at the limit they go.",
            "bytes",
            query(f"tierbench_stored_bytes{{{_MINE}}}", _INSTANCE),
            query(f"tierbench_stored_bytes_limit{{{_MINE}}}", f"{_INSTANCE}, limit"),
        ),
        number(
            "Leader",
            "Which operator is at work? The pod that leads its release has 1, one that stands by 0.",
            "short",
            f"tierbench_leader{{{_MINE}}}",
            _INSTANCE,
        ),
        bars(
            "Benchmarks",
            "How do benchmarks stand? By phase.",
            "short",
            f"sum by (phase) (tierbench_benchmark_phase{{{_MINE}}})",
            "{{phase}}",
        ),
        over_time(
            "Cases due",
            "How much is left to do? Cases of the runs under way that are not measured yet. A flat line while a "
            "benchmark runs: it is stuck.",
            "short",
            query(f'sum by (benchmark) (tierbench_benchmark_cases{{{_MINE},state="Due"}})', "{{benchmark}}"),
        ),
        over_time(
            "Passes",
            "How much does it do? Passes over benchmarks a second: observe, decide, write.",
            "ops",
            query(f"sum by (instance) (rate({_PASSES}_count{{{_MINE}}}[$__rate_interval]))", _INSTANCE),
        ),
        over_time(
            "Time of a pass",
            "How long does a pass take? Median and 99th percentile. It grows with a slow API server.",
            "s",
            query(f"histogram_quantile(0.5, sum by (le) ({passes}))", "median"),
            query(f"histogram_quantile(0.99, sum by (le) ({passes}))", "99th percentile"),
        ),
        over_time(
            "Passes that ended early",
            "What went wrong? Passes a second, by reason. A few conflicts are normal; the operator's log has the rest.",
            "ops",
            query(or_zero(errors, "reason", "none"), "{{reason}}"),
        ),
        over_time(
            "Definitions of another version",
            "Do they fit the operator? It is 1 while one of both is older, by which, and 0 while they do.",
            "short",
            query(f"max by (reason) (tierbench_definitions_differ{{{_MINE}}})", "{{reason}}"),
        ),
        over_time(
            "Requests to the API server",
            "How does the API server answer? Answers a second, by method and HTTP status; watches are not among "
            "them. 404 and 409 are part of normal work, 403 is a missing right, 429 and 5xx are an API server in "
            "trouble.",
            "reqps",
            query(f"sum by (method, code) (rate(tierbench_api_requests_total{{{_MINE}}}[$__rate_interval]))", _ANSWER),
        ),
    )


def _process() -> Panels:
    cpu = "rate(process_cpu_seconds_total[$__rate_interval])"
    return (
        over_time(
            "CPU",
            "How much CPU does it need? Cores that the process uses.",
            "short",
            query(_process_of(cpu), _INSTANCE),
        ),
        over_time(
            "Memory",
            "How much memory does it need? Resident memory of the process: it grows with the number of results.",
            "bytes",
            query(_process_of("process_resident_memory_bytes"), _INSTANCE),
        ),
        over_time(
            "Open files",
            "Does it run out of files? Files and connections that the process has open, and how many it may have.",
            "short",
            query(_process_of("process_open_fds"), "{{instance}}, open"),
            query(_process_of("process_max_fds"), "{{instance}}, limit"),
        ),
    )
