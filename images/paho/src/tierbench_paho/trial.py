"""One trial: connect, subscribe, meet the other parts, load, drain, meet again, disconnect; and what it was."""

import resource
import time
from collections.abc import Sequence
from threading import Event
from time import perf_counter_ns
from typing import Final

from .connection import Connection, close_all, first_failure, open_all
from .contract import COMPLETED, FAILED, FailureError, Json, now
from .options import Options
from .pairs import Pair, make_pairs
from .summary import distributions, exchange

_POLL_SECONDS: Final = 0.01
_CPU_LIMIT_MILLICORES: Final = 1000  # Python runs one thread at a time


def run_trial(options: Options, name: str, plain: bytes) -> Json:
    """Runs the trial with a name (its number, or w1 … for warm-ups), and says what it was.

    Raises:
        FailureError: the other parts did not come.
    """
    start_time, cpu = now(), _cpu_nanoseconds()
    pairs, patience = make_pairs(options, name, plain), options.patience_nanoseconds
    connections = tuple(connection for pair in pairs for connection in pair.connections)
    opened = perf_counter_ns()
    failure = open_all(connections, patience)
    _meet(options, f"t{name}")
    started = perf_counter_ns()
    failure = failure or _load(pairs, connections, started, patience)
    _meet(options, f"t{name}-end")
    failure = failure or first_failure(connections, patience) or _nothing_delivered(pairs)
    cpu = _cpu_nanoseconds() - cpu
    close_all(connections)
    for pair in pairs:
        pair.ledger.close()
    ended = max(
        max(pair.ledger.last_received for pair in pairs) or max(pair.ledger.last_sent for pair in pairs), started
    )
    return {
        "outcome": COMPLETED if failure is None else FAILED,
        **({} if failure is None else {"failure": failure.to_json()}),
        "startTime": start_time,
        "durationNanoseconds": ended - started,
        "client": {"cpuNanoseconds": cpu, "cpuLimitMillicores": _CPU_LIMIT_MILLICORES},
        "exchange": exchange(pairs, options.message.size) | {"sessionNanoseconds": ended - opened},
        "distributions": distributions(pairs, options.message.qos),
    }


def _meet(options: Options, place: str) -> None:
    barrier = options.barrier
    if options.agent is not None and barrier.parts > 1:
        options.agent.meet(f"{barrier.name}-{place}", barrier.part, barrier.parts)


def _load(
    pairs: Sequence[Pair], connections: Sequence[Connection], started: int, patience_nanoseconds: int
) -> FailureError | None:
    """The load of all pairs, until its end or until a connection stays away."""
    stop = Event()
    for pair in pairs:
        pair.start(started, stop)
    while not all(pair.over() for pair in pairs):
        failure = first_failure(connections, patience_nanoseconds)
        if failure is not None:
            stop.set()
            return failure
        time.sleep(_POLL_SECONDS)
    return None


def _nothing_delivered(pairs: Sequence[Pair]) -> FailureError | None:
    if any(pair.ledger.received for pair in pairs) or not any(pair.ledger.sent for pair in pairs):
        return None
    message = "messages were sent, and none came back: does the broker still deliver to this account?"
    return FailureError("NothingDelivered", message)


def _cpu_nanoseconds() -> int:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return round((usage.ru_utime + usage.ru_stime) * 1e9)
