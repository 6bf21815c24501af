"""The dashboard of file transfers: times and rates, the cost of TLS, retries, and the servers' disks."""

from typing import Final

from grafana_foundation_sdk.models.dashboard import Dashboard

from tierbench.generate.dashboards.panels import (
    KindPanels,
    Panels,
    Topic,
    board,
    over_time,
    query,
    result_variables,
    share_bars,
)
from tierbench.generate.dashboards.queries import Results, or_zero
from tierbench.kinds.file_transfer.metrics import DURATION, IO_BOUND_MEAN, MEANS, PREFIX

_RESULTS: Final = Results("FileTransferBenchmark", row="file_size")
_PANELS: Final = KindPanels(_RESULTS, PREFIX, (*MEANS.values(), DURATION, IO_BOUND_MEAN))
_DOCUMENT: Final = "explanation/file-transfers.md"


def dashboard() -> Dashboard:
    """Returns the dashboard of FileTransferBenchmarks."""
    text = "The time of file transfers from each node class, and its causes."
    topics = (
        Topic("Times", _DOCUMENT, "A trial", _times()),
        Topic("What TLS costs", _DOCUMENT, "The client's handling of the content", _tls()),
        Topic("Retries and errors", _DOCUMENT, "A retry", _retries()),
        Topic("The servers' disks", _DOCUMENT, "I/O-bound", _disks()),
    )
    return board("file-transfers", "File transfers", text, result_variables(_RESULTS), topics)


def _times() -> Panels:
    spread = f"{_RESULTS.mean(f'{PREFIX}_duration_stddev_seconds')} / {_PANELS.mean('duration_mean_seconds')}"
    return (
        _PANELS.means("Transfer time", "How long does each file take?", "duration_mean_seconds"),
        _PANELS.means("Throughput", "How fast are files transferred?", "throughput_bytes_per_second"),
        _PANELS.trend("Transfer time from run to run", "Has it changed?", "duration_mean_seconds"),
        _PANELS.matrix(
            "Spread",
            "How steady are the times? Standard deviation as a share of the mean. A wide spread needs more "
            "repetitions, or has a cause.",
            "percentunit",
            spread,
        ),
        _PANELS.quantiles(
            "Median transfer time", "How long does half of the transfers take at most?", 0.5, "duration_seconds"
        ),
        _PANELS.quantiles(
            "90th percentile of the transfer time", "How long do the slowest transfers take?", 0.9, "duration_seconds"
        ),
        _PANELS.trend("Lookup of the server's name", "How long does the name lookup take?", "lookup_seconds"),
    )


def _tls() -> Panels:
    return (
        _PANELS.compared_with_none(
            "Transfer time with TLS", "How much longer does a file take with TLS?", "tls", "duration_mean_seconds"
        ),
    )


def _retries() -> Panels:
    completed, failed = _PANELS.total("trials_completed"), _PANELS.total("trials_failed")
    causes = _RESULTS.total(f"{PREFIX}_retries_by_cause", by=f"cause, {_RESULTS.row}, ${{by:csv}}")
    return (
        _PANELS.matrix(
            "Retries per trial",
            "Where do retries start? Over all counted trials, including failed ones. A trial with retries is good if "
            "it ended with all bytes.",
            "short",
            f"{_PANELS.total('retries')} / ({completed} + {failed})",
        ),
        over_time(
            "Retries by cause",
            "Why were there retries? Over all counted trials. Stalled: no data, or no acknowledgement, within the "
            "read timeout.",
            "short",
            query(or_zero(causes, "cause", "none")),
        ),
        _PANELS.matrix(
            "Failed trials",
            "How many transfers fail? Share of the counted trials that ran out of attempts or time. The times do not "
            "contain them.",
            "percentunit",
            f"{failed} / ({completed} + {failed})",
        ),
        over_time(
            "Errors",
            "How many transfers ended without all bytes? Over all counted trials.",
            "short",
            query(_PANELS.total("errors")),
        ),
    )


def _disks() -> Panels:
    return (
        share_bars(
            "I/O-bound trials",
            "Was the disk the limit? Share of the good trials in which most bytes came from the disk and the node "
            "waited for it.",
            f"{_PANELS.total('io_bound_trials')} / {_PANELS.total('trials_completed')}",
        ),
        _PANELS.means(
            "Time of I/O-bound trials",
            "How long does a file from the disk take?",
            "io_bound_duration_mean_seconds",
            "Empty if there are none.",
        ),
        _PANELS.means(
            "In the page cache",
            "From which size on does a file not fit?",
            "server_resident_ratio",
            "Where it falls, the disk is the limit.",
        ),
        _PANELS.means("Read from the disk", "How much came from the disk?", "server_device_read_bytes"),
        _PANELS.means("Waiting for I/O", "How long did the node wait for its disk?", "server_io_pressure_ratio"),
        _PANELS.means("CPU of the server's node", "Was the server's CPU the limit?", "server_cpu_ratio"),
    )
