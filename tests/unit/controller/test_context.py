"""Caches of the objects of benchmarks, and the workqueue."""

from typing import Any

from tierbench.controller.context import ObjectCaches, RunResults, WorkQueue
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
