"""Quantities that results do not have, but their trials tell: retries a trial, and percentiles over the trials."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import sqrt
from typing import Final

from tierbench.api.contract import Outcome
from tierbench.api.result import BenchmarkResult, Statistic
from tierbench.results import rates
from tierbench.results.published import is_mean
from tierbench.results.quantities import values_of
from tierbench.results.statistics import describe, quantile_error

RETRIES: Final = rates.RETRIES
_PERCENTILE: Final = re.compile(r"(?P<stem>\w+)(?P<which>P50|P90|P99)(?P<unit>Nanoseconds)")


def percentile_of(quantity: str, which: str) -> str:
    """The name of a quantity's percentile: of durationNanoseconds and P99 it is durationP99Nanoseconds."""
    return quantity.replace("Nanoseconds", f"{which}Nanoseconds")


def with_quantities(result: BenchmarkResult, wanted: Iterable[str]) -> BenchmarkResult:
    """The result with these quantities among its statistics, as far as it tells them."""
    there = result.status.statistics
    found = {name: derived(result, name) for name in wanted if name not in there}
    known = {name: statistic for name, statistic in found.items() if statistic is not None}
    if not known:
        return result
    status = result.status.model_copy(update={"statistics": {**there, **known}})
    return result.model_copy(update={"status": status})


def derived(result: BenchmarkResult, quantity: str) -> Statistic | None:
    """RETRIES over the counted trials; or a percentile over the good ones. Of a mean no trial is known, and nothing.

    A percentile's standard deviation is what its standard error would come from, were it a mean.
    """
    if is_mean(result):
        return None
    if quantity == RETRIES:
        return _retries(result)
    match = _PERCENTILE.fullmatch(quantity)
    base = "" if match is None else match["stem"] + match["unit"]
    whole = result.status.statistics.get(base)
    if match is None or whole is None:
        return None
    values = sorted(_values(result, base, good=True))
    error = quantile_error(values, int(match["which"][1:]) / 100) if len(values) == whole.count else None
    value = getattr(whole, match["which"].lower())
    deviation = None if error is None else round(error * sqrt(whole.count))
    ends = {"confidence_low": None, "confidence_high": None}
    return whole.model_copy(update={"mean": value, "standard_deviation": deviation, **ends})


def _retries(result: BenchmarkResult) -> Statistic | None:
    counts = result.status.counts
    trials = counts.completed + counts.failed
    if not trials:
        return None
    if not counts.retries:
        return _never(trials)
    values = [1e6 * value for value in _values(result, "retries", good=False)]
    if len(values) == trials:
        return describe(values)
    return describe([1e6 * counts.retries / trials]).model_copy(update={"count": trials})


@lru_cache(maxsize=64)
def _never(trials: int) -> Statistic:
    return describe([0.0] * trials)


def _values(result: BenchmarkResult, quantity: str, *, good: bool) -> Sequence[float]:
    """The quantity in each counted trial, or in each good one."""
    counted = (trial for trial in result.status.trials if not trial.warmup)
    chosen = (trial for trial in counted if not good or trial.outcome is Outcome.COMPLETED)
    return values_of(result.spec.benchmark.kind, chosen, quantity)
