"""Wake-ups of the loops, and who waits for what."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

Key = tuple[str, str, str]
"""Kind, namespace and name of a benchmark."""


class Wakeups:
    """One bell a benchmark: rung by events of its children, heard by its loop."""

    def __init__(self) -> None:
        self._bells: dict[Key, asyncio.Event] = {}

    def bell(self, key: Key) -> asyncio.Event:
        """The bell of a benchmark."""
        return self._bells.setdefault(key, asyncio.Event())

    def ring(self, key: Key) -> None:
        """Wakes one loop, if there is one."""
        bell = self._bells.get(key)
        if bell is not None:
            bell.set()

    def ring_all(self) -> None:
        """Wakes every loop."""
        for bell in self._bells.values():
            bell.set()

    def forget(self, key: Key) -> None:
        """The loop has ended."""
        self._bells.pop(key, None)


@dataclass(frozen=True, order=True)
class _Place:
    since: str
    key: Key


class Queue:
    """Benchmarks of this operator that wait for nodes, or their namespace's turn: the oldest goes first."""

    def __init__(self) -> None:
        self._waiting: dict[Key, tuple[_Place, frozenset[str]]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def wait(self, key: Key, since: str, wanted: Iterable[str]) -> None:
        """`key`, created at `since`, waits for all that is `wanted`."""
        self._waiting[key] = (_Place(since, key), frozenset(wanted))

    def leave(self, key: Key) -> None:
        """`key` waits no longer."""
        self._waiting.pop(key, None)

    def ahead(self, key: Key) -> tuple[str, ...]:
        """Who has waited for longer for any of what `key` waits for, as namespace/name."""
        mine = self._waiting.get(key)
        if mine is None:
            return ()
        place, wanted = mine
        older = sorted(other for other, theirs in self._waiting.values() if other < place and theirs & wanted)
        return tuple(f"{other.key[1]}/{other.key[2]}" for other in older)
