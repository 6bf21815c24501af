"""Statistics without the lowest and the highest trials, as agreed upon beforehand."""

import math
from collections.abc import Sequence
from statistics import fmean

from tierbench.api.result import ResultTrial, Statistic
from tierbench.api.trim import Trim
from tierbench.results.quantities import quantities
from tierbench.results.statistics import describe, interval


def kept(trials: Sequence[ResultTrial], trim: Trim | None, quantity: str) -> tuple[ResultTrial, ...]:
    """The trials that stay, in their order: all, unless enough of them have the `quantity` that they are ranked by."""
    ranked = [trial for trial in trials if quantity in quantities([trial])]
    if trim is None or len(ranked) <= trim.lowest + trim.highest:
        return tuple(trials)
    ranked.sort(key=lambda trial: quantities([trial])[quantity][0])
    staying = {trial.trial for trial in ranked[trim.lowest : len(ranked) - trim.highest]}
    return tuple(trial for trial in trials if trial.trial in staying)


def describe_trimmed(values: Sequence[float], trim: Trim) -> Statistic:
    """A quantity without its own lowest and highest values; `values` are all of them, more than are trimmed.

    The interval is that of a trimmed mean: its standard error comes from the Winsorized sum of squares (Tukey and
    McLaughlin, Sankhyā A 25, 1963), because the spread of what is left is too small by what was taken away.
    """
    ordered = sorted(values)
    rest = ordered[trim.lowest : len(ordered) - trim.highest]
    statistic = describe(rest)
    count = len(rest)
    if count == 1:
        return statistic
    winsorized = [rest[0]] * trim.lowest + rest + [rest[-1]] * trim.highest
    middle = fmean(winsorized)
    squares = sum((value - middle) ** 2 for value in winsorized)
    low, high = interval(fmean(rest), math.sqrt(squares / (count - 1) / count), count - 1)
    return statistic.model_copy(update={"confidence_low": round(low), "confidence_high": round(high)})
