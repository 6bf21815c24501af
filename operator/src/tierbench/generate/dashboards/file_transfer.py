"""File transfers: times and rates by file size and class, retries, and what the servers' disks did."""

from typing import Final

from grafana_foundation_sdk.models.dashboard import Dashboard

from tierbench.generate.dashboards.board import Panels, board, result_variables
from tierbench.generate.dashboards.panels import matrix, over_time, query, share_bars
from tierbench.generate.dashboards.queries import mean, or_zero, quantile, total

_PREFIX: Final = "tierbench_file_transfer"
_BY: Final = "file_size, server_class"
_CLASS: Final = "{{server_class}}"
_CLASS_AND_SIZE: Final = "{{server_class}}, {{file_size}} B"
_FILES: Final = 'file_size!=""'


def dashboard() -> Dashboard:
    """Results of FileTransferBenchmarks."""
    text = "How long files take from each class of node, and why."
    rows = {"Times": _times(), "Retries and errors": _retries(), "The servers' disks": _disks()}
    return board("file-transfers", "File transfers", text, result_variables("FileTransferBenchmark"), rows)


def _times() -> Panels:
    duration, spread = f"{_PREFIX}_duration_mean_seconds", f"{_PREFIX}_duration_stddev_seconds"
    return (
        matrix(
            "Transfer time",
            "Mean of the good trials, stalls and retries included.",
            "s",
            mean(_BY, duration),
            "file_size",
        ),
        matrix(
            "Throughput",
            "Content a second of a trial, mean of the good trials.",
            "Bps",
            mean(_BY, f"{_PREFIX}_throughput_bytes_per_second"),
            "file_size",
        ),
        over_time(
            "Transfer time from run to run",
            "Mean of the good trials of the newest run that has ended. A step is a new run.",
            "s",
            query(mean(_BY, duration), _CLASS_AND_SIZE),
        ),
        matrix(
            "Spread",
            "Standard deviation as a share of the mean. A wide spread needs more repetitions, or has a cause.",
            "percentunit",
            f"{mean(_BY, spread)} / {mean(_BY, duration)}",
            "file_size",
        ),
        matrix(
            "Median transfer time",
            "From buckets that are a factor of 2 apart, so it is rough: the results have exact percentiles.",
            "s",
            quantile(0.5, _BY, f"{_PREFIX}_duration_seconds"),
            "file_size",
        ),
        matrix(
            "90th percentile of the transfer time",
            "From buckets that are a factor of 2 apart, so it is rough: the results have exact percentiles.",
            "s",
            quantile(0.9, _BY, f"{_PREFIX}_duration_seconds"),
            "file_size",
        ),
    )


def _retries() -> Panels:
    completed, failed = total(_BY, f"{_PREFIX}_trials_completed"), total(_BY, f"{_PREFIX}_trials_failed")
    causes = or_zero(total("server_class, cause", f"{_PREFIX}_retries_by_cause"), "cause", "none")
    return (
        matrix(
            "Retries a trial",
            "Of all counted trials, failed ones too. A trial with retries is good if it ended with every byte.",
            "short",
            f"{total(_BY, f'{_PREFIX}_retries')} / ({completed} + {failed})",
            "file_size",
        ),
        over_time(
            "Retries by cause",
            "Over all counted trials. Stalled: no byte came for the read timeout.",
            "short",
            query(causes, "{{server_class}} {{cause}}"),
        ),
        matrix(
            "Failed trials",
            "Share of the counted trials that ran out of attempts or time. They are not in the times.",
            "percentunit",
            f"{failed} / ({completed} + {failed})",
            "file_size",
        ),
        over_time(
            "Errors",
            "Downloads that did not end with every byte, over all counted trials.",
            "short",
            query(total("server_class", f"{_PREFIX}_errors"), _CLASS),
        ),
        over_time(
            "Lookup of the server's name",
            "Before a trial's time begins, mean. Empty where clients are given an address.",
            "s",
            query(mean("server_class", f"{_PREFIX}_lookup_seconds"), _CLASS),
        ),
    )


def _disks() -> Panels:
    bound, completed = total("server_class", f"{_PREFIX}_io_bound_trials"), f"{_PREFIX}_trials_completed"
    return (
        share_bars(
            "I/O-bound trials",
            "Share of the good trials in which most bytes came from the disk and the node waited for it.",
            f"{bound} / {total('server_class', completed)}",
            _CLASS,
        ),
        matrix(
            "Time of I/O-bound trials",
            "Mean of the trials that waited for the disk; empty where none did.",
            "s",
            mean(_BY, f"{_PREFIX}_io_bound_duration_mean_seconds"),
            "file_size",
        ),
        matrix(
            "In the page cache",
            "Share of the served file that was in memory when a trial began, mean. It falls where the file no longer "
            "fits: from there on the disk is the limit.",
            "percentunit",
            mean(_BY, "tierbench_server_resident_ratio", _FILES),
            "file_size",
        ),
        matrix(
            "Read from the disk",
            "Bytes that the served files' device read in a trial, mean.",
            "bytes",
            mean(_BY, "tierbench_server_device_read_bytes", _FILES),
            "file_size",
        ),
        matrix(
            "Waiting for I/O",
            "Share of the time in which some task of the server's node waited for I/O (pressure), mean.",
            "percentunit",
            mean(_BY, "tierbench_server_io_pressure_ratio", _FILES),
            "file_size",
        ),
        matrix(
            "CPU of the server's node",
            "Share of CPU time that it was busy, mean.",
            "percentunit",
            mean(_BY, "tierbench_server_cpu_ratio", _FILES),
            "file_size",
        ),
    )
