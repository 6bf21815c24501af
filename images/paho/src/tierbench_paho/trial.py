"""Runs one trial: connect, subscribe, wait for the other parts, load, drain, wait again, disconnect.

Connections that are kept are established for the first trial, and closed after the last.

Cost and duration of the load, here and at the broker, have the same window. It starts when all parts are connected, and
ends when all have drained.
"""

from collections.abc import Sequence
from time import perf_counter_ns

from .connection import first_failure
from .contract import COMPLETED, FAILED, FailureError, Json, now
from .kept import Kept
from .load import run_load
from .options import Options
from .pairs import Pair
from .summary import connecting, discard_warm_up, distributions, exchange, pair_shares, traffic
from .watch import Watch


def run_trial(kept: Kept, name: str) -> Json:
    """Runs the trial with a name (its number, or w1 … for warm-ups), and returns its line.

    Raises:
        FailureError: the other parts did not come, or the agent does not answer.
    """
    start_time, options = now(), kept.options
    timeout, opened = options.timeout_nanoseconds, perf_counter_ns()
    failure = kept.open(name)
    pairs, connections = kept.pairs, kept.connections
    connected, setup = perf_counter_ns(), traffic(connections)
    made = {} if kept.reused else connecting(connections, setup)
    _meet(options, f"t{name}")
    watch = Watch(options)
    _meet(options, f"t{name}-begin")
    before = traffic(connections)
    started = watch.start()
    failure = failure or run_load(pairs, connections, started, timeout)
    _meet(options, f"t{name}-end")
    failure = failure or first_failure(connections, timeout) or _nothing(pairs, options.message.qos)
    seen, exchanged = watch.end(), traffic(connections) - before
    kept.rest()
    load = _ended(pairs, started) - started
    steady = discard_warm_up(pairs)
    trial = {
        "outcome": COMPLETED if failure is None else FAILED,
        **({} if failure is None else {"failure": failure.to_json()}),
        "startTime": start_time,
        "durationNanoseconds": load,
        **seen,
        "exchange": exchange(pairs)
        | made
        | {"loadBytes": exchanged.bytes, "loadPackets": exchanged.packets}
        | steady
        | {"sessionNanoseconds": connected - opened + load},
        "distributions": distributions(pairs, options.message.qos),
        **pair_shares(pairs, started),
    }
    kept.leave(good=failure is None)
    return trial


def _meet(options: Options, place: str) -> None:
    barrier = options.barrier
    if options.agent is not None and barrier.parts > 1:
        options.agent.meet(f"{barrier.name}-{place}", barrier.part, barrier.parts)


def _ended(pairs: Sequence[Pair], started: int) -> int:
    """When the last message came, or was acknowledged if none does; or was sent if that did not happen either."""
    done = max(pair.ledger.last_done for pair in pairs)
    return max(done or max(pair.ledger.last_sent for pair in pairs), started)


def _nothing(pairs: Sequence[Pair], qos: int) -> FailureError | None:
    """Why the trial failed that nothing is known to have come of."""
    if pairs[0].ledger.alone:
        return _nothing_acknowledged(pairs, qos)
    if any(pair.ledger.received for pair in pairs) or not any(pair.ledger.sent for pair in pairs):
        return None
    message = "messages were sent, and none returned: check that the broker delivers to this account"
    return FailureError("NothingDelivered", message)


def _nothing_acknowledged(pairs: Sequence[Pair], qos: int) -> FailureError | None:
    if not qos and any(pair.ledger.acknowledged < pair.ledger.sent for pair in pairs):
        message = "it is unknown which messages the broker received: the connection broke, or it does not answer"
        return FailureError("Unconfirmed", message)
    if any(pair.ledger.acknowledged for pair in pairs) or not any(pair.ledger.sent for pair in pairs):
        return None
    message = "messages were sent, and none was acknowledged: check that this account may write"
    return FailureError("NothingAcknowledged", message)
