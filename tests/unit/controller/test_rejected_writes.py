"""Writes that the API server rejects: retries, suspension, and what users can read about them."""

from datetime import timedelta

import pytest

from tests.unit.controller.reconciling import CLIENT, RESOURCE, RESULT, Demo
from tierbench.api.result import RESULTS
from tierbench.controller.context import TRIES
from tierbench.domain.decide import decide
from tierbench.domain.decision import SaveResult
from tierbench.kube.client import ApiError, ConflictError, NotFoundError, UnknownFieldError
from tierbench.kube.meta import JOBS

RESULT_STATUS = ("PATCH", f"{RESULT}/status")


async def test_missing_namespace_of_the_leases_does_not_end_the_reconciler(demo: Demo) -> None:
    """The reconciler must not consider its benchmark deleted."""
    demo.api.refuse["POST", "/leases"] = NotFoundError(404, "NotFound", 'namespaces "leases" not found')
    assert all([await demo.reconcile() for _ in range(5)])
    assert not demo.api.names("pods")
    demo.api.refuse.clear()
    await demo.until_server()


async def test_result_that_another_leader_has_written_is_not_overwritten(demo: Demo) -> None:
    """A leader that is replaced after its observation must not overwrite trials that the next one has counted."""
    await demo.until_measured()
    demo.relist()
    before = await demo.reconciler._observe(demo.reconciler._raw())
    save = next(action for action in decide(before, demo.api.now()).actions if isinstance(action, SaveResult))
    await demo.reconciler._executor(before, {}, before.results).carry_out(save)
    demo.relist()
    observed = await demo.reconciler._observe(demo.reconciler._raw())
    executor = demo.reconciler._executor(observed, {}, observed.results)
    demo.api.change(RESULTS, RESULT, status={"message": "written by the next leader"})
    written = demo.results
    with pytest.raises(ConflictError):
        await executor.carry_out(save)
    assert demo.results == written


async def test_unreadable_status_is_reported_and_does_not_prevent_deletion(demo: Demo) -> None:
    demo.api.change(RESOURCE, "demo", status={"phase": "Dreaming"})
    await demo.until(lambda: demo.messages("Unreadable"))
    await demo.reconcile()
    (message,) = demo.messages("Unreadable")
    assert "status.phase" in message
    await demo.clean_up()


async def test_case_fails_when_its_result_is_rejected(demo: Demo) -> None:
    await demo.until_measured()
    demo.api.refuse[RESULT_STATUS] = ApiError(422, "Invalid", "startTime: must be a date")
    for _ in range(TRIES):
        await demo.reconcile()
    demo.api.refuse.clear()
    await demo.until(lambda: demo.result_status.get("phase") == "Failed")
    assert demo.result_status["reason"] == "ResultRefused"


async def test_run_ends_when_a_result_cannot_even_be_stored_as_failed(demo: Demo) -> None:
    """Definitions may require a field that this version does not write. The write is not retried without end."""
    await demo.until_measured()
    demo.api.refuse[RESULT_STATUS] = ApiError(422, "Invalid", "status.further: Required value")
    await demo.until(lambda: not demo.api.names("jobs"))
    demo.delete_pods()
    await demo.until(lambda: demo.status.get("phase") == "Failed")
    failed = next(item for item in demo.status["conditions"] if item["type"] == "Failed")
    assert (failed["reason"], "status.further: Required value" in failed["message"]) == ("ResultRefused", True)
    assert not demo.api.names("leases")


async def test_result_with_an_unknown_field_is_stored_when_the_definitions_have_it(demo: Demo) -> None:
    await demo.until_measured()
    demo.api.refuse[RESULT_STATUS] = UnknownFieldError(500, "", "status.a: field not declared in schema")
    for _ in range(TRIES + 3):
        await demo.reconcile()
    assert demo.context.definitions.in_doubt.is_set()
    demo.api.refuse.clear()
    await demo.until(lambda: demo.result_status.get("phase") == "Complete")


async def test_rejected_status_is_written_again_when_the_definitions_change(demo: Demo) -> None:
    demo.api.refuse["PATCH", "/demo/status"] = ApiError(422, "Invalid", "status.phase: Unsupported value")
    for _ in range(TRIES + 3):
        await demo.reconcile()
    assert sum(request.path.endswith("/demo/status") for request in demo.api.writes) == TRIES
    assert len(demo.messages("StatusRefused")) == 1
    demo.api.refuse.clear()
    demo.context.definitions.digest = "another"
    await demo.until(lambda: demo.status)


async def test_rejected_server_is_reported_at_once(demo: Demo) -> None:
    demo.api.refuse["POST", "/pods"] = ApiError(403, "Forbidden", "exceeded quota: tenant")
    await demo.until(lambda: demo.messages("RefusedByApiServer"), 5)
    assert demo.messages("RefusedByApiServer") == ["exceeded quota: tenant"]


async def test_rejected_pod_of_a_client_is_reported_and_fails_the_case(demo: Demo) -> None:
    """The API server accepts the Job. Only the Job controller learns that a quota rejects its pod."""
    await demo.until_client()
    demo.age(JOBS, CLIENT, 0)
    demo.api.refuse["POST", "/pods"] = ApiError(403, "Forbidden", "exceeded quota: tenant")
    for _ in range(5):
        await demo.reconcile()
    assert not demo.messages("RefusedByApiServer")
    demo.api.ahead = timedelta(seconds=20)
    await demo.until(lambda: demo.messages("RefusedByApiServer"))
    assert demo.messages("RefusedByApiServer") == ["exceeded quota: tenant"]
    assert demo.result_status["phase"] == "Running", "a quota may have room in a moment"
    demo.api.ahead = timedelta(seconds=70)
    await demo.until(lambda: demo.result_status["phase"] == "Failed")
    assert demo.result_status["reason"] == "RefusedByApiServer"
