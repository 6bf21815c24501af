"""The load of all pairs."""

import time
from collections.abc import Sequence
from threading import Event
from typing import Final

from .connection import Connection, first_failure
from .contract import FailureError
from .pairs import Pair

_POLL_SECONDS: Final = 0.01


def run_load(
    pairs: Sequence[Pair], connections: Sequence[Connection], started: int, timeout_nanoseconds: int
) -> FailureError | None:
    """The load of all pairs, until its end or until a connection stays away."""
    stop = Event()
    for pair in pairs:
        pair.start(started, stop)
    while not all(pair.over() for pair in pairs):
        failure = first_failure(connections, timeout_nanoseconds)
        if failure is not None:
            stop.set()
            return failure
        time.sleep(_POLL_SECONDS)
    return None
