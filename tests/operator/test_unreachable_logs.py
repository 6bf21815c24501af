"""Trials on a node whose logs cannot be read are collected exactly once."""

import pytest

from tests.e2e.benchmarks import Running, assert_every_trial_once, assert_nothing_left, file_transfer, network
from tests.e2e.kubectl import Kubectl, wait_for
from tests.operator.site import Json, Site

CLIENT_NODE = "user-1"


def class_condition(site: Site, name: str) -> Json:
    """Returns a condition of the client class."""
    conditions = site.release.kubectl.get("nodeclass", "user")["status"]["conditions"]
    return next((item for item in conditions if item["type"] == name), {})


def jobs_of(running: Running) -> set[str]:
    return {job["metadata"]["name"] for job in running.kubectl.list("jobs", f"tierbench.io/benchmark={running.name}")}


@pytest.mark.timing
def test_trials_are_read_from_the_pod_status_when_logs_are_unreachable(site: Site, kubectl: Kubectl) -> None:
    """The operator is killed while the client measures."""
    running = Running(kubectl)
    with site.without_logs(CLIENT_NODE):
        with site.holding_clients(running, file_transfer(fileSizes=["1Mi", "64Mi"]), trial=2):
            assert all(name.endswith("-a1") for name in jobs_of(running))
            site.kill()
        running.wait_for_phase("Complete")
    assert_every_trial_once(running)
    trials = [trial for result in running.results for trial in result["status"]["trials"]]
    assert {trial["collectedBy"] for trial in trials} == {"Status"}
    assert {trial.get("attempt", 1) for trial in trials} == {1}
    condition = running.condition("LogsReachable")
    assert (condition["status"], condition["reason"]) == ("False", "LogsUnreachable")
    assert CLIENT_NODE in condition["message"], condition["message"]
    assert "cloudStream" in condition["message"], condition["message"]
    wait_for("the condition of the class", lambda: class_condition(site, "LogsReachable").get("status") == "False")
    assert CLIENT_NODE in class_condition(site, "LogsReachable")["message"]
    assert "ClientLost" not in running.wait_for_description("LogsUnreachable")
    assert_nothing_left(running)
    running.kubectl.apply(file_transfer("again"))
    again = Running(kubectl, "again")
    again.wait_for_phase("Complete")
    assert again.condition("LogsReachable")["status"] == "True"
    wait_for("the logs of the class", lambda: class_condition(site, "LogsReachable").get("status") == "True")


@pytest.mark.timing
def test_traces_too_large_for_the_pod_status_are_read_from_the_log_later(site: Site, kubectl: Kubectl) -> None:
    """The operator waits for at most `nodeNotReadySeconds`, and is killed while it waits."""
    running = Running(kubectl, "networks", "networkbenchmark")
    with site.without_logs(CLIENT_NODE):
        kubectl.apply(network(directions=["Upload"], timeouts={"nodeNotReadySeconds": 3600}))
        wait_for("the condition", lambda: running.condition("LogsReachable").get("status") == "False", 120)
        running.wait_for_description("LogsUnreachable", CLIENT_NODE)
        site.kill()
        site.release.ready()
        assert running.status["phase"] == "Running"
    running.wait_for_phase("Complete")
    (result,) = running.results
    assert [trial["trial"] for trial in result["status"]["trials"]] == [1, 2]
    assert {trial.get("attempt", 1) for trial in result["status"]["trials"]} == {1}
    assert {trace["trial"] for trace in result["status"]["traces"]} == {1, 2}
    wait_for("the log was read", lambda: running.condition("LogsReachable").get("status") == "True")
    assert_nothing_left(running)


@pytest.mark.timing
def test_trials_are_pushed_to_the_collector_when_logs_are_unreachable(site: Site, kubectl: Kubectl) -> None:
    """The operator is killed while the client measures, and another one takes the lines."""
    running = Running(kubectl)
    site.release.install("collector.enabled=true")
    try:
        with site.without_logs(CLIENT_NODE):
            with site.holding_clients(running, file_transfer(repetitions=10), trial=3):
                site.kill()
            running.wait_for_phase("Complete")
    finally:
        site.release.install()
    assert_every_trial_once(running, 10)
    (result,) = running.results
    assert {trial["collectedBy"] for trial in result["status"]["trials"]} == {"Push"}
    assert {trial.get("attempt", 1) for trial in result["status"]["trials"]} == {1}
    assert_nothing_left(running)
