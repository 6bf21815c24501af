"""What takes how much, and which runs have ended."""

from typing import Any

from tierbench.domain.eviction import StorageUsage, size_of

KIND = "FileTransferBenchmark"
TIME = "2026-01-01T00:00:{:02}Z"


def raw_benchmark(name: str, run: int, *, ended: bool = True, **more: Any) -> dict[str, Any]:
    state = {"number": run, "startTime": TIME.format(0), **({"completionTime": TIME.format(1)} if ended else {})}
    policy = {"baselineRun": more.pop("baseline", None)}
    metadata = {"name": name, "namespace": "a", "uid": f"uid-of-{name}"}
    return {"kind": KIND, "metadata": metadata, "spec": {"runPolicy": policy}, "status": {"run": state, **more}}


def raw_result(name: str, benchmark: str, run: int, stored: int = 1000, second: int = 0) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "a", "uid": f"uid-of-{name}", "creationTimestamp": TIME.format(second)}
    place = {"nodeClass": "c", "node": "n"}
    case = {"case": 1, "levels": {}, "server": place, "client": place, "trials": 1}
    spec = {"benchmark": {"kind": KIND, "name": benchmark}, "run": run, **case}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Measured", "storedBytes": stored}}


def test_a_result_counts_with_its_envelope_as_it_grows_and_no_more_when_it_is_gone() -> None:
    storage_usage = StorageUsage()
    storage_usage.update_result(small := raw_result("r", "b", 1, 1000), deleted=False)
    assert storage_usage.total == size_of(small) > 1200
    storage_usage.update_result(grown := raw_result("r", "b", 1, 5000), deleted=False)
    assert storage_usage.total == size_of(grown) == size_of(small) + 4000
    storage_usage.update_result(other := raw_result("s", "b", 1, 10), deleted=False)
    assert storage_usage.total == size_of(grown) + size_of(other)
    for name in ("r", "s", "s"):
        storage_usage.update_result({"metadata": {"name": name, "namespace": "a"}}, deleted=True)
    assert storage_usage.total == 0
    assert not list(storage_usage.finished_runs())


def test_only_runs_that_have_ended_are_sealed_and_what_an_answer_rests_on_is_needed() -> None:
    storage_usage = StorageUsage()
    for run in (1, 2, 3, 4):
        storage_usage.update_result(raw_result(f"r{run}", "b", run, second=run), deleted=False)
    assert not list(storage_usage.finished_runs())
    storage_usage.update_benchmark(raw_benchmark("b", 4, ended=False, baseline=1), deleted=False)
    assert {run.key[1]: run.needed for run in storage_usage.finished_runs()} == {1: True, 2: False, 3: True}
    storage_usage.update_benchmark(raw_benchmark("b", 4), deleted=False)
    assert {run.key[1]: run.needed for run in storage_usage.finished_runs()} == {1: False, 2: False, 3: False, 4: True}
    assert storage_usage.results_of(((KIND, "a", "b"), 2)) == {"r2": "uid-of-r2"}
    storage_usage.update_benchmark(raw_benchmark("b", 4), deleted=True)
    assert not list(storage_usage.finished_runs())


def test_the_runs_of_a_status_that_cannot_be_understood_stay() -> None:
    storage_usage = StorageUsage()
    storage_usage.update_result(raw_result("r", "b", 1), deleted=False)
    storage_usage.update_benchmark(raw_benchmark("b", 1, phase="Dreaming"), deleted=False)
    assert storage_usage.total
    assert not list(storage_usage.finished_runs())
