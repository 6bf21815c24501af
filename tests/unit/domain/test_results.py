"""Stored results are compressed, decompressed as they were, and accounted for."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.operator.recorded import recorded
from tests.unit.domain.world import KIND, raw_benchmark, raw_result
from tierbench.domain.results import Compressor, ResultStore, StoredRun, stored_bytes

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
)


@given(st.lists(st.dictionaries(st.text(), JSON, max_size=5), max_size=5))
def test_objects_are_decompressed_as_they_were(objects: list[dict[str, Any]]) -> None:
    compressor = Compressor()
    compressed = [compressor.compress(raw) for raw in objects]
    assert [compressor.decompress(one) for one in compressed] == objects


def test_results_take_a_tenth_of_their_json() -> None:
    compressor, (result, *_) = Compressor(), recorded("files").results
    compressor.compress(result)
    again = {**result, "metadata": {**result["metadata"], "name": "another"}}
    assert 10 * len(compressor.compress(again)) < len(str(result))


def store(*raws: dict[str, Any]) -> ResultStore[str]:
    filled = ResultStore(lambda result: result.metadata.name)
    for raw in raws:
        filled.update_result(raw, deleted=False)
    return filled


def deletable(results: ResultStore[str]) -> list[tuple[str, int]]:
    return [(run.benchmark, run.number) for run in results.deletable_runs("a")]


def test_the_stored_bytes_follow_results_that_grow_and_are_deleted() -> None:
    results = store(small := raw_result("r", "b", 1, 1000))
    assert results.stored_bytes == stored_bytes(small) == 1000
    results.update_result(grown := raw_result("r", "b", 1, 5000), deleted=False)
    assert results.stored_bytes == stored_bytes(grown) == stored_bytes(small) + 4000
    results.update_result(other := raw_result("s", "b", 1, 10), deleted=False)
    assert results.stored_bytes == stored_bytes(grown) + stored_bytes(other)
    for name in ("r", "s", "s"):
        results.update_result({"metadata": {"name": name, "namespace": "a"}}, deleted=True)
    assert results.stored_bytes == 0


def test_the_newest_ended_run_and_the_baseline_and_a_run_in_progress_are_not_deletable() -> None:
    results = store(*(raw_result(f"r{run}", "b", run) for run in (1, 2, 3, 4)))
    results.update_benchmark(raw_benchmark("b", 4, ended=False, baseline=1), deleted=False)
    assert deletable(results) == [("b", 2)]
    results.update_benchmark(raw_benchmark("b", 4), deleted=False)
    assert deletable(results) == [("b", 1), ("b", 2), ("b", 3)]


def test_the_largest_runs_of_the_namespace_come_first() -> None:
    sizes = {("b", 1): 20, ("b", 2): 30, ("c", 1): 900}
    results = store(*(raw_result(f"{name}{run}-{n}", name, run, sizes[name, run]) for name, run in sizes for n in "12"))
    for name in "bc":
        results.update_benchmark(raw_benchmark(name, 3), deleted=False)
    first, *others = results.deletable_runs("a")
    size = 2 * stored_bytes(raw_result("c1-1", "c", 1, 900))
    assert first == StoredRun(KIND, "c", 1, size)
    assert [(run.benchmark, run.number) for run in others] == [("b", 2), ("b", 1)]
    assert not results.deletable_runs("elsewhere")


def test_runs_without_a_benchmark_are_deletable_and_those_of_an_invalid_status_are_not() -> None:
    results = store(raw_result("r", "b", 1))
    assert deletable(results) == [("b", 1)]
    results.update_benchmark(raw_benchmark("b", 2, phase="Dreaming"), deleted=False)
    assert not deletable(results)
    results.update_benchmark(raw_benchmark("b", 2), deleted=True)
    assert deletable(results) == [("b", 1)]
