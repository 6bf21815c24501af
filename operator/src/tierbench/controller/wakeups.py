"""Wake-ups of the loops, and who waits for what."""

import asyncio
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tierbench.domain.observed import QueueBlocker
from tierbench.domain.results import BenchmarkKey as Key


class Wakeups:
    """One bell a benchmark, heard by its loop: rung by events of its children, and of the nodes that it asks about."""

    def __init__(self) -> None:
        self._bells: dict[Key, asyncio.Event] = {}
        self._nodes: dict[Key, frozenset[str] | None] = {}

    def bell(self, key: Key) -> asyncio.Event:
        """The bell of a benchmark."""
        return self._bells.setdefault(key, asyncio.Event())

    def ask(self, key: Key, nodes: frozenset[str] | None) -> None:
        """Which nodes matter to a benchmark; None for all."""
        self._nodes[key] = nodes

    def ring(self, *keys: Key) -> None:
        """Wakes these loops, where there are any."""
        for key in keys:
            bell = self._bells.get(key)
            if bell is not None:
                bell.set()

    def ring_all(self) -> None:
        """Wakes every loop."""
        self.ring(*self._bells)

    def ring_for(self, nodes: Iterable[str]) -> None:
        """Wakes the loops to which one of these nodes matters."""
        changed = frozenset(nodes)
        self.ring(*(key for key, mine in self._nodes.items() if mine is None or mine & changed))

    def forget(self, key: Key) -> None:
        """The loop has ended."""
        self._bells.pop(key, None)
        self._nodes.pop(key, None)


@dataclass(frozen=True, order=True)
class _Place:
    since: str
    key: Key


class Queue:
    """Benchmarks of this operator that wait for nodes, or their namespace's turn: the oldest goes first."""

    def __init__(self) -> None:
        self._waiting: dict[Key, tuple[_Place, frozenset[str]]] = {}
        self._lines: defaultdict[str, list[_Place]] = defaultdict(list)

    def __len__(self) -> int:
        return len(self._waiting)

    def wait(self, key: Key, since: str, wanted: Iterable[str]) -> tuple[Key, ...]:
        """`key`, created at `since`, waits for all that is `wanted`. Whose place that changes, its own first."""
        place, want = _Place(since, key), frozenset(wanted)
        if self._waiting.get(key) == (place, want):
            return ()
        before = self.leave(key)
        self._waiting[key] = (place, want)
        for item in want:
            insort(self._lines[item], place)
        return (key, *before, *self._next(place, want))

    def leave(self, key: Key) -> tuple[Key, ...]:
        """`key` waits no longer. Those who came next after it."""
        place, wanted = self._waiting.pop(key, (None, frozenset[str]()))
        if place is None:
            return ()
        after = tuple(self._next(place, wanted))
        for item in wanted:
            self._lines[item].remove(place)
            if not self._lines[item]:
                del self._lines[item]
        return after

    def ahead(self, key: Key) -> QueueBlocker | None:
        """The last of those who have waited for longer for any of what `key` waits for."""
        mine = self._waiting.get(key)
        if mine is None:
            return None
        place, wanted = mine
        before = {item: self._lines[item][at - 1] for item in wanted if (at := bisect_left(self._lines[item], place))}
        if not before:
            return None
        _, namespace, name = max(before.values()).key
        return QueueBlocker(f"{namespace}/{name}", frozenset(before))

    def first(self) -> tuple[Key, ...]:
        """All that nobody is ahead of in one line at least."""
        return tuple(dict.fromkeys(line[0].key for line in self._lines.values()))

    def _next(self, place: _Place, wanted: Iterable[str]) -> Iterator[Key]:
        for item in wanted:
            line = self._lines[item]
            at = bisect_left(line, place) + 1
            if at < len(line):
                yield line[at].key
