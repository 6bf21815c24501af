"""Manifests are changed and applied again in every phase. GitOps tools see the right state meanwhile."""

import os
import signal

import pytest

from tests.e2e.benchmarks import Running, assert_every_trial_once, assert_nothing_left, file_transfer
from tests.e2e.kubectl import Kubectl, wait_for
from tests.operator.site import Json, Site
from tests.unit.test_gitops import argo, kstatus

LABEL = "tierbench.io/superseded"
CLASSES = {"nodeClassNames": ["cloud", "jetson-nano"]}


def wait_for_run(running: Running, number: int) -> Json:
    """Waits until this run is complete, and returns its results by case."""

    def complete() -> bool:
        status = running.status_in("Complete")
        return status is not None and status["run"]["number"] == number

    wait_for(f"run {number} of {running.name}", complete, 120)
    return {item["metadata"]["name"]: item for item in running.results if item["spec"]["run"] == number}


@pytest.mark.timing
def test_change_during_a_trial_is_measured_by_another_run(site: Site, kubectl: Kubectl) -> None:
    running = Running(kubectl)
    with site.holding_clients(running, file_transfer(fileSizes=["1Mi", "2Mi"], repetitions=5), trial=3):
        wait_for("a trial in a result", lambda: running.results and running.results[0]["status"].get("trials"))
        kubectl.apply(file_transfer(fileSizes=["4Mi"]))
        assert kstatus(running.object) == "InProgress"
        site.kill()
    results = wait_for_run(running, 2)
    assert [item["spec"]["levels"]["fileSize"] for item in results.values()] == ["4Mi"]
    assert not any(LABEL in item["metadata"]["labels"] for item in results.values())
    earlier = [item for item in running.results if item["spec"]["run"] == 1]
    assert earlier
    assert {item["metadata"]["labels"].get(LABEL) for item in earlier} == {"true"}
    assert {item["status"]["phase"] for item in earlier} == {"Complete"}
    assert all(item["status"]["trials"] for item in earlier)
    running.wait_for_description("Superseded")
    assert_nothing_left(running)
    assert (kstatus(running.object), argo(running.object)[0]) == ("Current", "Healthy")
    assert {item["observedGeneration"] for item in running.status["conditions"]} == {2}
    kubectl("wait", "tbf/files", "--for=condition=Complete", "--timeout=1s")


@pytest.mark.timing
def test_trials_that_clients_print_while_the_operator_is_down_survive_a_change(site: Site, kubectl: Kubectl) -> None:
    running = Running(kubectl)
    with site.holding_clients(running, file_transfer(fileSizes=["1Mi"], repetitions=5)):
        for pid in site.pids(site.release.pod):
            os.kill(pid, signal.SIGSTOP)
    client = running.wait_for_pod("client", running=False)["metadata"]["name"]
    wait_for("the client has ended", lambda: kubectl.get("pod", client)["status"]["phase"] == "Succeeded", 120)
    kubectl.apply(file_transfer(fileSizes=["4Mi"]))
    site.kill()
    wait_for_run(running, 2)
    (earlier,) = (item for item in running.results if item["spec"]["run"] == 1)
    assert [trial["trial"] for trial in earlier["status"]["trials"]] == [1, 2, 3, 4, 5]


@pytest.mark.timing
def test_reordered_or_unchanged_manifest_does_not_disturb_the_run(site: Site, kubectl: Kubectl) -> None:
    running, sizes = Running(kubectl), ["1Mi", "2Mi"]
    body = file_transfer(servers=CLASSES, fileSizes=sizes)
    with site.holding_clients(running, body, trial=2):
        kubectl.apply(body)
        assert running.object["metadata"]["generation"] == 1
        reversed_classes = {"nodeClassNames": CLASSES["nodeClassNames"][::-1]}
        kubectl.apply(file_transfer(servers=reversed_classes, fileSizes=sizes[::-1]))
        assert running.object["metadata"]["generation"] == 2
        before = {item["metadata"]["uid"] for item in running.results}
    wait_for_run(running, 1)
    assert_every_trial_once(running)
    assert {trial.get("attempt", 1) for item in running.results for trial in item["status"]["trials"]} == {1}
    assert before <= {item["metadata"]["uid"] for item in running.results}


def test_corrected_spec_is_measured_after_a_failed_run(kubectl: Kubectl) -> None:
    running = Running(kubectl)
    kubectl.apply(file_transfer(servers={"nodeClassNames": ["no-such-class"]}, timeouts={"schedulingSeconds": 5}))
    running.wait_for_phase("Failed")
    assert (kstatus(running.object), argo(running.object)[0]) == ("Failed", "Degraded")
    kubectl.apply(file_transfer())
    wait_for_run(running, 2)
    assert "Stalled" not in {item["type"] for item in running.status["conditions"]}


def test_last_of_several_changes_is_measured(kubectl: Kubectl) -> None:
    running = Running(kubectl)
    kubectl.apply(file_transfer())
    running.wait_for_phase("Complete")
    for size in ("2Mi", "3Mi"):
        kubectl.apply(file_transfer(fileSizes=[size], runPolicy={"suspend": True}))
    running.wait_for_phase("Suspended")
    kubectl.apply(file_transfer(fileSizes=["4Mi"]))

    def newest_sizes() -> list[str]:
        status = running.status_in("Complete")
        number = 0 if status is None else status["run"]["number"]
        return [item["spec"]["levels"]["fileSize"] for item in running.results if item["spec"]["run"] == number]

    assert wait_for("the last spec is measured", newest_sizes, 120) == ["4Mi"]
    assert_nothing_left(running)
