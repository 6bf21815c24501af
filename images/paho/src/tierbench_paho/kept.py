"""The pairs of a target: new ones in each trial, or kept from trial to trial."""

from collections.abc import Sequence

from .connection import Connection, await_all, close_all, open_all
from .contract import FailureError
from .options import Options
from .pairs import Pair, make_pairs
from .pool import Pool


class Kept:
    """Opened and rested, then left, in each trial. Those of a trial that failed are not kept."""

    def __init__(self, options: Options, pool: Pool) -> None:
        self.options = options
        self.pairs: Sequence[Pair] = ()
        self.reused = False
        self._pool = pool
        self._first = 0

    @property
    def connections(self) -> tuple[Connection, ...]:
        """Of all pairs."""
        return tuple(connection for pair in self.pairs for connection in pair.connections)

    def open(self, name: str) -> FailureError | None:
        """Begins the trial with a name; why connections do not stand, if they do not."""
        timeout = self.options.timeout_nanoseconds
        self.reused = bool(self.pairs)
        if not self.reused:
            self.pairs = make_pairs(self.options, name, self._pool, self._first)
            return open_all(self.connections, timeout)
        for connection in self.connections:
            connection.begin()
        for pair in self.pairs:
            pair.renew(self._first)
        return await_all(self.connections, timeout)

    def rest(self) -> None:
        """Ends the exchange, before its books are read."""
        if not self.options.keeps_connections:
            close_all(self.connections)
        for pair in self.pairs:
            pair.ledger.close()

    def leave(self, *, good: bool) -> None:
        """Ends the trial. Messages of the next one have numbers of their own."""
        if not self.options.keeps_connections:
            self.pairs = ()
            return
        self._first = self._pool.next(max(pair.ledger.upcoming for pair in self.pairs))
        if not good:
            self.close()
        for connection in self.connections:
            connection.settle()

    def close(self) -> None:
        """Ends what was kept."""
        close_all(self.connections)
        self.pairs = ()
