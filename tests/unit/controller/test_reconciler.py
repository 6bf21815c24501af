"""The reconciler of one benchmark: a run from its server to its results, and the end of the reconciler."""

import asyncio
import json
from datetime import datetime, timedelta
from unittest.mock import ANY

import pytest

from tests.unit.apiserver.server import Raw, Request
from tests.unit.controller.reconciling import CLIENT, OWNER, RESOURCE, RESULT, SERVER, Demo, WaitError
from tests.unit.domain.objects import trial_line
from tests.unit.kinds.network.trials import trace
from tierbench.controller import reconciler
from tierbench.domain.decide import decide_in_steps
from tierbench.domain.decision import Decision, Observed, Steps
from tierbench.kube.client import ApiError
from tierbench.kube.meta import PODS, wait_for_event

HANG_SECONDS = 60


async def test_results_get_a_bounded_number_of_labels_and_an_event_names_the_others(demo: Demo) -> None:
    """Kubernetes does not bound how many labels an object has, and each result would store them."""
    own = {f"l{number:02d}": "v" for number in range(20)}
    demo.api.change(RESOURCE, "demo", metadata={"labels": {**own, "argocd.argoproj.io/instance": "app"}})
    await demo.until_measured(trial_line(1))
    await demo.until(lambda: demo.results)
    (result,) = demo.results
    assert len([name for name in result["metadata"]["labels"] if name in own]) == 16
    (message,) = demo.messages("LabelsLeftOut")
    assert "l16, l17, l18, l19" in message


async def test_benchmark_is_measured_and_its_labels_are_copied_to_its_results(demo: Demo) -> None:
    await demo.until_measured()
    await demo.until(lambda: demo.result_status.get("phase") == "Complete")
    (result,) = demo.results
    assert result["status"]["counts"]["completed"] == 1
    assert result["metadata"]["labels"]["team"] == "edge"
    assert "argocd.argoproj.io/instance" not in result["metadata"]["labels"]
    assert not demo.messages("ForeignObject")


async def test_other_tasks_run_between_the_steps_of_a_decision(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def steps(observed: Observed, now: datetime) -> Steps[Decision]:
        for _ in range(3):
            ran.append("step")
            yield
        return (yield from decide_in_steps(observed, now))

    async def other() -> None:
        while True:
            ran.append("other")
            await asyncio.sleep(0)

    monkeypatch.setattr(reconciler, "decide_in_steps", steps)
    task = asyncio.create_task(other())
    await demo.reconcile()
    task.cancel()
    assert "step other step other step" in " ".join(ran)


async def test_pod_that_is_observed_before_its_job_is_known_is_kept(demo: Demo) -> None:
    """Otherwise, the operator would drop it as foreign, and follow its log only when the pod has ended."""
    kept: list[str] = []

    pods: list[Raw] = []

    async def show_pod(request: Request) -> None:
        if request.method == "POST" and request.path.endswith("/jobs"):
            owner = {"kind": "Job", "name": CLIENT, "uid": "not known yet", "controller": True}
            metadata = {"name": f"{CLIENT}-x", "namespace": "default", "uid": "uid-x", "ownerReferences": [owner]}
            pod = {"metadata": {**metadata, "labels": request.body["metadata"]["labels"]}, "spec": {}, "status": {}}
            pods.append(pod)
            if demo.context.objects.admit(PODS, pod) is not None:
                kept.append(pod["metadata"]["name"])

    demo.api.reactor = show_pod
    await demo.until_client()
    assert kept == [f"{CLIENT}-x"]
    assert demo.context.objects.admit(PODS, pods[0]) is None, "once the Job is known, its UID decides"


async def test_age_of_a_pod_is_measured_by_the_clock_of_the_api_server(demo: Demo) -> None:
    """With a clock that is a minute ahead, a transient error would be final."""
    demo.api.ahead = timedelta(hours=-1)
    await demo.until_server()
    waiting = {"name": "nginx", "state": {"waiting": {"reason": "ErrImagePull"}}}
    demo.api.change(PODS, SERVER, status={"phase": "Pending", "containerStatuses": [waiting]})
    for _ in range(5):
        await demo.reconcile()
    assert not demo.results
    demo.api.ahead = timedelta(0)
    await demo.until(lambda: demo.result_status.get("reason") == "ImagePullFailed")


async def test_unreachable_log_fails_the_case_and_names_the_node(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    await demo.until_measured()
    demo.api.logs[f"{CLIENT}-x"] = ApiError(500, "InternalError", "dial tcp 10.0.0.9:10250: i/o timeout")

    async def let_a_minute_pass(*_: object) -> None:
        demo.api.ahead += timedelta(minutes=1)
        demo.relist()
        if demo.result_status.get("phase", "Running") != "Running":
            raise WaitError

    monkeypatch.setattr(reconciler, "wait_for_event", let_a_minute_pass)
    await demo.reconcile()
    assert (demo.result_status["reason"], "u1" in demo.result_status["message"]) == ("LogsUnreachable", True)
    assert not [name for name in demo.api.names("jobs") if name.endswith("a2")], "it is not measured again"


async def test_trial_that_is_printed_just_before_a_change_is_read_and_recorded(demo: Demo) -> None:
    """Otherwise, the operator would read it only at the next attempt to follow the log, a second later."""
    await demo.until_client()
    demo.put_client("Running", {"running": {}}, "")
    for _ in range(5):
        await demo.reconcile()
    demo.api.logs[f"{CLIENT}-x"] = trial_line(1).encode()
    demo.api.change(RESOURCE, "demo", metadata={"generation": 2}, spec={"fileSizes": ["2Mi"]})
    await demo.until(lambda: CLIENT not in demo.api.names("jobs"))
    assert [trial["trial"] for trial in demo.record_status["trials"]] == [1]


UNREACHABLE = ApiError(500, "InternalError", "dial tcp 10.0.0.9:10250: connect: connection refused")
GONE = ApiError(404, "NotFound", "the server could not find the requested resource")


@pytest.mark.parametrize(
    "fault", [UNREACHABLE, GONE, b"", b"unable to retrieve container logs\n", trial_line(1)[:99].encode()]
)
async def test_reconciler_waits_for_an_unreachable_log_and_repeats_no_trial(
    demo: Demo, fault: ApiError | bytes
) -> None:
    """A kubelet may be unreachable, may no longer know the container, or may send nothing or an error as a log."""
    await demo.until_measured()
    log, demo.api.logs[f"{CLIENT}-x"] = demo.api.logs[f"{CLIENT}-x"], fault
    for _ in range(5):
        await demo.reconcile()
    assert demo.condition("LogsReachable") == ("False", "LogsUnreachable")
    (message,) = demo.messages("LogsUnreachable")
    assert "node u1" in message
    assert demo.result_status.get("phase", "Running") == "Running"
    demo.api.logs[f"{CLIENT}-x"] = log
    await demo.until(lambda: demo.result_status.get("phase") == "Complete")
    assert demo.condition("LogsReachable") == ("True", "LogsRead")
    assert demo.clients == [CLIENT]


async def test_trials_of_a_seal_count_while_the_log_is_unreachable(demo: Demo) -> None:
    await demo.until_measured(held=trial_line(1))
    demo.api.logs[f"{CLIENT}-x"] = UNREACHABLE
    await demo.until(lambda: demo.result_status.get("phase") == "Complete")
    (trial,) = demo.record_status["trials"]
    assert trial["collectedBy"] == "Status"
    assert demo.condition("LogsReachable") == ("False", "LogsUnreachable")
    assert "cloudStream" in demo.messages("LogsUnreachable")[0]


async def test_reconciler_waits_for_traces_that_a_seal_leaves_out(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    left_out = json.dumps({**json.loads(trial_line(1)), "tracesLeftOut": True}) + "\n"
    log = json.dumps({**json.loads(trial_line(1)), "traces": [trace()]}) + "\n"
    await demo.until_measured(log, held=left_out)
    demo.api.logs[f"{CLIENT}-x"] = UNREACHABLE
    for _ in range(5):
        demo.relist()
        await demo.reconciler.reconcile()
    assert demo.result_status.get("phase", "Running") == "Running"
    assert demo.record_status["trials"], "the trial of the seal is stored"
    demo.api.logs[f"{CLIENT}-x"] = log.encode()
    await demo.until(lambda: demo.result_status.get("phase") == "Complete")
    assert len(demo.record_status["traces"]) == 1


async def test_truncated_log_is_read_again(demo: Demo) -> None:
    whole = trial_line(1)
    await demo.until_measured("".join([trial_line(1, warmup=True), whole]))
    name = f"{CLIENT}-x"
    log, demo.api.logs[name] = demo.api.logs[name], trial_line(1, warmup=True).encode()
    await demo.reconcile()
    demo.api.logs[name] = log
    await demo.until(lambda: demo.result_status.get("phase") == "Complete")
    assert demo.clients == [CLIENT]


async def test_written_status_is_followed_by_a_reconcile_at_once(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    """An own write causes no watch event. Otherwise, nothing would happen for half a minute after a run."""
    waits: list[float] = []

    async def record_wait(_: object, seconds: float) -> None:
        waits.append(seconds)
        raise WaitError

    monkeypatch.setattr(reconciler, "wait_for_event", record_wait)
    await demo.until_server()
    assert set(waits) == {0}, "there is neither a pause nor a conflict with its own write"


async def test_interrupted_deletion_of_a_server_is_completed(demo: Demo) -> None:
    """Services are deleted last, because they show that other objects may remain whose types are not listed."""
    await demo.until_measured()
    plurals = ("configmaps", "secrets", "networkpolicies")
    assert any(demo.api.names(plural) for plural in plurals)
    for plural in plurals:
        for name in demo.api.names(plural):
            demo.api.refuse["DELETE", f"/{plural}/{name}"] = ApiError(503, "ServiceUnavailable", "later")
    await demo.until(lambda: SERVER not in demo.api.names("pods"))
    demo.api.force_delete(PODS, f"{CLIENT}-x")  # its Job is deleted
    demo.api.refuse.clear()
    await demo.until(lambda: demo.status["phase"] == "Complete")
    assert [name for plural in (*plurals, "services") for name in demo.api.names(plural)] == []


async def test_cleanup_requests_no_types_that_the_kind_never_has(demo: Demo) -> None:
    """The deletion of 1,000 file transfers must not request the version of Strimzi 1,000 times."""
    await demo.until_server()
    demo.api.requests.clear()
    await demo.clean_up()
    assert not [request.path for request in demo.api.requests if "strimzi" in request.path]


async def test_reconciler_ends_when_its_benchmark_is_gone(demo: Demo) -> None:
    await demo.until_server()
    demo.api.force_delete(RESOURCE, "demo")
    assert not await demo.reconcile()


async def test_reconciler_ends_when_its_benchmark_was_recreated(demo: Demo) -> None:
    await demo.until_server()
    demo.api.change(RESOURCE, "demo", metadata={"uid": "uid-2"})
    assert not await demo.reconcile()


@pytest.mark.parametrize("metadata", [{"finalizers": []}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}])
async def test_nothing_is_written_without_a_finalizer_or_after_deletion(demo: Demo, metadata: Raw) -> None:
    """Without the finalizer, no one would clean up. After deletion, the cleanup runs."""
    demo.api.change(RESOURCE, "demo", metadata=metadata)
    assert await demo.reconcile()
    assert demo.api.writes == []


async def test_stopped_reconciler_ends_after_its_current_reconcile(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciler, "wait_for_event", wait_for_event)

    async def stop(_: Request) -> None:
        demo.reconciler.stop()

    demo.api.reactor = stop
    assert not await demo.reconcile()
    assert demo.status["phase"], "the reconcile was completed"


async def test_restarted_operator_reports_that_the_log_is_reachable_again(demo: Demo) -> None:
    await demo.until_measured()
    log, demo.api.logs[f"{CLIENT}-x"] = demo.api.logs[f"{CLIENT}-x"], UNREACHABLE
    await demo.until(lambda: demo.condition("LogsReachable") == ("False", "LogsUnreachable"))
    demo.api.logs[f"{CLIENT}-x"] = log
    demo.reconciler = reconciler.BenchmarkReconciler(demo.context, RESOURCE, OWNER)
    await demo.until(lambda: demo.result_status.get("phase") == "Complete")
    assert demo.condition("LogsReachable") == ("True", "LogsRead")


async def test_restarted_operator_needs_no_log_for_stored_trials(demo: Demo) -> None:
    await demo.until_measured()
    demo.api.refuse["PATCH", f"/benchmarkresults/{RESULT}/status"] = ApiError(503, "ServiceUnavailable", "later")
    await demo.until(lambda: demo.record_status.get("trials"))
    demo.api.refuse.clear()
    demo.api.logs[f"{CLIENT}-x"] = UNREACHABLE
    demo.reconciler = reconciler.BenchmarkReconciler(demo.context, RESOURCE, OWNER)
    await demo.until(lambda: demo.result_status.get("phase") == "Complete")
    assert "missing" not in demo.result_status
    assert demo.clients == [CLIENT]


async def test_record_is_created_right_after_its_client(demo: Demo) -> None:
    await demo.until_client()
    *_, client, record = (write.path.rpartition("/")[2] for write in demo.api.writes)
    assert (client, record) == ("jobs", "benchmarkrecords")


@pytest.mark.usefixtures("demo")
async def test_trial_is_stored_before_it_is_counted_and_then_no_reconcile_follows_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reconciler, "_COUNT_SECONDS", 0)
    demo = Demo(repetitions=3)
    await demo.until_client()
    written, wait = 0, 0.0
    demo.put_client("Running", {"running": {}}, trial_line(1))
    async with asyncio.timeout(HANG_SECONDS):
        while demo.status["current"]["finishedTrials"] < 1:
            demo.relist()
            written = len(demo.api.writes)
            wait = await demo.reconciler.reconcile()
            await asyncio.sleep(0)
    record, benchmark = demo.api.writes[written:]
    assert record.path.endswith("/benchmarkrecords/ft-demo-r1-c001/status")
    assert benchmark.path.endswith("/filetransferbenchmarks/demo/status")
    assert wait > 0


async def test_trials_are_counted_after_a_pause(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    await demo.until_client()

    async def count_again(pause: float) -> tuple[float, int]:
        monkeypatch.setattr(reconciler, "_COUNT_SECONDS", pause)
        current = demo.status["current"]
        demo.api.change(RESOURCE, "demo", status={**demo.status, "current": {**current, "finishedTrials": 1}})
        demo.relist()
        return await demo.reconciler.reconcile(), demo.status["current"]["finishedTrials"]

    wait, counted = await count_again(3600)
    assert (0 < wait <= 3600, counted) == (True, 1)
    assert await count_again(0) == (ANY, 0)
    wait, counted = await count_again(3600)
    assert (0 < wait <= 3600, counted) == (True, 1)
