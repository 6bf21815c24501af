"""Objects of other owners, with labels or names of a benchmark, are neither used nor changed."""

from typing import Any

import pytest

from tests.unit.controller.reconciling import OWNER, RESULT, SERVER, Demo, foreign, labels
from tests.unit.domain.objects import trial_line
from tierbench.api.result import LABEL_SUPERSEDED, RESULTS
from tierbench.controller.snapshot import ControllerRefManager
from tierbench.domain.decision import DeleteJob, DeleteServer
from tierbench.kube.client import ConflictError
from tierbench.kube.meta import CONFIG_MAPS, PODS, SECRETS, SERVICES
from tierbench.workloads.workload import (
    LABEL_ATTEMPT,
    LABEL_CASE,
    LABEL_PART,
    LABEL_PASS,
    LABEL_ROLE,
    LABEL_RUN,
    LABEL_SLOT,
)


@pytest.mark.parametrize("role", [None, "server", "client", "strimzi", "nonsense"])
async def test_forged_pod_changes_nothing_and_is_reported_once(demo: Demo, role: str | None) -> None:
    """A pod without a role must not make each reconcile raise KeyError and block the deletion."""
    case = {LABEL_CASE: "1", LABEL_PASS: "1", LABEL_ATTEMPT: "1", LABEL_PART: "0"}
    demo.api.put(PODS, foreign("forged", role, **case))
    demo.api.logs["forged"] = trial_line(1).encode()
    await demo.until_measured(trial_line(1, nanoseconds=7))
    await demo.until(lambda: demo.result_status.get("phase") == "Complete")
    assert demo.record_status["trials"][0]["durationNanoseconds"] == 7
    (message,) = demo.messages("ForeignObject")
    assert "Pod forged" in message
    assert "forged" in demo.api.names("pods")


@pytest.mark.parametrize("kind", ["ReplicaSet", "StrimziPodSet", "Kafka"])
@pytest.mark.parametrize("is_deleted", [False, True])
async def test_forged_pod_of_strimzi_blocks_neither_a_run_nor_a_deletion(
    demo: Demo, kind: str, *, is_deleted: bool
) -> None:
    """Labels and the kind of an owner do not prove that a pod belongs to Strimzi."""
    pod = foreign("forged", "strimzi", **{"strimzi.io/cluster": "forged"})
    pod["metadata"]["ownerReferences"] = [{"kind": kind, "name": "forged", "uid": "forged", "controller": True}]
    demo.api.put(PODS, pod)
    if is_deleted:
        await demo.clean_up()
        return
    await demo.until_measured(trial_line(1, nanoseconds=7))
    await demo.until(lambda: demo.result_status.get("phase") == "Complete")
    assert "Pod forged" in demo.messages("ForeignObject")[0]


def test_only_pods_of_the_benchmarks_kafka_are_claimed_and_they_outlive_it() -> None:
    owner = OWNER
    reference = {"kind": owner.kind, "name": owner.name, "uid": owner.uid, "controller": True}
    of_run = {**owner.selector, LABEL_RUN: "1", LABEL_SLOT: "1"}
    head = {"labels": of_run, "creationTimestamp": "2026-01-01T00:00:00Z"}
    kafka = {"metadata": {**head, "name": "k", "uid": "k", "ownerReferences": [reference]}}

    def pod(cluster: str) -> dict[str, Any]:
        labels = {**of_run, LABEL_ROLE: "strimzi", "strimzi.io/cluster": cluster}
        owners = [{"kind": "StrimziPodSet", "name": cluster, "uid": cluster, "controller": True}]
        metadata = {**head, "name": f"{cluster}-n-0", "uid": f"pod-{cluster}", "labels": labels}
        return {"metadata": {**metadata, "ownerReferences": owners}, "spec": {"containers": []}, "status": {}}

    pods, manager = [pod("k"), pod("other")], ControllerRefManager(owner)
    found = manager.claim({"Kafka": [kafka], "Pod": pods})
    assert ([one.name for one in found.pods], found.unowned) == (["k-n-0"], ("Pod other-n-0",))
    found = manager.claim({"Pod": pods})
    assert [one.name for one in found.pods] == ["k-n-0"], "the pod outlives its Kafka"


async def test_forged_service_does_not_make_the_cleanup_delete_foreign_objects(demo: Demo) -> None:
    demo.api.put(SERVICES, {"metadata": {"name": "precious-agent", "labels": labels("server")}, "spec": {}})
    for resource in (PODS, SERVICES, SECRETS, CONFIG_MAPS):
        demo.api.put(resource, {"metadata": {"name": "precious"}, "spec": {}, "status": {}})
    demo.api.put(PODS, foreign("forged", "server"))
    await demo.clean_up()
    assert demo.api.deleted == []


async def test_foreign_object_with_a_needed_name_is_reported(demo: Demo) -> None:
    demo.api.put(PODS, {"metadata": {"name": SERVER}, "spec": {}, "status": {}})
    await demo.until(lambda: demo.messages("ForeignObject"))
    assert f"Pod {SERVER} exists already" in demo.messages("ForeignObject")[0]


async def test_recreated_benchmark_does_not_adopt_orphaned_results(demo: Demo) -> None:
    orphan = {
        "metadata": {"name": "ft-demo-r3-c001", "labels": OWNER.selector},
        "spec": {"run": 3, "case": 1, "benchmark": {"kind": OWNER.kind, "name": OWNER.name}},
        "status": {"phase": "Complete"},
    }
    demo.api.put(RESULTS, orphan)
    await demo.until(lambda: "ft-demo-r4-s1" in demo.api.names("pods"))
    assert demo.stored(RESULTS, "ft-demo-r3-c001")["status"] == {"phase": "Complete"}


async def test_result_of_another_case_with_the_needed_name_is_kept_and_another_run_begins(demo: Demo) -> None:
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
    metadata = {"name": RESULT, "labels": OWNER.selector, "ownerReferences": [reference]}
    demo.api.put(RESULTS, {"metadata": metadata, "spec": spec, "status": {"phase": "Complete"}})
    await demo.until(lambda: "ft-demo-r2-s1" in demo.api.names("pods"))
    kept = demo.stored(RESULTS, RESULT)
    assert (kept["spec"]["levels"], kept["metadata"]["labels"][LABEL_SUPERSEDED]) == (spec["levels"], "true")
    assert demo.messages("Superseded") == [
        f"BenchmarkResults {RESULT} are of other cases than the spec has under these names: run 1 ends, and run 2 "
        "measures the current spec."
    ]


async def test_object_that_was_recreated_since_the_last_list_is_not_deleted(demo: Demo) -> None:
    await demo.until_server()
    demo.relist()
    observed = await demo.reconciler._observe(demo.reconciler._raw())
    demo.api.force_delete(PODS, SERVER)
    demo.api.put(PODS, {"metadata": {"name": SERVER}, "spec": {}, "status": {}})
    executor = demo.reconciler._executor(observed, {}, {})
    with pytest.raises(ConflictError):
        await executor.carry_out(DeleteServer(SERVER))
    await executor.carry_out(DeleteJob("precious"))
    assert SERVER in demo.api.names("pods")
    assert not [path for path in demo.api.deleted if "/pods/" in path]
