"""What comes before the first trial: cold brokers, caches and processors are slow at first."""

import math
from dataclasses import replace
from time import perf_counter_ns
from typing import Final

from .connection import close_all, open_all
from .load import run_load
from .options import Load, Options, Pacing
from .pairs import make_pairs
from .pool import Pool
from .steady import Times

_ROUND: Final = Load(None, 0.25)
_GAIN: Final = 0.95  # of the best round's median: less is no gain
_VAIN: Final = 3  # rounds without a gain, after which there is none to come


def warm(options: Options, pool: Pool) -> None:
    """Lets as many pairs as the trials have exchange messages until their round trip no longer falls.

    What goes wrong here the trials will tell.
    """
    one = replace(options, role="Both", pacing=Pacing(1), load=_ROUND, keeps_connections=False)
    best, vain = math.inf, 0
    for number in range(options.warm_rounds):
        median = _median(one, f"warm{options.barrier.part}-{number}", pool)
        if median is None:
            return
        vain += 1
        if median < _GAIN * best:
            best, vain = median, 0
        if vain == _VAIN:
            return


def _median(options: Options, name: str, pool: Pool) -> float | None:
    """Of the round trips of one round; None if there were none."""
    pairs, timeout = make_pairs(options, name, pool), options.timeout_nanoseconds
    connections = tuple(connection for pair in pairs for connection in pair.connections)
    failure = open_all(connections, timeout) or run_load(pairs, connections, perf_counter_ns(), timeout)
    close_all(connections)
    times = Times()
    for pair in pairs:
        times.include(pair.ledger.series.times())
    return times.round_trip.median() if failure is None and times.round_trip.count else None
