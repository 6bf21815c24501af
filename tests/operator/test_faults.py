"""After faults no trial is counted twice, no measurement is lost, and no object is left."""

import json
from contextlib import ExitStack
from typing import Any

import pytest

from tests.e2e.benchmarks import API_VERSION, Running, assert_every_trial_once, assert_nothing_left, file_transfer
from tests.e2e.kubectl import Kubectl, wait_for
from tests.operator.site import Site, programs
from tests.timeouts import TIMEOUT_FACTOR

TWO_CASES: dict[str, Any] = {"fileSizes": ["1Mi", "64Mi"], "repetitions": 2}


@pytest.mark.timing
def test_operator_killed_at_each_step_measures_every_trial_once(site: Site, kubectl: Kubectl) -> None:
    """Kills the operator before and during the start of the server, in each trial, and at the end."""
    running = Running(kubectl)
    steps = []
    for step in site.steps(running, file_transfer(**TWO_CASES)):
        steps.append(step)
        site.kill()
        site.release.ready()
    running.wait_for_phase("Complete")
    assert len(steps) >= 3, steps
    assert_every_trial_once(running, 2)
    assert_nothing_left(running)


@pytest.mark.timing
@pytest.mark.parametrize("moment", ["at once", "server starting", "client running", "complete"])
def test_benchmark_deleted_at_any_time_leaves_nothing(site: Site, kubectl: Kubectl, moment: str) -> None:
    running, body = Running(kubectl), file_transfer(fileSizes=["64Mi"], repetitions=10)
    match moment:
        case "at once":
            kubectl.apply(body)
            delete(running)
        case "server starting":
            with site.starting_server(running, body):
                delete(running)
        case "client running":
            with site.holding_clients(running, body):
                delete(running)
        case "complete":
            kubectl.apply(body)
            running.wait_for_phase("Complete")
            delete(running)
    assert_nothing_left(running)
    wait_for("results are gone", lambda: not running.results)


def delete(running: Running) -> None:
    running.kubectl("delete", "tbf", "files", "--wait", f"--timeout={60 * TIMEOUT_FACTOR:.0f}s")


@pytest.mark.timing
def test_trials_lost_with_a_truncated_log_are_read_from_the_seal(site: Site, kubectl: Kubectl) -> None:
    """The log on the node is truncated within a trial while no operator runs. No trial is measured again."""
    running = Running(kubectl)
    with ExitStack() as stopped:
        with site.holding_clients(running, file_transfer(fileSizes=["64Mi"], repetitions=12), trial=2):
            stopped.enter_context(site.without_operator())
        wait_for(
            "the client has ended",
            lambda: running.wait_for_pod("client", running=False)["status"]["phase"] == "Succeeded",
        )
        site.truncate(running, 4)
    running.wait_for_phase("Complete")
    assert_every_trial_once(running, 12)
    (result,) = running.results
    assert result["status"]["counts"]["interruptions"] == 0
    assert {trial.get("collectedBy") for trial in result["status"]["trials"]} >= {"Status"}


@pytest.mark.timing
def test_edited_record_of_a_running_case_is_written_again(site: Site, kubectl: Kubectl) -> None:
    running = Running(kubectl)

    def edit() -> None:
        wait_for("a trial is stored", lambda: running.results and running.results[0].get("status", {}).get("trials"))
        head = {"name": running.results[0]["metadata"]["name"], "namespace": kubectl.namespace}
        body = {"apiVersion": API_VERSION, "kind": "BenchmarkRecord", "metadata": head, "status": {"trials": []}}
        as_operator = kubectl.as_user("system:serviceaccount:tierbench:tierbench")  # other users may not write it
        flags = ("--server-side", "--force-conflicts", "--subresource=status", "--field-manager=other")
        as_operator("apply", *flags, "-f", "-", stdin=json.dumps(body))

    site.strike(running, file_transfer(fileSizes=["128Mi"], repetitions=5), edit, trial=2)
    assert_every_trial_once(running, 5)
    status = running.results[0]["status"]
    assert status["counts"]["retries"] == sum(trial["transfer"].get("retries", 0) for trial in status["trials"])


@pytest.mark.timing
def test_outage_of_the_api_server_beyond_the_lease_loses_no_trial(site: Site, kubectl: Kubectl) -> None:
    running, pod = Running(kubectl), site.release.pod
    pids = site.pids(pod)
    before = programs(pids)

    def lose_api_server() -> None:
        with site.without_api_server():
            wait_for("the operator starts again", lambda: before.isdisjoint(programs(pids)))

    site.strike(running, file_transfer(fileSizes=["64Mi"], repetitions=4), lose_api_server)
    assert_every_trial_once(running, 4)
    kubectl.apply(file_transfer("afterwards"))
    Running(kubectl, "afterwards").wait_for_phase("Complete", seconds=240)
    assert_nothing_left(running)
    assert site.pids(pod) == pids, "its container was restarted"


@pytest.mark.timing
def test_server_node_without_power_fails_only_its_cases(site: Site, kubectl: Kubectl) -> None:
    """The run ends before the node has power again."""
    running = Running(kubectl)
    body = file_transfer(
        servers={"nodeClassNames": ["cloud", "jetson-nano"]},
        fileSizes=["256Mi"],
        timeouts={"schedulingSeconds": 15, "nodeNotReadySeconds": 10},
    )
    with ExitStack() as powerless:
        site.strike(running, body, lambda: powerless.enter_context(site.without_power("jetson-1")))
        measured, failed = running.results
    assert (failed["spec"]["server"]["node"], failed["status"]["reason"]) == ("jetson-1", "NodeNotReady")
    assert measured["status"]["phase"] == "Complete"
    assert running.condition("Complete")["reason"] == "SomeCasesFailed"
    assert_nothing_left(running)
