"""Statistics without the lowest and the highest trials, as agreed upon beforehand."""

import re
from collections.abc import Sequence
from typing import Final

from tierbench.api.result import ResultTrial, Statistic
from tierbench.api.run_policy import Trim, TrimBy
from tierbench.results.quantities import quantities, statistic
from tierbench.stats.samples import summarize_trimmed

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
    return {
        name: statistic(summarize_trimmed(columns[name], trim.lowest, trim.highest))
        for name in own
        if len(columns[name]) > least
    }
