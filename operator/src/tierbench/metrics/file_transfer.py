"""Metrics of file transfers."""

from statistics import fmean
from typing import Final

from tierbench.api.contract import Outcome
from tierbench.api.quantity import parse_size
from tierbench.api.result import BenchmarkResult, ResultTrial
from tierbench.metrics.family import Families, Labels
from tierbench.results.validity import io_bound

# Powers of two of a second, so that each bound is twice the last: 7.8 ms to 34 min.
BOUNDS: Final = tuple(2.0**exponent for exponent in range(-7, 12))
PREFIX: Final = "tierbench_file_transfer"


def labels(result: BenchmarkResult) -> Labels:
    """The levels of the case as labels."""
    levels = result.spec.levels
    return {
        "file_size": str(parse_size(levels["fileSize"])),
        "concurrency": levels["concurrency"],
        "cache_state": levels["cacheState"],
        "tls": levels["tls"],
    }


def add(families: Families, common: Labels, result: BenchmarkResult) -> None:
    """Everything that one result says."""
    known = {**common, **labels(result)}
    _durations(families, known, result)
    _io_bound(families, known, result)
    counts, statistics = result.status.counts, result.status.statistics
    families.gauge(f"{PREFIX}_retries", "Retries of all counted trials.", known, counts.retries)
    families.gauge(f"{PREFIX}_errors", "Downloads that did not end with every byte.", known, counts.errors)
    families.gauge(f"{PREFIX}_trials_completed", "Trials that ended with every byte.", known, counts.completed)
    families.gauge(f"{PREFIX}_trials_failed", "Trials that did not.", known, counts.failed)
    for cause, number in counts.retry_causes.items():
        text = "Retries of all counted trials by cause."
        families.gauge(f"{PREFIX}_retries_by_cause", text, {**known, "cause": cause}, number)
    throughput = statistics.get("throughputBytesPerSecond")
    text = "Content a second of a trial, mean."
    mean = None if throughput is None else throughput.mean
    families.gauge(f"{PREFIX}_throughput_bytes_per_second", text, known, mean)


def _durations(families: Families, known: Labels, result: BenchmarkResult) -> None:
    duration = result.status.statistics.get("durationNanoseconds")
    if duration is None:
        return
    families.gauge(f"{PREFIX}_duration_mean_seconds", "Time of a trial, mean.", known, duration.mean / 1e9)
    spread = duration.standard_deviation
    text = "Time of a trial, standard deviation of the sample."
    families.gauge(f"{PREFIX}_duration_stddev_seconds", text, known, None if spread is None else spread / 1e9)
    seconds = [trial.duration_nanoseconds / 1e9 for trial in _good(result)]
    buckets = [(repr(bound), float(sum(value <= bound for value in seconds))) for bound in BOUNDS]
    text = "Time of a trial, stalls and retries included."
    everything = [*buckets, ("+Inf", float(len(seconds)))]
    families.histogram(f"{PREFIX}_duration_seconds", text, known, everything, sum(seconds))


def _io_bound(families: Families, known: Labels, result: BenchmarkResult) -> None:
    bound = [trial.duration_nanoseconds / 1e9 for trial in _good(result) if io_bound(trial)]
    text = "Trials with evidence that they waited for the server's disk."
    families.gauge(f"{PREFIX}_io_bound_trials", text, known, len(bound))
    text = "Time of the trials with evidence that they waited for the server's disk, mean."
    families.gauge(f"{PREFIX}_io_bound_duration_mean_seconds", text, known, fmean(bound) if bound else None)


def _good(result: BenchmarkResult) -> list[ResultTrial]:
    return [trial for trial in result.status.trials if not trial.warmup and trial.outcome is Outcome.COMPLETED]
