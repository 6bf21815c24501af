"""The store of results: what it keeps, how many bytes are stored, and which runs can be deleted."""

import json
from typing import Any

import pytest

from tests.operator.recorded import recorded
from tests.unit.domain.objects import KIND, raw_benchmark, raw_result
from tierbench.api.result import LABEL_SUPERSEDED, BenchmarkResult
from tierbench.domain.results import ResultStore, StoredRun, stored_bytes
from tierbench.metrics.results import render, result_samples

KIBIBYTES = {"files": 4, "mosquitto": 6, "kafka": 6, "tcp": 4}


@pytest.mark.parametrize("name", KIBIBYTES)
def test_a_stored_result_answers_like_the_whole_result(name: str) -> None:
    """The store keeps what advices, metrics and reconciles read, and nothing that only people read."""
    raw = recorded(name).results[0]
    whole = BenchmarkResult.model_validate(raw)
    results = ResultStore()
    results.update_result(raw, deleted=False)
    key = (whole.spec.benchmark.kind, raw["metadata"]["namespace"], whole.spec.benchmark.name)
    (stored,) = results.of(key)
    kept = stored.parse()
    unread = {"display": None, "stored_bytes": None}
    assert kept.status.model_copy(update=unread) == whole.status.model_copy(update=unread)
    assert kept.metadata.resource_version == whole.metadata.resource_version
    assert (kept.spec.levels, kept.spec.settings) == (whole.spec.levels, whole.spec.settings)
    assert "".join(render([result_samples(kept)])) == "".join(render([result_samples(whole)]))
    assert not {"display", "storedBytes"} & json.loads(stored.text)["status"].keys()
    assert len(stored.text) <= KIBIBYTES[name] * 1024


def test_an_older_version_changes_nothing() -> None:
    newer, older = (raw_result("r", "b", 1, size) for size in (5000, 1000))
    newer["metadata"]["resourceVersion"], older["metadata"]["resourceVersion"] = "8", "7"
    results = store(newer)
    assert not results.update_result(older, deleted=False)
    assert not results.update_result(older, deleted=True)
    assert results.stored_bytes == 5000


def test_observers_see_updates_ends_and_deletions() -> None:
    seen: list[tuple[str, bool]] = []
    results = store()
    results.observers.append(lambda raw, *, deleted, ended: seen.append((raw["metadata"]["namespace"], ended)))
    running = raw_result("r", "b", 1)
    results.update_result(running | {"status": {"phase": "Running"}}, deleted=False)
    results.update_result(running, deleted=False)
    results.update_result(running, deleted=True)
    assert seen == [("a", False), ("a", True), ("a", True)]


def store(*raws: dict[str, Any]) -> ResultStore:
    filled = ResultStore()
    for raw in raws:
        filled.update_result(raw, deleted=False)
    return filled


def deletable(results: ResultStore) -> list[tuple[str, int]]:
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


def test_the_newest_ended_run_the_baseline_and_a_run_in_progress_are_not_deletable() -> None:
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


def test_runs_are_deletable_without_a_benchmark_but_not_with_an_invalid_status() -> None:
    results = store(raw_result("r", "b", 1))
    assert deletable(results) == [("b", 1)]
    results.update_benchmark(raw_benchmark("b", 2, phase="Dreaming"), deleted=False)
    assert not deletable(results)
    results.update_benchmark(raw_benchmark("b", 2), deleted=True)
    assert deletable(results) == [("b", 1)]


def superseded(raw: dict[str, Any]) -> dict[str, Any]:
    return {**raw, "metadata": {**raw["metadata"], "labels": {LABEL_SUPERSEDED: "true"}}}


def test_a_superseded_run_is_deletable_and_not_the_newest_ended_run() -> None:
    results = store(raw_result("r1", "b", 1), superseded(raw_result("r2", "b", 2)), raw_result("r3", "b", 3))
    raw = raw_benchmark("b", 3, ended=False)
    raw["status"]["run"]["previous"] = 1
    results.update_benchmark(raw, deleted=False)
    assert results.newest_ended_run((KIND, "a", "b")) == 1
    assert [json.loads(one)["metadata"]["name"] for one in results.texts("a")] == ["r1"]
    assert deletable(results) == [("b", 2)]
