"""Statistics without the lowest and the highest trials, as agreed upon beforehand."""

import math
import re
from collections.abc import Sequence
from statistics import fmean
from typing import Final

from tierbench.api.result import ResultTrial, Statistic
from tierbench.api.run_policy import Trim, TrimBy
from tierbench.results.quantities import quantities
from tierbench.results.statistics import describe, interval

_OF_A_CLIENT: Final = re.compile(r"client\d+BitsPerSecond")


def kept(trials: Sequence[ResultTrial], trim: Trim | None, quantity: str) -> tuple[ResultTrial, ...]:
    """The trials that stay, in their order: all, unless enough of them have the `quantity` that they are ranked by.

    Where each client is trimmed by its own rates, trials stay.
    """
    ranked = [trial for trial in trials if quantity in quantities([trial])]
    if trim is None or trim.by is TrimBy.CLIENT or len(ranked) <= trim.lowest + trim.highest:
        return tuple(trials)
    ranked.sort(key=lambda trial: quantities([trial])[quantity][0])
    staying = {trial.trial for trial in ranked[trim.lowest : len(ranked) - trim.highest]}
    return tuple(trial for trial in trials if trial.trial in staying)


def trimmed(trials: Sequence[ResultTrial], trim: Trim | None, quantity: str) -> dict[str, Statistic]:
    """The quantities that are trimmed by their own values, without these: the one that trials are ranked by, or each
    client's; those of which there are too few values are not."""
    least = 0 if trim is None else trim.lowest + trim.highest
    if trim is None or not least:
        return {}
    columns = quantities(trials)
    own = [name for name in columns if (_OF_A_CLIENT.fullmatch(name) if trim.by is TrimBy.CLIENT else name == quantity)]
    return {name: describe_trimmed(columns[name], trim) for name in own if len(columns[name]) > least}


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
