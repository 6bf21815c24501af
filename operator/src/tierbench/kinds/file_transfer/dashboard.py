"""The dashboard of file transfers: times and rates, the cost of TLS, retries, and the servers' disks."""

from typing import Final

from grafana_foundation_sdk.builders import table
from grafana_foundation_sdk.models.dashboard import Dashboard

from tierbench.generate.dashboards.panels import (
    Panels,
    Topic,
    board,
    matrix,
    over_time,
    query,
    result_variables,
    share_bars,
)
from tierbench.generate.dashboards.queries import Results, or_zero

_PREFIX: Final = "tierbench_file_transfer"
_ROW: Final = "file_size"
_RESULTS: Final = Results("FileTransferBenchmark", _ROW)
_DOCUMENT: Final = "concepts/file-transfers.md"
_ROUGH: Final = "From buckets that are a factor of 2 apart, so this is an estimate. Results have exact percentiles."


def dashboard() -> Dashboard:
    """Returns the dashboard of FileTransferBenchmarks."""
    text = "How long files take from each node class, and why."
    topics = (
        Topic("Times", _DOCUMENT, "A trial", _times()),
        Topic("What TLS costs", _DOCUMENT, "The client's handling of the content", _tls()),
        Topic("Retries and errors", _DOCUMENT, "A retry", _retries()),
        Topic("The servers' disks", _DOCUMENT, "I/O-bound", _disks()),
    )
    return board("file-transfers", "File transfers", text, result_variables(_RESULTS), topics)


def _mean(metric: str) -> str:
    return _RESULTS.mean(f"{_PREFIX}_{metric}")


def _total(metric: str) -> str:
    return _RESULTS.total(f"{_PREFIX}_{metric}")


def _matrix(title: str, text: str, unit: str, expression: str) -> table.Panel:
    return matrix(title, text, unit, expression, _ROW)


def _times() -> Panels:
    duration, buckets = _mean("duration_mean_seconds"), f"{_PREFIX}_duration_seconds"
    return (
        _matrix(
            "Transfer time",
            "How long does each file take? Mean of the good trials, with stalls and retries.",
            "s",
            duration,
        ),
        _matrix(
            "Throughput",
            "How fast are files transferred? Content per second of a trial, mean of the good trials.",
            "Bps",
            _mean("throughput_bytes_per_second"),
        ),
        over_time(
            "Transfer time from run to run",
            "Has it changed? Mean of the good trials of the newest run that has ended. A step is a new run.",
            "s",
            query(duration),
        ),
        _matrix(
            "Spread",
            "How steady are the times? Standard deviation as a share of the mean. A wide spread needs more "
            "repetitions, or has a cause.",
            "percentunit",
            f"{_mean('duration_stddev_seconds')} / {duration}",
        ),
        _matrix(
            "Median transfer time",
            f"How long does half of the transfers take at most? {_ROUGH}",
            "s",
            _RESULTS.quantile(0.5, buckets),
        ),
        _matrix(
            "90th percentile of the transfer time",
            f"How long do the slowest transfers take? {_ROUGH}",
            "s",
            _RESULTS.quantile(0.9, buckets),
        ),
        over_time(
            "Lookup of the server's name",
            "How long does the name lookup take? Before the time of a trial starts, mean. Empty for IP addresses.",
            "s",
            query(_mean("lookup_seconds")),
        ),
    )


def _tls() -> Panels:
    return (
        _matrix(
            "Transfer time with TLS",
            "How much longer does a file take with TLS? As a share of the time without it, on the same nodes, all "
            "else equal. Needs results with None, too.",
            "percentunit",
            _RESULTS.share_of_without("tls", f"{_PREFIX}_duration_mean_seconds"),
        ),
    )


def _retries() -> Panels:
    completed, failed = _total("trials_completed"), _total("trials_failed")
    causes = _RESULTS.total(f"{_PREFIX}_retries_by_cause", by=f"cause, {_ROW}, ${{by:csv}}")
    return (
        _matrix(
            "Retries per trial",
            "Where do retries start? Over all counted trials, including failed ones. A trial with retries is good if "
            "it ended with all bytes.",
            "short",
            f"{_total('retries')} / ({completed} + {failed})",
        ),
        over_time(
            "Retries by cause",
            "Why were there retries? Over all counted trials. Stalled: no data within the read timeout.",
            "short",
            query(or_zero(causes, "cause", "none")),
        ),
        _matrix(
            "Failed trials",
            "How many transfers fail? Share of the counted trials that ran out of attempts or time. The times do not "
            "contain them.",
            "percentunit",
            f"{failed} / ({completed} + {failed})",
        ),
        over_time(
            "Errors",
            "How many downloads ended without all bytes? Over all counted trials.",
            "short",
            query(_total("errors")),
        ),
    )


def _disks() -> Panels:
    return (
        share_bars(
            "I/O-bound trials",
            "Was the disk the limit? Share of the good trials in which most bytes came from the disk and the node "
            "waited for it.",
            f"{_total('io_bound_trials')} / {_total('trials_completed')}",
        ),
        _matrix(
            "Time of I/O-bound trials",
            "How long does a file from the disk take? Mean of the trials that waited for the disk. Empty if none did.",
            "s",
            _mean("io_bound_duration_mean_seconds"),
        ),
        _matrix(
            "In the page cache",
            "From which size on does a file not fit? Share of the file in memory at the start of a trial, mean. Where "
            "it falls, the disk is the limit.",
            "percentunit",
            _RESULTS.mean("tierbench_server_resident_ratio"),
        ),
        _matrix(
            "Read from the disk",
            "How much came from the disk? Bytes that the device of the served files read in a trial, mean.",
            "bytes",
            _RESULTS.mean("tierbench_server_device_read_bytes"),
        ),
        _matrix(
            "Waiting for I/O",
            "How long did the node wait for its disk? Share of the time in which a task did (pressure), mean.",
            "percentunit",
            _RESULTS.mean("tierbench_server_io_pressure_ratio"),
        ),
        _matrix(
            "CPU of the server's node",
            "Was the server's CPU the limit? Share of CPU time that its node was busy, mean.",
            "percentunit",
            _RESULTS.mean("tierbench_server_cpu_ratio"),
        ),
    )
