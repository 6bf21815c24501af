"""What is kept of objects, whatever the order in which watches and own writes tell of them."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tierbench.domain.results import ResultMetadata
from tierbench.kube.cache import Cache, Objects, RunResults
from tierbench.kube.client import CONFIG_MAPS, PODS

KEY = ("FileTransferBenchmark", "ns", "demo")
LABELS = {"tierbench.io/kind": KEY[0], "tierbench.io/benchmark": KEY[2]}
Raw = dict[str, Any]


def item(version: int, name: str = "one", **more: Any) -> Raw:
    metadata = {"namespace": "ns", "name": name, "resourceVersion": str(version), "labels": LABELS}
    return {"metadata": {**metadata, "managedFields": [{}]}, **more}


def test_objects_are_found_by_their_benchmark() -> None:
    cache = Cache()
    assert cache.see(item(2, "b"))
    assert cache.see(item(1, "a"))
    assert [raw["metadata"]["name"] for raw in cache.of(KEY)] == ["a", "b"]
    assert "managedFields" not in cache.of(KEY)[0]["metadata"]
    cache.forget(("ns", "a"))
    cache.forget(("ns", "a"))
    assert cache.names() == (("ns", "b"),)
    assert cache.of(("FileTransferBenchmark", "ns", "other")) == ()


def test_an_own_write_is_not_taken_back_by_what_a_watch_tells_later() -> None:
    cache = Cache()
    cache.see(item(7, says="written"))
    assert not cache.see(item(6, says="before"))
    assert not cache.see(item(7, says="written")), "no news: nobody need be woken"
    assert not cache.see(item(5), deleted=True), "of its predecessor"
    assert cache.of(KEY)[0]["says"] == "written"
    assert cache.see(item(8), deleted=True)
    assert cache.names() == ()


@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), max_size=12), st.randoms())
def test_told_twice_and_late_it_is_as_told_once(history: list[tuple[str, bool]], random: Any) -> None:
    """Answers come before a watch tells the same; the watch tells in order."""
    versions = [(version, name, gone) for version, (name, gone) in enumerate(history, 1)]
    watched, cache = Cache(), Cache()
    for version, name, gone in versions:
        watched.see(item(version, name), deleted=gone)
    late = iter(versions)
    for version, name, gone in versions:
        if not gone:
            cache.see(item(version, name))
        if random.random() < 0.5:
            told = next(late)
            cache.see(item(*told[:2]), deleted=told[2])
    for version, name, gone in late:
        cache.see(item(version, name), deleted=gone)
    assert cache.of(KEY) == watched.of(KEY)


def test_of_other_types_nothing_is_kept() -> None:
    objects = Objects()
    objects.written(CONFIG_MAPS, item(1))
    objects.written(PODS, item(1))
    assert objects[PODS].names() == (("ns", "one"),)
    objects.written(PODS, item(2, metadata=item(2)["metadata"] | {"deletionTimestamp": "now"}), ("ns", "one"))
    assert "deletionTimestamp" in objects[PODS].of(KEY)[0]["metadata"]
    objects.written(PODS, None, ("ns", "one"))
    assert objects[PODS].names() == ()


def head(name: str, run: int) -> ResultMetadata:
    return ResultMetadata(name, "uid", 1, run, 0, ("", "", ""), ended=True)


def test_results_are_kept_of_runs_that_are_followed() -> None:
    results = RunResults()
    assert not results.see(item(1, spec={"run": 2}))
    assert not results.follow(KEY, 2, [head("zero", 1)])
    assert results.follow(KEY, 2, [head("zero", 1), head("one", 2)]), "it has to be read"
    assert not results.see(item(1, "zero", spec={"run": 1}))
    assert results.see(item(2, spec={"run": 2}))
    assert not results.follow(KEY, 2, [head("one", 2)])
    results.follow(KEY, 3, [])
    assert results.of(KEY) == ()
    results.see(item(3, "three", spec={"run": 3}))
    results.leave(KEY)
    assert results.of(KEY) == ()
    assert not results.see(item(4, "three", spec={"run": 3}))
