"""Caches of the objects of benchmarks, and the workqueue."""

from typing import Any

from tests.unit.domain.objects import raw_result
from tierbench.api.result import RESULTS
from tierbench.controller.context import ObjectCaches, WorkQueue
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


def test_own_writes_of_results_are_stored() -> None:
    objects = ObjectCaches()
    written = raw_result("one", "demo", 1) | {"metadata": item(2)["metadata"] | {"uid": "u"}}
    objects.observe_write(RESULTS, written)
    assert objects.results.known() == (("ns", "one"),)
    objects.observe_write(RESULTS, None, ("ns", "one"))
    assert objects.results.known() == ()


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
