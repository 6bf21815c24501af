"""Pairs of publisher and subscriber that shared a broker: what each of them had."""

from collections.abc import Sequence
from itertools import zip_longest

from tierbench.api.contract import PairShares
from tierbench.stats.samples import jain_index


def join_pairs(parts: Sequence[PairShares]) -> PairShares | None:
    """The pairs of several parts, one after another."""
    if not parts:
        return None
    return PairShares(
        received=tuple(number for part in parts for number in part.received),
        nanoseconds=tuple(number for part in parts for number in part.nanoseconds),
    )


def add_trial(known: PairShares | None, trial: PairShares | None) -> PairShares | None:
    """What each pair had in all trials so far and in one more."""
    if known is None or trial is None:
        return known or trial
    return PairShares(
        received=_add(known.received, trial.received), nanoseconds=_add(known.nanoseconds, trial.nanoseconds)
    )


def _add(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    return tuple(one + other for one, other in zip_longest(first, second, fillvalue=0))


def pair_rates(shares: PairShares) -> tuple[float, ...]:
    """Messages a second of each pair, by its own time: from the start of the load to its last message."""
    each = zip(shares.received, shares.nanoseconds, strict=True)
    return tuple(1e9 * received / nanoseconds if nanoseconds else 0.0 for received, nanoseconds in each)


def pair_fairness(shares: PairShares | None) -> float | None:
    """Jain's index of the pairs' rates; None of one pair, or if none had anything."""
    rates = () if shares is None else pair_rates(shares)
    return jain_index(rates) if len(rates) > 1 and any(rates) else None
