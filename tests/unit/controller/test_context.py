"""Caches of the objects of benchmarks, the workqueue and the admission queue."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tierbench.controller.context import AdmissionQueue, ObjectCaches, RunResults, WorkQueue
from tierbench.domain.decision import QueueBlocker
from tierbench.domain.results import BenchmarkKey as Key
from tierbench.domain.results import ResultMetadata
from tierbench.kube.meta import CONFIG_MAPS, PODS

A, B, C = (("FileTransferBenchmark", "ns", name) for name in "abc")
KEY = ("FileTransferBenchmark", "ns", "demo")
LABELS = {"tierbench.io/kind": KEY[0], "tierbench.io/benchmark": KEY[2]}


def item(version: int, name: str = "one", **more: Any) -> dict[str, Any]:
    metadata = {"namespace": "ns", "name": name, "resourceVersion": str(version), "labels": LABELS}
    return {"metadata": metadata, **more}


def test_objects_of_other_types_are_not_cached() -> None:
    objects = ObjectCaches()
    objects.observe_write(CONFIG_MAPS, item(1))
    objects.observe_write(PODS, item(1))
    assert objects[PODS].names() == (("ns", "one"),)
    objects.observe_write(PODS, item(2, metadata=item(2)["metadata"] | {"deletionTimestamp": "now"}), ("ns", "one"))
    assert "deletionTimestamp" in objects[PODS].by_index(KEY)[0]["metadata"]
    objects.observe_write(PODS, None, ("ns", "one"))
    assert objects[PODS].names() == ()


def head(name: str, run: int) -> ResultMetadata:
    return ResultMetadata(name, "uid", 1, run, 0, ("", "", ""), ended=True)


def test_only_results_of_followed_runs_are_cached() -> None:
    results = RunResults()
    assert not results.observe(item(1, spec={"run": 2}))
    assert not results.follow(KEY, 2, [head("zero", 1)])
    assert results.follow(KEY, 2, [head("zero", 1), head("one", 2)]), "it has to be read"
    assert not results.observe(item(1, "zero", spec={"run": 1}))
    assert results.observe(item(2, spec={"run": 2}))
    assert not results.follow(KEY, 2, [head("one", 2)])
    results.follow(KEY, 3, [])
    assert results.by_index(KEY) == ()
    results.observe(item(3, "three", spec={"run": 3}))
    results.unfollow(KEY)
    assert results.by_index(KEY) == ()
    assert not results.observe(item(4, "three", spec={"run": 3}))


def test_oldest_benchmark_that_waits_for_a_node_is_first() -> None:
    queue = AdmissionQueue()
    assert queue.enqueue(B, "2026-01-02T00:00:00Z", ["n1", "n2"]) == (B,)
    assert queue.enqueue(A, "2026-01-01T00:00:00Z", ["n2"]) == (A, B), "it comes before one that waits already"
    assert queue.enqueue(C, "2026-01-03T00:00:00Z", ["n3"]) == (C,)
    assert queue.enqueue(C, "2026-01-03T00:00:00Z", ["n3"]) == ()
    assert queue.blocker(A) is None
    assert queue.blocker(B) == QueueBlocker("ns/a", frozenset({"n2"}))
    assert queue.blocker(C) is None
    assert set(queue.heads()) == {A, B, C}
    assert queue.remove(A) == (B,)
    assert queue.remove(A) == ()
    assert queue.blocker(B) is None
    assert len(queue) == 2


KEYS = st.sampled_from([("FileTransferBenchmark", "ns", name) for name in "abcdefgh"])
WANTED = st.sets(st.sampled_from(["n1", "n2", "n3"]), min_size=1)


@given(st.lists(st.tuples(KEYS, st.integers(1, 9), st.none() | WANTED)))
def test_benchmark_is_returned_when_its_blocker_changes(steps: list[tuple[Key, int, set[str] | None]]) -> None:
    """So no queued benchmark has to poll."""
    queue, waiting, known = AdmissionQueue(), dict[Key, tuple[str, Key, set[str]]](), dict[Key, str | None]()
    for key, day, wanted in steps:
        if wanted is None:
            waiting.pop(key, None)
            added = queue.remove(key)
        else:
            waiting[key] = (f"2026-01-0{day}", key, wanted)
            added = queue.enqueue(key, f"2026-01-0{day}", wanted)
        known |= {one: _before(waiting, one) for one in added}
        known = {one: who for one, who in known.items() if one in waiting}
        assert known == {one: _before(waiting, one) for one in waiting}
        assert known == {one: None if (ahead := queue.blocker(one)) is None else ahead.benchmark for one in waiting}
        heads = {one for one in waiting if any(_first(waiting, item) == one for item in waiting[one][2])}
        assert set(queue.heads()) == heads


def _before(waiting: dict[Key, tuple[str, Key, set[str]]], key: Key) -> str | None:
    mine = waiting.get(key)
    older = [place[:2] for place in waiting.values() if mine and place[:2] < mine[:2] and place[2] & mine[2]]
    return "/".join(max(older)[1][1:]) if older else None


def _first(waiting: dict[Key, tuple[str, Key, set[str]]], item: str) -> Key:
    return min(place[:2] for place in waiting.values() if item in place[2])[1]


def test_workqueue_adds_one_benchmark_or_all() -> None:
    workqueue = WorkQueue()
    one, other = workqueue.event(A), workqueue.event(B)
    workqueue.add(A)
    workqueue.add(C)
    assert one.is_set()
    assert not other.is_set()
    workqueue.add_all()
    assert other.is_set()


def test_changed_node_adds_the_benchmarks_that_depend_on_it() -> None:
    workqueue = WorkQueue()
    events = [workqueue.event(key) for key in (A, B, C)]
    workqueue.set_nodes(A, frozenset({"n1"}))
    workqueue.set_nodes(B, None)
    workqueue.add_for_nodes(["n1", "n9"])
    assert [event.is_set() for event in events] == [True, True, False]
