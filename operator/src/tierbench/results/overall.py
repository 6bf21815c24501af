"""All of something by all the time that it took: a ratio of sums, beside the mean of the trials' own rates."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Final

from tierbench.api.result import Statistic
from tierbench.results.statistics import describe

_PREFIX: Final = "overall"


def is_overall(quantity: str) -> bool:
    """Whether it is one of these, and not a mean."""
    return quantity.startswith(_PREFIX)


def describe_overall(columns: Mapping[str, Sequence[float]], times: Mapping[str, str]) -> dict[str, Statistic]:
    """For each rate of a case, `times` naming the time that it is by, what all trials have together.

    `columns` are the values of every quantity, a value a trial.
    """
    known = {rate: time for rate, time in times.items() if rate in columns and time in columns}
    alike = {rate: time for rate, time in known.items() if len(columns[rate]) == len(columns[time])}
    return {
        f"{_PREFIX}{rate[0].upper()}{rate[1:]}": _describe(columns[rate], columns[time]) for rate, time in alike.items()
    }


def _describe(rates: Sequence[float], times: Sequence[float]) -> Statistic:
    """The ratio of sums; its deviation and interval are those of its linearised values, whose mean it is (the delta
    method: Cochran, Sampling Techniques, 1977, section 2.11). The smallest, the largest and the percentiles are the
    trials'."""
    mean_time = fmean(times)
    ratio = fmean(rate * time for rate, time in zip(rates, times, strict=True)) / mean_time
    found = describe([ratio + (rate - ratio) * time / mean_time for rate, time in zip(rates, times, strict=True)])
    names = ("mean", "standard_deviation", "confidence_low", "confidence_high")
    return describe(rates).model_copy(update={name: getattr(found, name) for name in names})
