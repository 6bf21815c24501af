"""A user applies objects with kubectl, and gets an answer."""

from typing import Any

from tests.e2e.benchmarks import API_VERSION, Running, assert_every_trial_once, assert_nothing_left, file_transfer
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.operator_release import Release


def advised(kubectl: Kubectl, *reasons: str) -> dict[str, Any]:
    """Waits until the advice has an answer with one of these reasons, and returns its status."""

    def answered() -> dict[str, Any] | None:
        status: dict[str, Any] = kubectl.get("placementadvice", "files").get("status", {})
        found = [item["reason"] for item in status.get("conditions", []) if item["type"] == "BestFound"]
        return status if set(found) & set(reasons) else None

    return wait_for(f"the advice is answered: {' or '.join(reasons)}", answered, 30)


def test_two_classes_are_measured_and_compared(kubectl: Kubectl, release: Release) -> None:
    question = {"clientClassName": "user", "workload": {"fileSizes": [{"size": "16Mi"}]}}
    kubectl.apply(
        {"apiVersion": API_VERSION, "kind": "PlacementAdvice", "metadata": {"name": "files"}, "spec": question}
    )
    advised(kubectl, "NoResults")
    kubectl.apply(
        file_transfer(
            servers={"nodeClassNames": ["cloud", "jetson-nano"]},
            fileSizes=["1Mi", "16Mi"],
            access="NodePort",
            warmupTrials=1,
        )
    )
    running = Running(kubectl)
    status = running.wait_for_phase("Complete")
    assert status["progress"] == "4/4"
    assert_every_trial_once(running)
    assert_nothing_left(running)

    row = kubectl("get", "results", "--no-headers").splitlines()[0].split()
    assert row[1:4] == ["1", "cloud", "user"]
    assert "1Mi" in row
    written = running.results[0]["status"]
    assert ("Yes" if written["valid"] else written["invalid"][0]["reason"]) in row
    # A busy machine may make a result invalid, with a reason.
    assert written["valid"] == (not written.get("invalid"))
    running.wait_for_description("RunStarted", "Starting", "CaseMeasured", "AllCasesMeasured")

    answer = advised(kubectl, "ShownBetter", "CouldGoEitherWay", "PerhapsWithinMargin", "EqualWithinMargin")
    assert {item["name"]: item["trials"] for item in answer["ranking"]} == {"cloud": 3, "jetson-nano": 3}
    assert {note["reason"] for note in answer["caveats"]} >= {"OneNode"}
    if answer["best"]:
        Running(kubectl, "files", "placementadvice").wait_for_description("BestChanged")

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
