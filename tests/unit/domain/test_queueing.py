"""The order of the queue: by when runs became due within a namespace, and in turns among namespaces."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.domain.objects import KIND, START
from tierbench.domain.queueing import AdmissionQueue, QueueBlocker, Wait
from tierbench.domain.results import BenchmarkKey as Key

A1, A2, A3 = ((KIND, "a", name) for name in ("a1", "a2", "a3"))
B1, C1 = (KIND, "b", "b1"), (KIND, "c", "c1")


def wait(minute: int, *items: str) -> Wait:
    return Wait(START + timedelta(minutes=minute), frozenset(items))


def order(queue: AdmissionQueue, waits: dict[Key, Wait]) -> list[Key]:
    """Returns the benchmarks in the order in which they get a single node, for one minute each."""
    found, left, minute = list[Key](), dict(waits), 60
    while left:
        (key,) = queue.heads()
        minute += 1
        queue.leave(key, dict.fromkeys(left.pop(key).items, START + timedelta(minutes=minute)))
        queue.leave(key, {})
        found.append(key)
    return found


def queue_of(waits: dict[Key, Wait]) -> AdmissionQueue:
    queue = AdmissionQueue()
    for key, each in waits.items():
        queue.enqueue(key, each)
    return queue


def test_runs_of_a_namespace_go_in_the_order_in_which_they_became_due() -> None:
    waits = {A2: wait(2, "n"), A3: wait(3, "n"), A1: wait(1, "n")}
    assert order(queue_of(waits), waits) == [A1, A2, A3]


def test_namespaces_take_turns() -> None:
    waits = {A1: wait(1, "n"), A2: wait(2, "n"), A3: wait(3, "n"), B1: wait(4, "n"), C1: wait(5, "n")}
    assert order(queue_of(waits), waits) == [A1, B1, C1, A2, A3]


def test_only_the_first_benchmark_of_a_namespace_blocks_other_namespaces() -> None:
    """B1 does not wait for A2, which waits for A1."""
    queue = queue_of({A1: wait(1, "n1", "n2"), A2: wait(2, "n2", "n3"), B1: wait(3, "n3")})
    assert queue.blocker(A2, wait(2, "n2", "n3")) == QueueBlocker("a/a1", frozenset({"n2"}))
    assert queue.blocker(B1, wait(3, "n3")) is None


def test_benchmark_of_many_nodes_is_not_overtaken_by_one_that_comes_later() -> None:
    """This holds even while some of its nodes are free."""
    queue = queue_of({A1: wait(1, "n1", "n2", "n3")})
    for minute, node in enumerate(("n1", "n2", "n3"), start=2):
        assert queue.blocker(B1, wait(minute, node)) == QueueBlocker("a/a1", frozenset({node}))
    assert queue.blocker(B1, wait(9, "n4")) is None


def test_turn_counts_only_at_the_nodes_that_were_taken() -> None:
    waits = {A1: wait(1, "n1"), A2: wait(2, "n2"), B1: wait(3, "n1", "n2")}
    queue = queue_of(waits)
    queue.leave(A1, {"n1": START + timedelta(minutes=4)})
    assert queue.blocker(A2, waits[A2]) is None
    assert queue.blocker(B1, waits[B1]) == QueueBlocker("a/a2", frozenset({"n2"}))


def test_turns_at_held_nodes_are_known_after_a_restart() -> None:
    """The holder may be reconciled after the others of its namespace."""
    waits = {A2: wait(1, "n"), B1: wait(2, "n")}
    queue = queue_of(waits)
    assert queue.heads() == (A2,)
    assert set(queue.leave(A1, {"n": START + timedelta(minutes=3)})) == {A2, B1}
    assert queue.heads() == (B1,)
    assert queue.leave(A1, {"n": START + timedelta(minutes=3)}) == ()


def test_queue_forgets_namespaces_that_neither_wait_nor_hold_nodes() -> None:
    queue = queue_of({A1: wait(1, "n")})
    assert len(queue) == 1
    queue.leave(A1, {"n": START})
    queue.leave(A1, {})
    assert (len(queue), vars(queue)["_namespaces"]) == (0, {})


KEYS = st.tuples(st.just(KIND), st.sampled_from("abc"), st.sampled_from("xyz"))
NODES = st.sets(st.sampled_from(["n1", "n2", "n3"]), min_size=1)
ENTERS = st.tuples(st.just("enters"), KEYS, st.integers(0, 9), NODES)
LEAVES = st.tuples(st.just("leaves"), KEYS, st.integers(0, 9), NODES | st.just(set[str]()))


@given(st.lists(ENTERS | LEAVES))
def test_benchmark_is_returned_when_its_blocker_may_have_changed(steps: list[tuple[str, Key, int, set[str]]]) -> None:
    """So no queued benchmark has to poll."""
    queue, model = AdmissionQueue(), Model()
    known = dict[Key, str | None]()
    for what, key, minute, nodes in steps:
        mine = wait(minute, *nodes)
        if what == "enters":
            model.waiting[key] = mine
            known[key] = None if (first := queue.blocker(key, mine)) is None else first.benchmark
            changed = queue.enqueue(key, mine)
            assert key not in changed
        else:
            model.leave(key, mine)
            changed = queue.leave(key, dict.fromkeys(nodes, mine.due))
        known |= {one: model.blocker(one) for one in changed}
        known = {one: who for one, who in known.items() if one in model.waiting}
        assert known == {one: model.blocker(one) for one in model.waiting}
        blockers = {one: queue.blocker(one, each) for one, each in model.waiting.items()}
        assert known == {one: None if who is None else who.benchmark for one, who in blockers.items()}
        assert set(queue.heads()) == {one for one, who in known.items() if who is None}
        assert len(queue) == len(model.waiting)


class Model:
    """The queue, calculated again for each question."""

    def __init__(self) -> None:
        self.waiting: dict[Key, Wait] = {}
        self.turns: dict[str, dict[str, Wait]] = {}

    def leave(self, key: Key, held: Wait) -> None:
        self.waiting.pop(key, None)
        turns = self.turns.setdefault(key[1], {})
        for node in held.items:
            turns[node] = max(held, turns.get(node, held), key=lambda each: each.due)
        if not held.items and not any(one[1] == key[1] for one in self.waiting):
            del self.turns[key[1]]

    def blocker(self, key: Key) -> str | None:
        mine = self.waiting.get(key)
        if mine is None:
            return None
        own = self._before(key, {one: (each.due, one) for one, each in self.waiting.items() if one[1] == key[1]})
        firsts = {one for one in self.waiting if not self._own(one)}
        others = self._before(key, {one: (self._since(one), one) for one in firsts}) if key in firsts else []
        ahead = own or others
        return "/".join(ahead[-1][1:]) if ahead else None

    def _own(self, key: Key) -> list[Key]:
        return self._before(key, {one: (each.due, one) for one, each in self.waiting.items() if one[1] == key[1]})

    def _before(self, key: Key, places: dict[Key, object]) -> list[Key]:
        shares = (one for one in places if self.waiting[one].items & self.waiting[key].items)
        return sorted((one for one in shares if places[one] < places[key]), key=places.__getitem__)  # type: ignore[operator, arg-type]

    def _since(self, key: Key) -> object:
        turns = self.turns.get(key[1], {})
        return max([self.waiting[key].due, *(turns[node].due for node in self.waiting[key].items if node in turns)])
