"""One trial: connect, subscribe, meet the other parts, load, drain, meet again, disconnect; and what it was."""

import resource
import secrets
import time
from collections.abc import Sequence
from threading import Event
from time import perf_counter_ns
from typing import Final

from .connection import close_all
from .contract import COMPLETED, FAILED, FailureError, Json, now
from .options import Options
from .pairs import Echoing, Pair, Place, Publishing, await_ready
from .summary import distributions, exchange

_POLL_SECONDS: Final = 0.01
_CPU_LIMIT_MILLICORES: Final = 1000  # Python runs one thread at a time


def run_trial(options: Options, name: str, plain: bytes) -> Json:
    """Runs the trial with a name (its number, or w1 … for warm-ups), and says what it was.

    Raises:
        FailureError: the other parts did not come.
    """
    start_time, cpu = now(), _cpu_nanoseconds()
    pairs = _make_pairs(options, name, plain)
    connections = tuple(connection for pair in pairs for connection in pair.connections)
    opened = perf_counter_ns()
    for connection in connections:
        connection.open()
    failure = await_ready(connections, options.patience_nanoseconds)
    _meet(options, f"t{name}")
    started = perf_counter_ns()
    failure = failure or _load(options, pairs, started)
    _meet(options, f"t{name}-end")
    failure = failure or _check(options, pairs)
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


def _make_pairs(options: Options, name: str, plain: bytes) -> Sequence[Pair]:
    run = secrets.token_hex(4)
    places = [Place(f"{options.topic}/t{name}/{pair}", f"{run}-{name}-{pair}") for pair in options.pairs]
    if options.role == "Echo":
        return [Echoing(options, place) for place in places]
    return [Publishing(options, place, plain, echoed=options.role == "Publisher") for place in places]


def _meet(options: Options, place: str) -> None:
    barrier = options.barrier
    if options.agent is not None and barrier.parts > 1:
        options.agent.meet(f"{barrier.name}-{place}", barrier.part, barrier.parts)


def _load(options: Options, pairs: Sequence[Pair], started: int) -> FailureError | None:
    """The load of all pairs, until its end or until a connection stays away."""
    stop = Event()
    for pair in pairs:
        pair.start(started, stop)
    while not all(pair.over() for pair in pairs):
        failure = _broken(options, pairs)
        if failure is not None:
            stop.set()
            return failure
        time.sleep(_POLL_SECONDS)
    return None


def _check(options: Options, pairs: Sequence[Pair]) -> FailureError | None:
    failure = _broken(options, pairs)
    if failure is None and any(pair.ledger.sent for pair in pairs) and not any(pair.ledger.received for pair in pairs):
        message = "messages were sent, and none came back: does the broker still deliver to this account?"
        return FailureError("NothingDelivered", message)
    return failure


def _broken(options: Options, pairs: Sequence[Pair]) -> FailureError | None:
    failures = (one.failed(options.patience_nanoseconds) for pair in pairs for one in pair.connections)
    return next((failure for failure in failures if failure is not None), None)


def _cpu_nanoseconds() -> int:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return round((usage.ru_utime + usage.ru_stime) * 1e9)
