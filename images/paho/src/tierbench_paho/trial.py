"""One trial: connect, subscribe, meet the other parts, load, drain, meet again, disconnect; and what it was.

What the load costs, here and at the broker, and how long it takes are of the same window: from when all parts are
connected to when all have drained.
"""

from collections.abc import Sequence
from time import perf_counter_ns

from .connection import close_all, first_failure, open_all
from .contract import COMPLETED, FAILED, FailureError, Json, now
from .load import run_load
from .options import Options
from .pairs import Pair, make_pairs
from .pool import Pool
from .summary import discard_warm_up, distributions, exchange, on_the_wire, pair_shares, traffic
from .watch import Watch


def run_trial(options: Options, name: str, pool: Pool) -> Json:
    """Runs the trial with a name (its number, or w1 … for warm-ups), and says what it was.

    Raises:
        FailureError: the other parts did not come, or the agent does not answer.
    """
    start_time = now()
    pairs, patience = make_pairs(options, name, pool), options.patience_nanoseconds
    connections = tuple(connection for pair in pairs for connection in pair.connections)
    opened = perf_counter_ns()
    failure = open_all(connections, patience)
    connected, setup = perf_counter_ns(), traffic(connections)
    _meet(options, f"t{name}")
    watch = Watch(options)
    _meet(options, f"t{name}-begin")
    before = traffic(connections)
    started = watch.start()
    failure = failure or run_load(pairs, connections, started, patience)
    _meet(options, f"t{name}-end")
    failure = failure or first_failure(connections, patience) or _nothing(pairs, options.message.qos)
    seen, exchanged = watch.end(), traffic(connections) - before
    close_all(connections)
    for pair in pairs:
        pair.ledger.close()
    load = _ended(pairs, started) - started
    steady = discard_warm_up(pairs)
    return {
        "outcome": COMPLETED if failure is None else FAILED,
        **({} if failure is None else {"failure": failure.to_json()}),
        "startTime": start_time,
        "durationNanoseconds": load,
        **seen,
        "exchange": exchange(pairs)
        | on_the_wire(setup, exchanged)
        | steady
        | {"sessionNanoseconds": connected - opened + load},
        "distributions": distributions(pairs, options.message.qos),
        **pair_shares(pairs, started),
    }


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
    message = "messages were sent, and none came back: does the broker still deliver to this account?"
    return FailureError("NothingDelivered", message)


def _nothing_acknowledged(pairs: Sequence[Pair], qos: int) -> FailureError | None:
    if not qos and any(pair.ledger.acknowledged < pair.ledger.sent for pair in pairs):
        message = "nobody knows what the broker took of the messages: the connection broke off, or it does not answer"
        return FailureError("Unconfirmed", message)
    if any(pair.ledger.acknowledged for pair in pairs) or not any(pair.ledger.sent for pair in pairs):
        return None
    message = "messages were sent, and none was acknowledged: does the broker still let this account write?"
    return FailureError("NothingAcknowledged", message)
