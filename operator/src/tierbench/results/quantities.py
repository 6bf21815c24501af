"""The quantities of trials and their statistics, for every kind of benchmark. Names of quantities end with the unit."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import ceil, floor, fsum
from typing import Final

from pydantic import Field

from tierbench.api.contract import Histogram, Outcome
from tierbench.api.record import ResultTrial, Spread
from tierbench.api.result import BenchmarkResult, Note, Percentile, ResultPhase, Statistic
from tierbench.kinds.registry import BenchmarkKind, kind_of
from tierbench.stats.distributions import (
    Quantile,
    Summary,
    bucket_quantiles,
    histogram_quantile,
    quantile_error,
    sample_quantile,
    summarize,
    summarize_ratio,
)
from tierbench.stats.estimates import dispersion, rate_interval

RETRIES: Final = "retriesPerTrialPartsPerMillion"
"""The quantity under which results keep retries: as a whole number of retries per trial it would mostly be 0."""
TIMED_OUT: Final = "TimedOut"
"""The reason of a case or trial that took too long and was stopped."""
PERCENTILES: Final = {"P50": 0.5, "P90": 0.9, "P99": 0.99}
_OVERALL: Final = "overall"
_PUBLISHED_MEAN: Final = "PublishedMean"
MEAN_OF_TRIALS: Final = Note(reason=_PUBLISHED_MEAN, message="A published mean: its single trials are not known.")
BARE_MEAN: Final = Note(
    reason=_PUBLISHED_MEAN,
    message="A published mean without the number of its trials or their standard deviation: no verdict includes it.",
)


class GivenTrial(ResultTrial):
    """A trial of which a table gives the quantities themselves, by name.

    `given` is no part of the object: exports contain the statistics only.
    """

    given: Mapping[str, int | float] = Field(default_factory=dict, exclude=True)


def counted_trials(trials: Iterable[ResultTrial]) -> list[ResultTrial]:
    """Returns the trials that are no warm-up trials and were not interrupted."""
    return [trial for trial in trials if not trial.warmup and not trial.interrupted]


def good_trials(trials: Iterable[ResultTrial]) -> list[ResultTrial]:
    """Returns the counted trials that are good."""
    return [trial for trial in counted_trials(trials) if trial.outcome is Outcome.COMPLETED]


def trial_quantities(kind: str, trial: ResultTrial) -> Mapping[str, float | None]:
    """Returns the quantities of a trial of a kind of benchmark by name, None if the trial does not have them."""
    return trial.given if isinstance(trial, GivenTrial) else kind_of(kind).measures.quantities(trial)


def quantities(kind: str, trials: Iterable[ResultTrial]) -> dict[str, list[float]]:
    """Returns the values of every quantity, one per trial that has it. It leaves out quantities that no trial has."""
    columns: dict[str, list[float]] = {}
    for trial in trials:
        for name, value in trial_quantities(kind, trial).items():
            if value is not None:
                columns.setdefault(name, []).append(value)
    return columns


def quantity_values(kind: str, trials: Iterable[ResultTrial], quantity: str) -> list[float]:
    """Returns the values of one quantity, one per trial that has it."""
    values = (trial_quantities(kind, trial).get(quantity) for trial in trials)
    return [value for value in values if value is not None]


def quantity_names(kind: str) -> tuple[str, ...]:
    """Returns the name of every quantity that a trial of a kind can have."""
    return _quantity_names(kind_of(kind))


@cache
def _quantity_names(kind: BenchmarkKind) -> tuple[str, ...]:
    return tuple(kind.measures.quantities(kind.measures.everything))


def main_quantity(kind: str, there: Container[str]) -> str:
    """Returns the quantity by which a kind compares classes: the first one that is `there`."""
    return _first(kind_of(kind).measures.main, there)


def time_quantity(kind: str, there: Container[str]) -> str:
    """Returns the time that a kind shows first: the first one that is `there`. Less is better."""
    return _first(kind_of(kind).measures.time, there)


def _first(wanted: Sequence[str], there: Container[str]) -> str:
    return next((name for name in wanted if name in there), wanted[0])


def compared_quantities(kind: str) -> frozenset[str]:
    """Returns the quantities of a kind by which advice can compare classes."""
    return _compared_quantities(kind_of(kind))


@cache
def _compared_quantities(kind: BenchmarkKind) -> frozenset[str]:
    measures = kind.measures
    percentiles = (percentile_name(time, which) for time in measures.time for which in PERCENTILES)
    return frozenset({*measures.main, *measures.time, measures.rate, measures.byte_rate, RETRIES, *percentiles})


def rate_quantity(kind: str) -> str:
    """Returns the rate that a kind shows first. More is better."""
    return kind_of(kind).measures.rate


def describe(values: Sequence[float]) -> Statistic:
    """Returns the statistics of a quantity over trials, rounded to whole units.

    Raises:
        ValueError: there is no value.
    """
    return statistic(summarize(values))


def statistic(summary: Summary) -> Statistic:
    """Returns a summary as results keep it: rounded to whole units."""
    return Statistic(
        count=summary.count,
        mean=round(summary.mean),
        standard_deviation=_rounded(summary.deviation),
        p50=round(summary.p50),
        confidence_low=_rounded(summary.low),
        confidence_high=_rounded(summary.high),
    )


def _rounded(value: float | None) -> int | None:
    return None if value is None else round(value)


def describe_retries(counts: Sequence[float]) -> Statistic:
    """Returns the statistics of RETRIES from the number of retries in each trial. The interval is that of a rate.

    Raises:
        ValueError: there is no trial.
    """
    low, high = rate_interval(fsum(counts), len(counts), dispersion(counts))
    return statistic(replace(summarize([1e6 * count for count in counts]), low=1e6 * low, high=1e6 * high))


def is_overall(quantity: str) -> bool:
    """Whether a quantity is a ratio of sums over all trials, and not a mean of trials."""
    return quantity.startswith(_OVERALL)


def describe_overall(columns: Mapping[str, Sequence[float]], times: Mapping[str, str]) -> dict[str, Statistic]:
    """Returns the overall rates of a case: the sum of the amounts divided by the sum of the times.

    `columns` hold the values of every quantity, one per trial. `times` name for each rate the time by which its amount
    is divided. The result has no rate of which some trial lacks the value or the time.
    """
    known = {rate: time for rate, time in times.items() if rate in columns and time in columns}
    return {
        f"{_OVERALL}{rate[0].upper()}{rate[1:]}": statistic(summarize_ratio(columns[rate], columns[time]))
        for rate, time in known.items()
        if len(columns[rate]) == len(columns[time])
    }


def spread_of(observations: Histogram | None) -> Spread | None:
    """Returns the mean and the percentiles of a histogram; None if it has no observation."""
    if observations is None or not observations.count:
        return None
    p50, p90, p99 = (round(value) for value in bucket_quantiles(observations, (0.5, 0.9, 0.99)))
    return Spread(mean=round(observations.sum_nanoseconds / observations.count), p50=p50, p90=p90, p99=p99)


def percentile_name(quantity: str, which: str) -> str:
    """Returns the name of a percentile of a quantity, such as durationP99Nanoseconds."""
    return quantity.replace("Nanoseconds", f"{which}Nanoseconds")


def describe_percentile(
    operations: Histogram | None, trials: Sequence[float], share: float, of_trials: Sequence[float]
) -> Percentile | None:
    """Returns the quantile `share` of a time over everything that was measured; None if that is nothing.

    The quantile is over operations (messages, echo requests) if trials have many, else over trials, which are in
    ascending order. The operations of one trial are alike, so the interval also contains that of the mean of the
    trials' own quantiles `of_trials`.
    """
    if operations is not None:
        found = _widened(histogram_quantile(operations, share), of_trials)
    elif trials:
        found = sample_quantile(trials, share)
    else:
        return None
    return Percentile(
        count=found.count,
        value=round(found.value),
        confidence_low=None if found.low is None else floor(found.low),
        confidence_high=None if found.high is None else ceil(found.high),
        standard_error=_rounded(quantile_error(trials, share)) if operations is None else None,
    )


def _widened(found: Quantile, of_trials: Sequence[float]) -> Quantile:
    """Returns the quantile with an interval that contains that of the mean of the trials' own quantiles."""
    whole = summarize(of_trials) if len(of_trials) > 1 else None
    if whole is None or whole.low is None or whole.high is None:
        return found
    low = None if found.low is None else min(found.low, whole.low)
    high = None if found.high is None else max(found.high, whole.high)
    return replace(found, low=low, high=high)


def percentile_over(results: Iterable[BenchmarkResult], which: str) -> Percentile | None:
    """Returns a percentile of the time over everything that the results measured; None if that is nothing.

    The percentile of a whole lies between those of its parts. So of several results, the interval contains the
    intervals of all, and the value is their mean. The interval does not hold for nodes that were not measured.
    """
    found = [one for result in results if (one := result.status.percentiles.get(which)) is not None]
    if not found:
        return None
    count = sum(one.count for one in found)
    lows = [one.confidence_low for one in found if one.confidence_low is not None]
    highs = [one.confidence_high for one in found if one.confidence_high is not None]
    return Percentile(
        count=count,
        value=round(sum(one.value * one.count for one in found) / count),
        confidence_low=min(lows) if len(lows) == len(found) else None,
        confidence_high=max(highs) if len(highs) == len(found) else None,
    )


def is_censored(result: BenchmarkResult) -> bool:
    """Whether trials were stopped because they took too long.

    The mean of the times of the other trials is then a lower bound, and that of the rates an upper bound. Such a result
    can show that a class is worse, but not that it is better or equal, or that it satisfies a constraint.
    """
    status = result.status
    missing = status.missing.reason if status.missing is not None else ""
    ended = status.reason if status.phase is ResultPhase.FAILED else missing
    return ended == TIMED_OUT or status.counts.timed_out > 0


def is_published_mean(result: BenchmarkResult) -> bool:
    """Whether the result is a published mean, whose trials, retries and percentiles are not known."""
    return any(fact.reason == _PUBLISHED_MEAN for fact in result.status.facts)


def is_bare_mean(result: BenchmarkResult) -> bool:
    """Whether the result is a published mean without number of trials or deviation. Nothing follows from it."""
    return BARE_MEAN in result.status.facts


def levels_and_parameters(result: BenchmarkResult) -> dict[str, str]:
    """Returns the level of each factor, and the parameters of the whole benchmark, by name.

    Results that differ in any of them measured different things and are never pooled. A parameter in which results
    differ is treated as one more factor.
    """
    found = {**result.spec.levels, **result.spec.settings}
    for name, level in kind_of(result.spec.benchmark.kind).implied.items():
        found.setdefault(name, level)
    return found
