"""The order in which benchmarks get nodes, or a place in the quota of their namespace.

Within a namespace they go by when their runs became due. Namespaces take turns: the first of each one waits since its
run became due, or since its namespace last got one of the same nodes. The one of these that waits longest is next.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tierbench.api.benchmark import BenchmarkStatus, Phase, RunStatus
from tierbench.api.model import Condition
from tierbench.domain import reasons
from tierbench.domain.results import BenchmarkKey as Key
from tierbench.kube.meta import parse_time


@dataclass(frozen=True)
class Wait:
    """What a benchmark waits for: nodes, or its namespace. Its run became due at `due`."""

    due: datetime
    items: frozenset[str]


def due_time(status: BenchmarkStatus, run: RunStatus, now: datetime) -> datetime:
    """Returns when a run became due: when it started, or when it was resumed if that was later."""
    start, suspended = parse_time(run.start_time), _condition(status, reasons.SUSPENDED)
    if suspended is None:
        return start
    return now if suspended.status == "True" else max(start, parse_time(suspended.last_transition_time))


def known_wait(status: BenchmarkStatus, now: datetime) -> Wait | None:
    """Returns what a benchmark waits for, as far as its status says: all nodes that were chosen. Some may do.

    Returns None if the benchmark does not wait for nodes.
    """
    run, queued = status.run, _condition(status, reasons.QUEUED)
    if (
        run is None
        or status.phase is not Phase.QUEUED
        or queued is None
        or queued.reason == reasons.TOO_MANY_BENCHMARKS
    ):
        return None
    return Wait(due_time(status, run, now), frozenset(node for one in run.assignments for node in one.nodes))


def _condition(status: BenchmarkStatus, name: str) -> Condition | None:
    return next((item for item in status.conditions if item.type == name), None)


@dataclass(frozen=True)
class QueueBlocker:
    """The benchmark that is directly ahead in the queue, as namespace/name. `shared` names the nodes or the namespace
    that this benchmark and any one ahead of it wait for."""

    benchmark: str
    shared: frozenset[str]


@dataclass(frozen=True, order=True)
class _Place:
    since: datetime
    key: Key


class _Lines:
    """Benchmarks in one order. Each waits for those before it that wait for any of the same items.

    Each item has at most one benchmark of a group. A benchmark that moves does not wait for its own group.
    """

    def __init__(self, group_of: Callable[[Key], object]) -> None:
        self._group_of = group_of
        self._waiting: dict[Key, tuple[_Place, frozenset[str]]] = {}
        self._lines: defaultdict[str, list[_Place]] = defaultdict(list)

    def __len__(self) -> int:
        return len(self._waiting)

    def get(self, key: Key) -> tuple[_Place, frozenset[str]] | None:
        """Returns the place of a benchmark and the items that it waits for, or None."""
        return self._waiting.get(key)

    def put(self, place: _Place, items: frozenset[str]) -> tuple[Key, ...]:
        """Returns the benchmarks that may have another one directly ahead of them now."""
        key = place.key
        if self._waiting.get(key) == (place, items):
            return ()
        behind = self.remove(key)
        self._waiting[key] = (place, items)
        for item in items:
            insort(self._lines[item], place)
        return (key, *behind, *self._behind(place, items))

    def remove(self, key: Key) -> tuple[Key, ...]:
        """Returns the benchmarks that were directly behind this one."""
        place, items = self._waiting.pop(key, (None, frozenset[str]()))
        if place is None:
            return ()
        behind = self._behind(place, items)
        for item in items:
            line = self._lines[item]
            del line[bisect_left(line, place)]
            if not line:
                del self._lines[item]
        return behind

    def ahead(self, place: _Place, items: Iterable[str]) -> dict[str, _Place]:
        """Returns who is, or would be, directly ahead at this place, by item."""
        found, group = {}, self._group_of(place.key)
        for item in items:
            line = self._lines.get(item, ())
            at = bisect_left(line, place)
            before = [one for one in line[max(at - 2, 0) : at] if self._group_of(one.key) != group]
            if before:
                found[item] = before[-1]
        return found

    def heads(self) -> tuple[Key, ...]:
        """Returns the benchmarks that have no other one ahead of them."""
        first = {line[0].key: None for line in self._lines.values()}
        return tuple(key for key in first if all(self._lines[item][0].key == key for item in self._waiting[key][1]))

    def _behind(self, place: _Place, items: Iterable[str]) -> tuple[Key, ...]:
        following = ((line, bisect_left(line, place) + 1) for line in map(self._lines.__getitem__, items))
        return tuple(line[at].key for line, at in following if at < len(line))


@dataclass
class _Namespace:
    """`turns` has when a benchmark of the namespace last got each node."""

    lines: _Lines = field(default_factory=lambda: _Lines(lambda key: key))
    turns: dict[str, datetime] = field(default_factory=dict)

    def place(self, key: Key, wait: Wait) -> _Place:
        """Returns the place of a benchmark among the first ones of all namespaces."""
        turns = (self.turns[item] for item in wait.items if item in self.turns)
        return _Place(max((wait.due, *turns)), key)


class AdmissionQueue:
    """The benchmarks of this operator that wait."""

    def __init__(self) -> None:
        self._namespaces: dict[str, _Namespace] = {}
        self._firsts = _Lines(lambda key: key[1])

    def __len__(self) -> int:
        return sum(len(one.lines) for one in self._namespaces.values())

    def enqueue(self, key: Key, wait: Wait) -> tuple[Key, ...]:
        """A benchmark waits. Returns the other benchmarks whose blocker may have changed."""
        namespace = self._namespaces.setdefault(key[1], _Namespace())
        moved = namespace.lines.put(_Place(wait.due, key), wait.items)
        return tuple(one for one in self._rank(namespace, moved) if one != key)

    def leave(self, key: Key, held: Mapping[str, datetime]) -> tuple[Key, ...]:
        """A benchmark waits no longer, and has held these nodes since these times. Returns the benchmarks whose blocker
        may have changed."""
        namespace = self._namespaces.setdefault(key[1], _Namespace())
        moved = namespace.lines.remove(key)
        changed = self._firsts.remove(key)
        turns = {
            node: since for node, since in held.items() if node not in namespace.turns or namespace.turns[node] < since
        }
        if turns:
            namespace.turns |= turns
            moved += namespace.lines.heads()
        changed += self._rank(namespace, moved)
        if not held and not len(namespace.lines):
            del self._namespaces[key[1]]
        return changed

    def blocker(self, key: Key, wait: Wait) -> QueueBlocker | None:
        """Returns the benchmark that is, or would be, directly ahead of one that waits; None if it is first."""
        namespace = self._namespaces.get(key[1], _Namespace())
        ahead = namespace.lines.ahead(_Place(wait.due, key), wait.items)
        ahead = ahead or self._firsts.ahead(namespace.place(key, wait), wait.items)
        if not ahead:
            return None
        _, other, name = max(ahead.values()).key
        return QueueBlocker(f"{other}/{name}", frozenset(ahead))

    def heads(self) -> tuple[Key, ...]:
        """Returns the benchmarks that have no other one ahead of them."""
        return self._firsts.heads()

    def _rank(self, namespace: _Namespace, moved: Iterable[Key]) -> tuple[Key, ...]:
        """Moves the benchmarks that have become the first ones of their namespace, or are that no longer."""
        changed = dict.fromkeys(moved)
        for key in tuple(changed):
            found = namespace.lines.get(key)
            if found is None:
                continue
            place, items = found
            if namespace.lines.ahead(place, items):
                others = self._firsts.remove(key)
            else:
                others = self._firsts.put(namespace.place(key, Wait(place.since, items)), items)
            changed |= dict.fromkeys(others)
        return tuple(changed)
