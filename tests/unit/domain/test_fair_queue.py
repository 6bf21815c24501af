"""A simulation of 1,000 benchmarks in 20 namespaces that bounds how long each of them waits for its nodes.

Once a benchmark is the first of its namespace, each other namespace gets each of its nodes at most once before it. A
namespace that takes a node goes behind all that wait for it. An operator that starts knows no turns of ended runs, so
each restart allows one more.
"""

import heapq
import itertools
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

import pytest

from tests.unit.domain.objects import KIND, START
from tierbench.domain.queueing import AdmissionQueue, Wait
from tierbench.domain.results import BenchmarkKey as Key

NODES = tuple(f"n{number}" for number in range(8))
HONEST = tuple(f"honest-{number}" for number in range(16))
OTHERS = 19
"""The number of the other namespaces."""
LONGEST = timedelta(seconds=61)
"""The duration of the longest run, and the second to which the time is exact when a run becomes due."""


@dataclass(eq=False)
class Benchmark:
    """A benchmark whose runs take `seconds`. With a period it is due again that long after the end of a run."""

    key: Key
    nodes: frozenset[str]
    seconds: float
    period: float = 0
    due: datetime = START
    is_first: bool = False
    overtaken: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each other namespace got each node since this benchmark was the first of its namespace."""
    allowed: int = 1
    position: int = 1
    """The number of benchmarks of its namespace that waited when it became due, including itself."""
    waits: list[tuple[timedelta, int]] = field(default_factory=list)
    """How long it waited, and its position."""

    @property
    def wait(self) -> Wait:
        return Wait(self.due, self.nodes)


class Simulation:
    """The nodes, an operator that acts by its queue, and benchmarks. Each event has a time of its own."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = START
        self.queue = AdmissionQueue()
        self.waiting: defaultdict[str, dict[Key, Benchmark]] = defaultdict(dict)
        self.holders: dict[str, tuple[Benchmark, datetime]] = {}
        self.events: list[tuple[datetime, int, str, Benchmark | None]] = []
        self.numbers = itertools.count()

    def at(self, when: datetime, what: str, benchmark: Benchmark | None = None) -> None:
        heapq.heappush(self.events, (when, next(self.numbers), what, benchmark))

    def after(self, seconds: float, what: str, benchmark: Benchmark | None = None) -> None:
        self.at(self.now + timedelta(seconds=seconds), what, benchmark)

    def run(self, until: datetime) -> None:
        """Handles the events until a time."""
        while self.events and self.events[0][0] < until:
            when, _, what, benchmark = heapq.heappop(self.events)
            self._pass_time(when)
            getattr(self, what)(*([] if benchmark is None else [benchmark]))
            self._acquire()

    def _pass_time(self, until: datetime) -> None:
        """Sets the time so that no two events happen at the same time."""
        self.now = max(until, self.now + timedelta(microseconds=1))

    def becomes_due(self, one: Benchmark) -> None:
        own = self.waiting[one.key[1]]
        own[one.key] = one
        one.due, one.is_first, one.allowed, one.position = self.now, False, 1, len(own)
        one.overtaken.clear()
        self.queue.enqueue(one.key, one.wait)
        self._find_firsts(own)

    def ends(self, one: Benchmark) -> None:
        self.queue.leave(one.key, {})
        self.holders = {node: held for node, held in self.holders.items() if held[0] is not one}
        if one.period:
            self.after(one.period, "becomes_due", one)

    def is_deleted_and_created(self, one: Benchmark) -> None:
        if self.waiting[one.key[1]].pop(one.key, None) is not None:
            self.queue.leave(one.key, {})
            self.becomes_due(one)
        self.after(self.random.uniform(60, 1200), "is_deleted_and_created", one)

    def restarts(self) -> None:
        """Another operator reads everything, in any order."""
        self.queue = AdmissionQueue()
        holding = {one.key: one for one, _ in self.holders.values()}
        everyone = [*holding.values(), *(one for own in self.waiting.values() for one in own.values())]
        self.random.shuffle(everyone)
        for one in everyone:
            one.allowed += 1
            if one.key in holding:
                self.queue.leave(one.key, {node: at for node, (held, at) in self.holders.items() if held is one})
            else:
                self.queue.enqueue(one.key, one.wait)

    def _acquire(self) -> None:
        """Benchmarks with no other one ahead of them take their nodes, if all of these are free."""
        for key in self.queue.heads():
            one = self.waiting[key[1]][key]
            if not one.nodes & self.holders.keys() and self.queue.blocker(key, one.wait) is None:
                self._take(one)

    def _take(self, one: Benchmark) -> None:
        self._pass_time(self.now)
        namespace = one.key[1]
        del self.waiting[namespace][one.key]
        one.waits.append((self.now - one.due, one.position))
        self.holders |= dict.fromkeys(one.nodes, (one, self.now))
        self.queue.leave(one.key, dict.fromkeys(one.nodes, self.now))
        self.after(one.seconds, "ends", one)
        for other in (other for name, own in self.waiting.items() if name != namespace for other in own.values()):
            if other.is_first and (shared := one.nodes & other.nodes):
                other.overtaken.update((namespace, node) for node in shared)
                assert max(other.overtaken.values()) <= other.allowed, (other, one)
        self._find_firsts(self.waiting[namespace])

    def _find_firsts(self, own: dict[Key, Benchmark]) -> None:
        taken = set[str]()
        for one in sorted(own.values(), key=lambda one: (one.due, one.key)):
            one.is_first |= not one.nodes & taken
            taken |= one.nodes


def waits(simulation: Simulation, everyone: list[Benchmark]) -> list[tuple[Benchmark, timedelta, int]]:
    """Returns all waits, including those that have not ended."""
    ended = [(one, *each) for one in everyone for each in one.waits]
    waiting = [one for own in simulation.waiting.values() for one in own.values()]
    return ended + [(one, simulation.now - one.due, one.position) for one in waiting]


def test_wait_is_bounded_by_the_namespaces_and_the_position() -> None:
    simulation = Simulation(1)
    everyone = [
        Benchmark((KIND, f"team-{team}", f"b{number}"), frozenset({"n0", "n1"}), seconds=60)
        for team in range(1 + OTHERS)
        for number in range(50)
    ]
    for one in everyone:
        simulation.after(simulation.random.uniform(0, 600), "becomes_due", one)
    simulation.run(START + timedelta(days=1))
    assert {len(one.waits) for one in everyone} == {1}
    for _, waited, position in waits(simulation, everyone):
        assert waited <= (1 + (1 + OTHERS) * position) * LONGEST


def adversaries(random: Random) -> list[Benchmark]:
    """Four namespaces that ask for more than their share, with 600 benchmarks."""
    flood = [Benchmark((KIND, "flood", f"b{n}"), frozenset({NODES[n % 8]}), 60, period=1) for n in range(400)]
    wide = [Benchmark((KIND, "wide", f"b{n}"), frozenset(NODES), 60, period=1) for n in range(50)]
    chain = [Benchmark((KIND, "chain", f"b{n}"), frozenset({NODES[n % 8], NODES[(n + 1) % 8]}), 60) for n in range(50)]
    hop = [Benchmark((KIND, "hop", f"b{n}"), frozenset(random.sample(NODES, 2)), 60, period=1) for n in range(100)]
    return [*flood, *wide, *chain, *hop]


@pytest.mark.parametrize("restarts", [0, 10])
@pytest.mark.parametrize("seed", [1, 2])
def test_no_namespace_delays_others_by_more_than_its_turns(seed: int, restarts: int) -> None:
    """A namespace has one turn per node before a benchmark. While the benchmark waits, a run ahead of it measures."""
    simulation, hours = Simulation(seed), 6
    random = simulation.random
    honest = [
        Benchmark(
            (KIND, namespace, f"b{number}"),
            frozenset(random.sample(NODES, random.choice((1, 2, 2, 2, 5)))),
            seconds=random.uniform(5, 60),
            period=random.choice((60, 3600, 86400)),
        )
        for namespace in HONEST
        for number in range(25)
    ]
    hostile = adversaries(random)
    for one in (*honest, *hostile):
        simulation.after(random.uniform(0, 3600), "becomes_due", one)
        if one.key[1] == "hop":
            simulation.after(random.uniform(0, 3600), "is_deleted_and_created", one)
    for _ in range(restarts):
        simulation.after(random.uniform(0, hours * 3600), "restarts")
    simulation.run(START + timedelta(hours=hours))
    turns = 1 + (1 + OTHERS) * len(NODES) * (1 + restarts)
    found = waits(simulation, [*honest, *hostile])
    assert len(found) > 1500
    for _, waited, position in found:
        assert waited <= position * turns * LONGEST
