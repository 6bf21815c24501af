"""The Prometheus metrics of a FileTransferBenchmark."""

from typing import Final

from tierbench.api.result import BenchmarkResult
from tierbench.metrics.results import Samples, gauges, histogram

FACTORS: Final = ("direction", "fileSize", "concurrency", "cacheState", "tls", "engine", "image", "link")
PARAMETERS: Final = (
    "access",
    "links",
    "storage",
    "readTimeoutMilliseconds",
    "attempts",
    "waitMilliseconds",
    "verifyDigest",
)

HISTOGRAMS: Final = ("durationNanoseconds",)

PREFIX: Final = "tierbench_file_transfer"
_gauge: Final = gauges(PREFIX)

DURATION: Final = histogram(
    f"{PREFIX}_duration_seconds",
    "Time of a trial, including stalls and retries, of the good trials.",
    range(-7, 12),  # 7.8 ms to 34 min, all in whole nanoseconds, so counts are exact
)
DURATION_STDDEV: Final = _gauge(
    "duration_stddev_seconds", "Time of a trial, standard deviation of the sample of good trials."
)
MEANS: Final = {
    "durationNanoseconds": _gauge(
        "duration_mean_seconds", "Time of a trial, including stalls and retries, mean of the good trials."
    ),
    "throughputBytesPerSecond": _gauge(
        "throughput_bytes_per_second", "Content per second of a trial, mean of the good trials."
    ),
    "lookupNanoseconds": _gauge(
        "lookup_seconds",
        "Lookup of the server's name before the time of a trial starts, mean of the good trials; absent for IP "
        "addresses.",
    ),
}
RETRIES_BY_CAUSE: Final = _gauge("retries_by_cause", "Retries of all counted trials by cause.")
_COUNTS: Final = {
    "retries": _gauge("retries", "Retries of all counted trials."),
    "errors": _gauge("errors", "Transfers of all counted trials that ended without all bytes."),
    "completed": _gauge("trials_completed", "Counted trials that ended with all bytes."),
    "failed": _gauge("trials_failed", "Counted trials that failed."),
}
IO_BOUND_TRIALS: Final = _gauge("io_bound_trials", "Good trials with evidence that they waited for the server's disk.")
IO_BOUND_MEAN: Final = _gauge(
    "io_bound_duration_mean_seconds", "Time of the trials with evidence that they waited for the server's disk, mean."
)


def add(samples: Samples, result: BenchmarkResult) -> None:
    """Adds the metrics that only file transfers have."""
    counts, statistics, totals = result.status.counts, result.status.statistics, result.status.totals
    samples.add_means(MEANS, statistics)
    duration = statistics.get("durationNanoseconds")
    if duration is not None and duration.standard_deviation is not None:
        samples.add(DURATION_STDDEV, duration.standard_deviation / 1e9)
    samples.add_histogram(DURATION, result.status.histograms.get("durationNanoseconds"))
    for name, family in _COUNTS.items():
        samples.add(family, getattr(counts, name))
    for cause, number in counts.retry_causes.items():
        samples.add(RETRIES_BY_CAUSE, number, {"cause": cause})
    # Missing evidence is not 0 trials.
    trials = totals.get("ioBoundTrials")
    samples.add(IO_BOUND_TRIALS, trials)
    samples.add(IO_BOUND_MEAN, totals["ioBoundNanoseconds"] / trials / 1e9 if trials else None)
