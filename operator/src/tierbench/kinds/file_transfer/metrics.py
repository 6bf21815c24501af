"""The Prometheus metrics of a FileTransferBenchmark."""

from bisect import bisect_right
from functools import partial
from statistics import fmean
from typing import Final

from tierbench.api.contract import Outcome
from tierbench.api.result import BenchmarkResult, ResultTrial, Statistic
from tierbench.kinds.file_transfer.measures import io_bound
from tierbench.metrics.results import Samples, gauges, histogram

FACTORS: Final = ("fileSize", "concurrency", "cacheState", "tls", "image")
PARAMETERS: Final = ("access", "storage", "readTimeoutMilliseconds", "attempts", "waitMilliseconds", "verifyDigest")

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
    "errors": _gauge("errors", "Downloads of all counted trials that ended without all bytes."),
    "completed": _gauge("trials_completed", "Counted trials that ended with all bytes."),
    "failed": _gauge("trials_failed", "Counted trials that failed."),
}
IO_BOUND_TRIALS: Final = _gauge("io_bound_trials", "Good trials with evidence that they waited for the server's disk.")
IO_BOUND_MEAN: Final = _gauge(
    "io_bound_duration_mean_seconds", "Time of the trials with evidence that they waited for the server's disk, mean."
)


def add(samples: Samples, result: BenchmarkResult) -> None:
    """Adds the metrics that only file transfers have."""
    good = [trial for trial in result.status.trials if not trial.warmup and trial.outcome is Outcome.COMPLETED]
    counts, statistics = result.status.counts, result.status.statistics
    samples.add_means(MEANS, statistics)
    if "durationNanoseconds" in statistics:
        _durations(samples, statistics["durationNanoseconds"], [trial.duration_nanoseconds for trial in good])
    for name, family in _COUNTS.items():
        samples.add(family, getattr(counts, name))
    for cause, number in counts.retry_causes.items():
        samples.add(RETRIES_BY_CAUSE, number, {"cause": cause})
    _io_bound(samples, result, good)


def _durations(samples: Samples, duration: Statistic, nanoseconds: list[int]) -> None:
    spread = duration.standard_deviation
    samples.add(DURATION_STDDEV, None if spread is None else spread / 1e9)
    ordered = sorted(nanoseconds)
    samples.add_histogram(DURATION, partial(bisect_right, ordered), len(ordered), sum(ordered))


def _io_bound(samples: Samples, result: BenchmarkResult, good: list[ResultTrial]) -> None:
    """Adds nothing if no trial reports its disk, because missing evidence is not 0 trials."""
    reported = [(trial, bound) for trial in good if (bound := io_bound(result.spec, trial)) is not None]
    seconds = [trial.duration_nanoseconds / 1e9 for trial, bound in reported if bound]
    samples.add(IO_BOUND_TRIALS, len(seconds) if reported else None)
    samples.add(IO_BOUND_MEAN, fmean(seconds) if seconds else None)
