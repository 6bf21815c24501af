"""From kubectl apply to an answer."""

import json
from datetime import UTC, datetime
from typing import Any

from tests.cluster import Cluster
from tests.e2e.benchmarks import API_VERSION, Running, assert_every_trial_once, assert_nothing_left, file_transfer
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.operator_release import Release


def advised(kubectl: Kubectl, *reasons: str) -> dict[str, Any]:
    """The status of the advice, once it is answered for one of these reasons."""

    def answered() -> dict[str, Any] | None:
        status: dict[str, Any] = kubectl.get("placementadvice", "files").get("status", {})
        found = [item["reason"] for item in status.get("conditions", []) if item["type"] == "Answered"]
        return status if set(found) & set(reasons) else None

    return wait_for(f"the advice says {' or '.join(reasons)}", answered, 30)


def test_two_classes_are_measured_and_compared(kubectl: Kubectl, release: Release) -> None:
    question = {"clientClass": "user", "workload": {"fileSizes": [{"size": "16Mi"}]}}
    kubectl.apply(
        {"apiVersion": API_VERSION, "kind": "PlacementAdvice", "metadata": {"name": "files"}, "spec": question}
    )
    advised(kubectl, "NoResults")
    kubectl.apply(
        file_transfer(
            servers={"nodeClasses": ["cloud", "jetson-nano"]}, fileSizes=["1Mi", "16Mi"], access="NodePort", warmup=1
        )
    )
    running = Running(kubectl)
    status = running.wait_for_phase("Complete")
    assert status["progress"] == "4/4"
    assert_every_trial_once(running)
    assert_nothing_left(running)

    row = kubectl("get", "results", "--no-headers").splitlines()[0].split()
    assert row[1:5] == ["files", "1", "cloud", "user"]
    assert "1Mi" in row
    written = running.results[0]["status"]
    assert ("Yes" if written["valid"] else written["invalid"][0]["reason"]) in row
    assert written["valid"] == (not written.get("invalid"))  # a busy machine may spoil it, and then it says by what
    story = kubectl("describe", "filetransferbenchmark", "files")
    for word in ("RunStarted", "Starting", "CaseMeasured", "AllCasesMeasured"):
        assert word in story

    answer = advised(kubectl, "ShownBetter", "CouldGoEitherWay", "PerhapsWithinMargin", "EqualWithinMargin")
    assert {item["name"]: item["trials"] for item in answer["ranking"]} == {"cloud": 3, "jetson-nano": 3}
    assert {note["reason"] for note in answer["caveats"]} >= {"OneNode"}
    if answer["best"]:
        assert "BestChanged" in kubectl("describe", "placementadvice", "files")

    first = running.results[0]
    assert [result["spec"]["alternation"]["cases"] for result in running.results] == [[1, 3], [2, 4], [1, 3], [2, 4]]
    assert first["spec"]["server"]["architecture"]
    assert first["spec"]["server"]["kernel"]
    trial = first["status"]["trials"][-1]
    assert trial["transfer"]["bytes"] == 2**20
    assert trial["server"]["residentBeforePartsPerMillion"] <= 1_000_000
    assert [item.get("warmup", False) for item in first["status"]["trials"]] == [True, False, False, False]

    text = release.metrics()
    label = f'benchmark_namespace="{kubectl.namespace}"'
    lines = [line for line in text.splitlines() if label in line]
    assert any(line.startswith("tierbench_file_transfer_duration_seconds_bucket") for line in lines)
    assert any(line.startswith("tierbench_file_transfer_retries") for line in lines)


def test_further_runs_are_numbered_planned_and_held_to_what_was_asked(kubectl: Kubectl, cluster: Cluster) -> None:
    policy = {"history": 1, "constraints": {"maximumMeanMilliseconds": 60000, "maximumRetries": 0}}
    kubectl.apply(file_transfer(runPolicy=policy))
    running = Running(kubectl)
    running.wait_for_phase("Complete")
    assert running.condition("Regressed")["reason"] == "NoEarlierRun"
    kubectl("wait", "ftb/files", "--for=condition=Passed", "--timeout=10s")
    more = {"rerun": "again", "schedule": "0 0 1 1 *", "constraints": {"maximumMeanMilliseconds": 1}}
    with cluster.link("cloud-1", "50mbit"):
        kubectl("patch", "ftb", "files", "--type=merge", "-p", json.dumps({"spec": {"runPolicy": more}}))
        status = running.wait_for_phase("Complete")
    assert status["run"]["number"] == 2
    assert {result["spec"]["run"] for result in running.results} == {2}
    assert_every_trial_once(running)
    assert running.condition("Passed")["reason"] == "ConstraintsBroken"
    regressed = running.condition("Regressed")
    assert (regressed["status"], regressed["reason"]) == ("True", "WorseThanBefore")
    next_year = datetime.now(UTC).year + 1
    wait_for("the next run is planned", lambda: running.status.get("nextRunTime") == f"{next_year}-01-01T00:00:00Z", 30)
    story = kubectl("describe", "ftb", "files")
    assert "ConstraintsMet" in story
    assert "ConstraintsBroken" in story


def test_suspend_and_resume_in_mid_run(kubectl: Kubectl) -> None:
    kubectl.apply(file_transfer(fileSizes=["1Mi", "256Mi"], repetitions=5))
    running = Running(kubectl)
    running.wait_for_pod("client")
    kubectl("patch", "ftb", "files", "--type=merge", "-p", '{"spec": {"runPolicy": {"suspend": true}}}')
    running.wait_for_phase("Suspended")
    assert_nothing_left(running)
    kubectl("patch", "ftb", "files", "--type=merge", "-p", '{"spec": {"runPolicy": {"suspend": false}}}')
    running.wait_for_phase("Complete")
    assert_every_trial_once(running, 5)


def test_idle_operator_writes_nothing(kubectl: Kubectl, release: Release) -> None:
    kubectl.apply(file_transfer())
    running = Running(kubectl)
    running.wait_for_phase("Complete")
    assert_nothing_left(running)
    before = kubectl.get("filetransferbenchmark", "files")["metadata"]
    assert "finalizers" not in before
    assert not [key for key in before.get("annotations", {}) if "kopf" in key]
