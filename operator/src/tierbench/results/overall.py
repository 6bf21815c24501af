"""All of something by all the time that it took: a ratio of sums, beside the mean of the trials' own rates."""

from collections.abc import Mapping, Sequence
from typing import Final

from tierbench.api.result import Statistic
from tierbench.results.quantities import statistic
from tierbench.stats.samples import summarize_ratio

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
        f"{_PREFIX}{rate[0].upper()}{rate[1:]}": statistic(summarize_ratio(columns[rate], columns[time]))
        for rate, time in alike.items()
    }
