"""The progress of a benchmark after watch events."""

from typing import Any

import pytest

from tests.unit.cli.benchmarks import benchmark, condition, current
from tests.unit.report.published import measured
from tierbench.api.result import RESULTS, BenchmarkResult
from tierbench.cli.command import UserError, duration
from tierbench.cli.watch import Progress, apply_event, changes, closing_line
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kube.informer import InitialListSynced, WatchError, WatchEvent
from tierbench.kube.meta import ResourceType, name_of

FTB = FileTransferBenchmark.KIND.resource


def progress(phase: str, ended: int = 0, **status: Any) -> Progress:
    return Progress(FileTransferBenchmark.model_validate(benchmark(phase, ended, **status)))


def changed(item: dict[str, Any], *, deleted: bool = False) -> WatchEvent:
    return WatchEvent(RESULTS if "trials" in item["spec"] else FTB, item, deleted)


def listed(resource: ResourceType, *items: dict[str, Any]) -> InitialListSynced:
    return InitialListSynced(resource, frozenset(map(name_of, items)), "7")


def result(run: int = 1) -> dict[str, Any]:
    return measured("cloud", "1M", [(0.5, 0), (0.7, 1)], run=run).to_json()


@pytest.mark.parametrize(
    ("phase", "code"),
    [("Pending", None), ("Queued", None), ("Running", None), ("Suspended", None), ("Complete", 0), ("Failed", 1)],
)
def test_exit_code_follows_the_phase(phase: str, code: int | None) -> None:
    assert progress(phase).exit_code == code


def test_requested_rerun_continues_a_complete_benchmark() -> None:
    raw = benchmark("Complete")
    raw["spec"]["runPolicy"] = {"rerun": "again"}
    assert Progress(FileTransferBenchmark.model_validate(raw)).exit_code is None
    raw["status"]["run"]["rerun"] = "again"
    assert Progress(FileTransferBenchmark.model_validate(raw)).exit_code == 0


def test_changed_spec_continues_a_complete_benchmark() -> None:
    before = progress("Complete")
    raw = benchmark("Complete")
    raw["metadata"]["generation"] = 2
    assert apply_event(before, changed(raw)).exit_code is None
    raw = benchmark("Running", run={"number": 2, "startTime": "2026-05-04T09:00:00Z"}, observedGeneration=2)
    raw["metadata"]["generation"] = 2
    assert "run 2 started" in list(changes(before, apply_event(before, changed(raw))))


def test_deletion_ends_the_watch() -> None:
    before = progress("Running")
    assert apply_event(before, changed(benchmark("Running"), deleted=True)).exit_code == 2
    assert apply_event(before, listed(FTB)).exit_code == 2
    recreated = benchmark("Running")
    recreated["metadata"]["uid"] = "u2"
    after = apply_event(apply_event(before, changed(recreated)), listed(FTB, recreated))
    assert after.exit_code == 2
    assert "was deleted" in closing_line(after)


def test_every_change_is_printed_as_a_line() -> None:
    before = progress("Running", remainingSeconds=130, current=current(0))
    assert list(changes(None, before)) == ["Running · 0/2 cases · 1M, cloud to user, trial 1 of 2 · 2m10s left"]
    after = apply_event(before, changed(benchmark("Running", current=current(1))))
    assert list(changes(before, after)) == ["Running · 0/2 cases · 1M, cloud to user, trial 2 of 2"]
    assert list(changes(after, after)) == []


def test_result_is_printed_once_when_it_has_ended() -> None:
    before = progress("Running")
    running = BenchmarkResult.model_validate(result()).to_json() | {"status": {"phase": "Running"}}
    begun = apply_event(before, changed(running))
    assert list(changes(before, begun)) == []
    ended = apply_event(begun, changed(result()))
    assert list(changes(begun, ended)) == ["measured: 1M on cloud: 600 ms, 1.71 MB/s, 1 retries"]
    assert list(changes(ended, apply_event(ended, listed(RESULTS, result())))) == []


def test_results_of_other_runs_are_ignored() -> None:
    assert apply_event(progress("Running"), changed(result(run=2))).ended == ()


def test_failed_case_is_printed_with_its_reason() -> None:
    before = progress("Running")
    failed = result() | {"status": {"phase": "Failed", "reason": "NoReadyNode", "message": "No node is ready."}}
    assert "NoReadyNode: No node is ready." in "".join(changes(before, apply_event(before, changed(failed))))


def test_reason_for_waiting_is_printed() -> None:
    queued = benchmark("Queued", conditions=[condition("Queued", "True", "NodesBusy", "other holds cloud-1.")])
    before = progress("Pending")
    after = apply_event(before, changed(queued))
    assert "Queued is True (NodesBusy): other holds cloud-1." in list(changes(before, after))


def test_unknown_network_is_printed_while_cases_run() -> None:
    unknown = condition("NetworkMeasured", "False", "ImagePullFailed", "user-1 to cloud-1: see the image.")
    remark = "NetworkMeasured is False (ImagePullFailed): user-1 to cloud-1: see the image."
    assert progress("Running", conditions=[unknown]).remarks == (remark,)


def test_failure_is_printed_with_its_reason() -> None:
    failed = progress("Failed", conditions=[condition("Failed", "True", "NoCaseMeasured", "0 of 2.")])
    assert failed.remarks == ("Failed is True (NoCaseMeasured): 0 of 2.",)
    assert "kubectl describe" in closing_line(failed)


def test_watch_error_and_recovery_are_printed_once() -> None:
    before = progress("Running")
    lost = apply_event(before, WatchError(UserError("Connection refused")))
    assert list(changes(before, lost)) == ["watch failed: Connection refused; retrying"]
    assert list(changes(lost, apply_event(lost, WatchError(UserError("Connection refused"))))) == []
    assert list(changes(lost, apply_event(lost, listed(FTB, benchmark("Running"))))) == ["the API server answers again"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0s"),
        (119.4, "119s"),
        (120, "2m"),
        (130, "2m10s"),
        (3900, "65m"),
        (3 * 3600 + 59, "3h"),
        (5 * 3600 + 720, "5h12m"),
        (47 * 3600, "47h"),
        (2 * 86400 + 3600, "2d1h"),
        (400 * 86400, "400d"),
    ],
)
def test_durations_have_the_form_of_kubectl(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_run_with_broken_constraints_has_not_passed() -> None:
    broken = condition("Passed", "False", "ConstraintsBroken", "cloud to user: Mean duration is 2.00 s.")
    after = progress("Complete", conditions=[broken])
    assert after.exit_code == 1
    assert closing_line(after) == "Not passed: 2 of 2 cases measured; cloud to user: Mean duration is 2.00 s."
    assert any("ConstraintsBroken" in remark for remark in after.remarks)
    undecided = condition("Passed", "False", "Running", "The run is not complete.")
    assert progress("Complete", conditions=[undecided]).exit_code == 0
