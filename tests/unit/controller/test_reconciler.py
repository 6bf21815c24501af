"""The reconciler of one benchmark, with foreign objects and with an API server that rejects requests."""

import contextlib
import copy
import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.controller.api import Api
from tests.unit.controller.test_settings import ENVIRONMENT
from tests.unit.domain.world import benchmark, node, node_class, seal, trial_line
from tierbench.controller import reconciler as module
from tierbench.controller.context import TRIES, Context
from tierbench.controller.reconciler import FINALIZER, BenchmarkReconciler
from tierbench.controller.settings import Settings
from tierbench.domain.actions import DeleteJob, DeleteServer, SaveResult
from tierbench.domain.decide import decide
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kube.clock import format_time, wait_for_event
from tierbench.kube.errors import ApiError, ConflictError, NotFoundError, UnknownFieldError
from tierbench.workloads.names import (
    LABEL_ATTEMPT,
    LABEL_CASE,
    LABEL_PART,
    LABEL_PASS,
    LABEL_ROLE,
    LABEL_RUN,
    LABEL_SLOT,
    Owner,
)

OWNER = Owner("FileTransferBenchmark", "default", "demo", "uid-1")
RESOURCE = FileTransferBenchmark.KIND.resource
BENCHMARKS = RESOURCE.path("default")
PODS, JOBS, SERVICES = (
    "/api/v1/namespaces/default/pods",
    "/apis/batch/v1/namespaces/default/jobs",
    "/api/v1/namespaces/default/services",
)
RESULTS = BENCHMARKS.replace(RESOURCE.plural, "benchmarkresults")
Raw = dict[str, Any]


class LookedError(Exception):
    """A pass has ended, and the loop would wait."""


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    async def look_up(*_: object) -> None:
        raise LookedError

    monkeypatch.setattr(module, "wait_for_event", look_up)
    monkeypatch.setattr(module, "_CLEANUP_SECONDS", 0.01)


@pytest.fixture
def api() -> Api:
    api = Api()
    stored = benchmark(servers={"nodeClasses": ["cloud"]}, fileSizes=["1Mi"], repetitions=1).to_json()
    stored["metadata"] |= {
        "labels": {"team": "edge", "argocd.argoproj.io/instance": "app"},
        "finalizers": [FINALIZER],
    }
    api.put(BENCHMARKS, stored)
    return api


def loop(api: Api) -> BenchmarkReconciler:
    context = Context(api, Settings.from_environment(ENVIRONMENT))
    context.cluster.nodes = {one.name: one for one in (node("c1", "cloud"), node("u1", "user"))}
    context.cluster.classes = {name: node_class(name) for name in ("cloud", "user")}
    return BenchmarkReconciler(context, RESOURCE, OWNER)


async def look(api: Api, loop: BenchmarkReconciler) -> bool:
    """One pass; whether the loop goes on."""
    api.tell(loop._context)
    try:
        await loop.run()
    except LookedError:
        return True
    return False


async def run(api: Api, loop: BenchmarkReconciler, until: Callable[[], bool], looks: int = 60) -> None:
    """Passes until something holds."""
    for _ in range(looks):
        if until():
            return
        await look(api, loop)
    raise AssertionError("in vain")


async def leave(api: Api, one: BenchmarkReconciler | None = None) -> None:
    """Cleans up after the deletion, to its end."""
    api.objects[f"{BENCHMARKS}/demo"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    one = one or loop(api)
    for _ in range(60):
        api.tell(one._context)
        with contextlib.suppress(LookedError):
            await one.clean_up()
            return
    raise AssertionError("in vain")


def labels(role: str | None, **more: str) -> dict[str, str]:
    own = {**OWNER.selector, LABEL_RUN: "1", LABEL_SLOT: "0", **more}
    return own if role is None else {**own, LABEL_ROLE: role}


def foreign(name: str, role: str | None, **more: str) -> Raw:
    """A pod that bears labels of the benchmark."""
    return {"metadata": {"name": name, "labels": labels(role, **more)}, "spec": {}, "status": {}}


def told(api: Api, reason: str) -> list[str]:
    return [message for said, message in api.events if said == reason]


def server_is_ready(api: Api) -> None:
    pod = api.objects[f"{PODS}/ft-demo-r1-s1"]
    pod["spec"]["nodeName"] = "c1"
    pod["status"] = {"phase": "Running", "podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}
    for service in ("ft-demo-r1-s1", "ft-demo-r1-s1-agent"):
        api.objects.get(f"{SERVICES}/{service}", {"spec": {}})["spec"]["clusterIP"] = "10.1.0.1"


def client_has_ended(api: Api, printed: str | None) -> None:
    """The Job's pod, with its log and its seal."""
    name = "ft-demo-r1-c001-a1"
    job = api.objects[f"{JOBS}/{name}"]["metadata"]
    by = {"kind": "Job", "name": name, "uid": job["uid"], "controller": True}
    log = trial_line(1) if printed is None else printed
    state = {"terminated": {"exitCode": 0, "reason": "Completed", "message": seal(log)}}
    status = {"phase": "Succeeded", "containerStatuses": [{"name": "client", "state": state}]}
    api.put(
        PODS,
        {
            "metadata": {"name": f"{name}-x", "labels": job["labels"], "ownerReferences": [by]},
            "spec": {"nodeName": "u1"},
            "status": status,
        },
    )
    api.logs[f"{name}-x"] = log.encode()


def status(api: Api) -> Raw:
    found: Raw = api.objects[f"{BENCHMARKS}/demo"].get("status", {})
    return found


def results(api: Api) -> list[Raw]:
    return [api.objects[f"{RESULTS}/{name}"] for name in api.names("benchmarkresults")]


async def measured(api: Api, one: BenchmarkReconciler, printed: str | None = None) -> None:
    """The server is ready, and its client has ended."""
    await run(api, one, lambda: "ft-demo-r1-s1" in api.names("pods"))
    server_is_ready(api)
    await run(api, one, lambda: "ft-demo-r1-c001-a1" in api.names("jobs"))
    client_has_ended(api, printed)


async def test_a_benchmark_is_measured_and_its_labels_go_to_its_results(api: Api) -> None:
    one = loop(api)
    await measured(api, one)
    await run(api, one, lambda: bool(results(api)) and results(api)[0]["status"]["phase"] == "Measured")
    (result,) = results(api)
    assert result["status"]["counts"]["completed"] == 1
    assert result["metadata"]["labels"]["team"] == "edge"
    assert "argocd.argoproj.io/instance" not in result["metadata"]["labels"]
    assert not told(api, "ForeignObject")


@pytest.mark.parametrize("role", [None, "server", "client", "strimzi", "nonsense"])
async def test_a_forged_pod_changes_nothing_and_is_named_once(api: Api, role: str | None) -> None:
    """Without a role it made every pass a KeyError, and hung the deletion."""
    case = {LABEL_CASE: "1", LABEL_PASS: "1", LABEL_ATTEMPT: "1", LABEL_PART: "0"}
    api.put(PODS, foreign("forged", role, **case))
    api.logs["forged"] = trial_line(1).encode()
    one = loop(api)
    await measured(api, one, trial_line(1, nanoseconds=7))
    await run(api, one, lambda: bool(results(api)) and results(api)[0]["status"]["phase"] == "Measured")
    assert results(api)[0]["status"]["trials"][0]["durationNanoseconds"] == 7
    (named,) = told(api, "ForeignObject")
    assert "Pod forged" in named
    assert "forged" in api.names("pods")


async def test_a_forged_service_makes_the_operator_delete_nothing(api: Api) -> None:
    api.put(SERVICES, {"metadata": {"name": "precious-agent", "labels": labels("server")}, "spec": {}})
    for collection in (PODS, SERVICES, PODS.replace("pods", "secrets"), PODS.replace("pods", "configmaps")):
        api.put(collection, {"metadata": {"name": "precious"}, "spec": {}, "status": {}})
    api.put(PODS, foreign("forged", "server"))
    await leave(api)
    assert api.deleted == []


async def test_what_another_has_made_under_a_needed_name_is_said(api: Api) -> None:
    api.put(PODS, {"metadata": {"name": "ft-demo-r1-s1"}, "spec": {}, "status": {}})
    await run(api, loop(api), lambda: bool(told(api, "ForeignObject")))
    assert "Pod ft-demo-r1-s1 exists already" in told(api, "ForeignObject")[0]


async def test_a_benchmark_made_anew_does_not_adopt_orphaned_results(api: Api) -> None:
    orphan = {
        "metadata": {"name": "ft-demo-r3-c001", "labels": OWNER.selector},
        "spec": {"run": 3, "case": 1, "benchmark": {"kind": OWNER.kind, "name": OWNER.name}},
        "status": {"phase": "Measured"},
    }
    api.put(RESULTS, orphan)
    await run(api, loop(api), lambda: "ft-demo-r4-s1" in api.names("pods"))
    assert api.objects[f"{RESULTS}/ft-demo-r3-c001"]["status"] == {"phase": "Measured"}


async def test_a_result_of_another_case_under_the_cases_name_is_replaced(api: Api) -> None:
    reference = {"kind": OWNER.kind, "name": OWNER.name, "uid": OWNER.uid, "controller": True}
    spec = {
        "benchmark": {"kind": OWNER.kind, "name": OWNER.name},
        "run": 1,
        "case": 1,
        "levels": {"fileSize": "9Gi"},
        "server": {"nodeClass": "cloud"},
        "client": {"nodeClass": "user"},
        "trials": 1,
    }
    metadata = {"name": "ft-demo-r1-c001", "labels": OWNER.selector, "ownerReferences": [reference]}
    api.put(RESULTS, {"metadata": metadata, "spec": spec, "status": {"phase": "Measured"}})
    await run(api, loop(api), lambda: "ft-demo-r1-s1" in api.names("pods"))
    assert f"{RESULTS}/ft-demo-r1-c001" in api.deleted
    assert told(api, "ForeignObject")


async def test_a_404_of_something_else_is_not_the_end(api: Api) -> None:
    """The namespace of the Leases is missing: the loop ended for ever, and the benchmark stayed Running."""
    api.refuse["POST", "/leases"] = NotFoundError(404, "NotFound", 'namespaces "leases" not found')
    one = loop(api)
    assert all([await look(api, one) for _ in range(5)]), "it ended by itself"
    assert not api.names("pods")
    api.refuse.clear()
    await run(api, one, lambda: "ft-demo-r1-s1" in api.names("pods"))


async def test_what_was_made_anew_under_the_name_is_not_deleted(api: Api) -> None:
    """Between the look and the delete, somebody else's object may have come to bear the name."""
    one = loop(api)
    await run(api, one, lambda: "ft-demo-r1-s1" in api.names("pods"))
    api.tell(one._context)
    seen = await one._observe(one._raw())
    del api.objects[f"{PODS}/ft-demo-r1-s1"]
    api.put(PODS, {"metadata": {"name": "ft-demo-r1-s1"}, "spec": {}, "status": {}})
    with pytest.raises(ConflictError):
        await one._executor(seen, {}, {}).carry_out(DeleteServer("ft-demo-r1-s1"))
    await one._executor(seen, {}, {}).carry_out(DeleteJob("precious"))
    assert "ft-demo-r1-s1" in api.names("pods")
    assert api.deleted == []


async def test_a_result_that_another_operator_has_written_since_is_not_overwritten(api: Api) -> None:
    """By a leader that was deposed after its look: what the next one has counted meanwhile would be gone."""
    one = loop(api)
    await measured(api, one)
    api.tell(one._context)
    before = await one._observe(one._raw())
    save = next(action for action in decide(before, api.now()).actions if isinstance(action, SaveResult))
    await one._executor(before, {}, before.results).carry_out(save)
    api.tell(one._context)
    seen = await one._observe(one._raw())
    await one._executor(seen, {}, seen.results).carry_out(save)
    written = api.objects[f"{RESULTS}/ft-demo-r1-c001"]
    with pytest.raises(ConflictError):
        await one._executor(seen, {}, seen.results).carry_out(save)
    assert results(api) == [written]


async def test_a_status_of_another_version_is_said_and_does_not_hang_the_deletion(api: Api) -> None:
    api.objects[f"{BENCHMARKS}/demo"]["status"] = {"phase": "Dreaming"}
    one = loop(api)
    await run(api, one, lambda: bool(told(api, "Unreadable")))
    await run(api, one, lambda: True)
    assert len(told(api, "Unreadable")) == 1
    assert "status.phase" in told(api, "Unreadable")[0]
    await leave(api)


async def test_a_result_that_the_api_server_does_not_take_fails_its_case(api: Api) -> None:
    one = loop(api)
    await measured(api, one)
    api.refuse["PATCH", "ft-demo-r1-c001/status"] = ApiError(422, "Invalid", "startTime: must be a date")
    for _ in range(TRIES):
        await look(api, one)
    api.refuse.clear()
    await run(api, one, lambda: results(api)[0].get("status", {}).get("phase") == "Failed")
    assert results(api)[0]["status"]["reason"] == "ResultRefused"


async def test_a_result_that_is_not_even_taken_as_failed_ends_its_run(api: Api) -> None:
    """Definitions that ask for more than this version writes: it was written for ever."""
    one = loop(api)
    await measured(api, one)
    api.refuse["PATCH", "ft-demo-r1-c001/status"] = ApiError(422, "Invalid", "status.further: Required value")
    await run(api, one, lambda: not api.names("jobs"))
    for path in [path for path in api.objects if path.startswith(PODS)]:
        del api.objects[path]
    await run(api, one, lambda: status(api).get("phase") == "Failed")
    failed = next(item for item in status(api)["conditions"] if item["type"] == "Failed")
    assert (failed["reason"], "status.further: Required value" in failed["message"]) == ("ResultRefused", True)
    assert not api.names("leases")


async def test_a_field_that_is_not_known_yet_costs_no_measurement(api: Api) -> None:
    """It is stored once the definitions have the field, however long that takes."""
    one = loop(api)
    await measured(api, one)
    api.refuse["PATCH", "ft-demo-r1-c001/status"] = UnknownFieldError(500, "", "status.a: field not declared in schema")
    for _ in range(TRIES + 3):
        await look(api, one)
    assert one._context.definitions.in_doubt.is_set()
    api.refuse.clear()
    await run(api, one, lambda: results(api)[0]["status"].get("phase") == "Measured")


async def test_a_status_that_is_never_taken_is_left_alone_until_definitions_change(api: Api) -> None:
    tried, request = [], api.request

    async def count(method: str, path: str, **more: Any) -> Raw:
        tried.extend([path] if method == "PATCH" and path.endswith("/status") else [])
        return await request(method, path, **more)

    api.refuse["PATCH", "/demo/status"] = ApiError(422, "Invalid", "status.phase: Unsupported value")
    api.request = count  # type: ignore[method-assign]
    one = loop(api)
    for _ in range(TRIES + 3):
        await look(api, one)
    assert len(tried) == TRIES
    assert len(told(api, "StatusRefused")) == 1
    api.refuse.clear()
    one._context.definitions.digest = "another"
    await run(api, one, lambda: bool(status(api)))


MISSING = ("BenchmarkResult status.a",)


def differs(api: Api) -> list[tuple[str, str]]:
    conditions = status(api).get("conditions", [])
    return [(item["status"], item["reason"]) for item in conditions if item["type"] == "DefinitionsDiffer"]


async def test_nothing_begins_while_definitions_do_not_match(api: Api) -> None:
    one = loop(api)
    one._context.definitions.missing = MISSING
    written = []
    for _ in range(3):
        await look(api, one)
        written.append(api.objects[f"{BENCHMARKS}/demo"]["metadata"]["resourceVersion"])
    assert (differs(api), len(set(written))) == ([("True", "DefinitionsOlder")], 1)
    assert not api.names("pods") and not api.names("leases")
    one._context.definitions.missing = ()
    await run(api, one, lambda: "ft-demo-r1-s1" in api.names("pods"))
    assert differs(api) == [("False", "DefinitionsAlike")]


async def test_trials_measured_while_definitions_do_not_match_count_once(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log may be gone when they match again, so it is read before."""
    one = loop(api)
    await measured(api, one)
    stored = copy.deepcopy(results(api))
    one._context.definitions.missing = MISSING
    waits = itertools.count(1)

    async def definitions_match_again(*_: object) -> None:
        api.tell(one._context)
        match next(waits):
            case 3:
                assert (results(api), differs(api)) == (stored, [("True", "DefinitionsOlder")])
                api.logs["ft-demo-r1-c001-a1-x"] = NotFoundError(404, "NotFound", "the pod is gone")
                one._context.definitions.missing = ()
            case 20:
                raise LookedError

    monkeypatch.setattr(module, "wait_for_event", definitions_match_again)
    await look(api, one)
    status = results(api)[0]["status"]
    assert (status["phase"], status["counts"]["completed"]) == ("Measured", 1)
    assert not [name for name in api.names("jobs") if name.endswith("a2")]


async def test_a_benchmark_is_deleted_while_definitions_do_not_match(api: Api) -> None:
    one = loop(api)
    await measured(api, one)
    one._context.definitions.missing = MISSING
    for path in [path for path in api.objects if path.startswith(PODS)]:
        del api.objects[path]
    await leave(api, one)
    assert not api.names("leases")


async def test_ages_are_by_the_clock_of_the_api_server(api: Api) -> None:
    """With a clock that was a minute ahead, an error that passes by itself was final."""
    api.ahead = timedelta(hours=-1)
    one = loop(api)
    await run(api, one, lambda: "ft-demo-r1-s1" in api.names("pods"))
    pod = api.objects[f"{PODS}/ft-demo-r1-s1"]
    pod["metadata"]["creationTimestamp"] = format_time(api.now())
    waiting = {"name": "nginx", "state": {"waiting": {"reason": "ErrImagePull"}}}
    pod["status"] = {"phase": "Pending", "containerStatuses": [waiting]}
    with pytest.raises(AssertionError, match="in vain"):
        await run(api, one, lambda: bool(results(api)), 5)
    api.ahead = timedelta(0)
    await run(api, one, lambda: bool(results(api)) and results(api)[0]["status"]["reason"] == "ImagePullFailed")


async def test_a_log_that_cannot_be_reached_is_named_and_not_measured_again(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = loop(api)
    await measured(api, one)
    api.logs["ft-demo-r1-c001-a1-x"] = ApiError(500, "InternalError", "dial tcp 10.0.0.9:10250: i/o timeout")

    async def a_minute_passes(*_: object) -> None:
        api.ahead += timedelta(minutes=1)
        api.tell(one._context)
        if results(api) and results(api)[0]["status"]["phase"] != "Running":
            raise LookedError

    monkeypatch.setattr(module, "wait_for_event", a_minute_passes)
    await look(api, one)
    status = results(api)[0]["status"]
    assert (status["reason"], "u1" in status["message"]) == ("LogsUnreachable", True)
    assert not [name for name in api.names("jobs") if name.endswith("a2")]


async def test_a_server_that_is_refused_is_told_of_at_once(api: Api) -> None:
    api.refuse["POST", "/pods"] = ApiError(403, "Forbidden", "exceeded quota: tenant")
    await run(api, loop(api), lambda: bool(told(api, "RefusedByApiServer")), 5)
    assert told(api, "RefusedByApiServer") == ["exceeded quota: tenant"]


async def test_a_client_whose_pod_is_refused_is_told_of(api: Api) -> None:
    """Its Job is taken. What a quota says to the pod is told to the Job controller alone."""
    one = loop(api)
    await run(api, one, lambda: "ft-demo-r1-s1" in api.names("pods"))
    server_is_ready(api)
    await run(api, one, lambda: "ft-demo-r1-c001-a1" in api.names("jobs"))
    job = api.objects[f"{JOBS}/ft-demo-r1-c001-a1"]
    job["metadata"]["creationTimestamp"] = format_time(api.now())
    api.refuse["POST", "/pods"] = ApiError(403, "Forbidden", "exceeded quota: tenant")
    with pytest.raises(AssertionError, match="in vain"):
        await run(api, one, lambda: bool(told(api, "RefusedByApiServer")), 5)
    api.ahead = timedelta(seconds=20)
    await run(api, one, lambda: bool(told(api, "RefusedByApiServer")))
    assert told(api, "RefusedByApiServer") == ["exceeded quota: tenant"]
    assert results(api)[0]["status"]["phase"] == "Running", "a quota may have room in a moment"
    api.ahead = timedelta(seconds=70)
    await run(api, one, lambda: results(api)[0]["status"]["phase"] == "Failed")
    assert results(api)[0]["status"]["reason"] == "RefusedByApiServer"


async def test_a_status_that_was_written_is_looked_at_again_at_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """No watch tells of one's own writes: the end of a run was followed by nothing for half a minute."""
    waits: list[float] = []

    async def note(_: object, seconds: float) -> None:
        waits.append(seconds)
        raise LookedError

    monkeypatch.setattr(module, "wait_for_event", note)
    one = loop(api)
    await run(api, one, lambda: "ft-demo-r1-s1" in api.names("pods"))
    assert set(waits) == {0}, "there is neither a rest nor a conflict with itself"


async def test_a_server_whose_deletion_is_broken_off_is_deleted_to_its_end(api: Api) -> None:
    """Its Services were gone, which are what tells that there is more of it: what nobody lists stayed for ever."""
    one = loop(api)
    await measured(api, one)
    image_problem = ("configmaps", "secrets", "networkpolicies")
    assert any(api.names(plural) for plural in image_problem)
    for plural in image_problem:
        for name in api.names(plural):
            api.refuse["DELETE", f"/{plural}/{name}"] = ApiError(503, "ServiceUnavailable", "away")
    await run(api, one, lambda: not [name for name in api.names("pods") if name.endswith("-s1")])
    del api.objects[f"{PODS}/ft-demo-r1-c001-a1-x"]  # its Job is gone
    api.refuse.clear()
    await run(api, one, lambda: api.objects[f"{BENCHMARKS}/demo"]["status"]["phase"] == "Complete")
    assert [name for plural in (*image_problem, "services") for name in api.names(plural)] == []


async def test_a_benchmark_that_is_gone_ends_its_reconciler(api: Api) -> None:
    one = loop(api)
    await run(api, one, lambda: "ft-demo-r1-s1" in api.names("pods"))
    del api.objects[f"{BENCHMARKS}/demo"]
    assert not await look(api, one)


async def test_another_benchmark_of_the_name_ends_the_reconciler_of_the_first(api: Api) -> None:
    one = loop(api)
    await run(api, one, lambda: "ft-demo-r1-s1" in api.names("pods"))
    api.objects[f"{BENCHMARKS}/demo"]["metadata"]["uid"] = "uid-2"
    assert not await look(api, one)


@pytest.mark.parametrize("metadata", [{"finalizers": []}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}])
async def test_nothing_is_done_without_the_finalizer_or_after_deletion(api: Api, metadata: Raw) -> None:
    """Without it, what is made would have nobody that cleans up; after deletion, the cleanup is under way."""
    api.objects[f"{BENCHMARKS}/demo"]["metadata"] |= metadata
    before = dict(api.objects)
    assert await look(api, loop(api))
    assert (api.objects, api.events) == (before, [])


async def test_a_reconciler_that_is_stopped_ends_after_what_it_has_begun(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "wait_for_event", wait_for_event)
    one = loop(api)
    request = api.request

    async def stop(method: str, path: str, **more: Any) -> Raw:
        one.stop()
        return await request(method, path, **more)

    api.request = stop  # type: ignore[method-assign]
    assert not await look(api, one)
    assert status(api)["phase"], "the reconcile was not broken off"
