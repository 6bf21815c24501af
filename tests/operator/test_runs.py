"""Benchmarks run again, are suspended, and keep the right objects."""

import json
from datetime import UTC, datetime

import pytest

from tests.e2e.benchmarks import Running, assert_every_trial_once, assert_nothing_left, file_transfer
from tests.e2e.kubectl import Kubectl, wait_for
from tests.operator.site import Site


def test_further_runs_are_numbered_scheduled_and_checked_against_constraints(site: Site, kubectl: Kubectl) -> None:
    policy = {"historyLimit": 1, "constraints": {"maxMeanMilliseconds": 60000, "maxRetries": 0}}
    kubectl.apply(file_transfer(runPolicy=policy))
    running = Running(kubectl)
    running.wait_for_phase("Complete")
    wait_for("the finalizer is gone", lambda: "finalizers" not in running.object["metadata"])
    assert running.condition("Regressed")["reason"] == "NoEarlierRun"
    assert running.condition("Passed")["status"] == "True"
    more = {"rerun": "again", "schedule": "0 0 1 1 *", "constraints": {"maxMeanMilliseconds": 1}}
    with site.slow(running):
        kubectl("patch", "tbf", "files", "--type=merge", "-p", json.dumps({"spec": {"runPolicy": more}}))
        status = running.wait_for_phase("Complete")
    assert status["run"]["number"] == 2
    wait_for("the results of run 1 are gone", lambda: {result["spec"]["run"] for result in running.results} == {2})
    assert_every_trial_once(running)
    assert running.condition("Passed")["reason"] == "ConstraintsBroken"
    regressed = running.condition("Regressed")
    assert (regressed["status"], regressed["reason"]) == ("True", "WorseThanBefore")
    next_year = datetime.now(UTC).year + 1
    wait_for(
        "the next run is scheduled", lambda: running.status.get("nextRunTime") == f"{next_year}-01-01T00:00:00Z", 30
    )
    running.wait_for_description("ConstraintsMet", "ConstraintsBroken")


def test_cases_are_measured_with_and_without_a_link(kubectl: Kubectl) -> None:
    late = {"delayMicroseconds": 5000}
    kubectl.apply(file_transfer(links=[{"name": "direct"}, {"name": "late", "up": late}]))
    running = Running(kubectl)
    running.wait_for_phase("Complete")
    assert_every_trial_once(running)
    assert_nothing_left(running)
    links = {result["spec"]["levels"]["link"]: result["spec"].get("link") for result in running.results}
    assert links.keys() == {"direct", "late"}
    assert links["direct"] is None
    assert links["late"]["up"]["delayMicroseconds"] == 5000


@pytest.mark.timing
def test_suspended_run_resumes_with_its_missing_trials(site: Site, kubectl: Kubectl) -> None:
    running = Running(kubectl)
    with site.holding_clients(running, file_transfer(fileSizes=["1Mi", "256Mi"], repetitions=5), trial=2):
        kubectl("patch", "tbf", "files", "--type=merge", "-p", '{"spec": {"runPolicy": {"suspend": true}}}')
        running.wait_for_phase("Suspended")
        assert_nothing_left(running)
    kubectl("patch", "tbf", "files", "--type=merge", "-p", '{"spec": {"runPolicy": {"suspend": false}}}')
    running.wait_for_phase("Complete")
    assert_every_trial_once(running, 5)
    assert 2 in {trial.get("attempt", 1) for result in running.results for trial in result["status"]["trials"]}
