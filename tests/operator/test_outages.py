"""Trials are measured correctly on a node with outages and a wrong clock. On real nodes: tests/e2e/test_edge.py."""

from datetime import timedelta

import pytest

from tests.e2e.benchmarks import Running, assert_nothing_left, file_transfer
from tests.e2e.kubectl import wait_for
from tests.operator.scripted import Scripted

pytestmark = pytest.mark.apiserver
NODE = "jetson-1"


@pytest.mark.timing
def test_trial_interrupted_by_an_outage_is_measured_again(scripted_site: Scripted) -> None:
    """The operator is killed during the outage. The clock of the node is an hour late."""
    site = scripted_site
    with site.namespace("outage") as kubectl, site.clock_ahead(NODE, timedelta(hours=-1)):
        running = Running(kubectl)
        body = file_transfer(clients={"nodeClassNames": ["jetson-nano"]})
        with site.taking(running, lambda _: 1800 * 10**9), site.held(running, 2) as hold:
            kubectl.apply(body)
            wait_for("a trial", lambda: hold.at, 120)
            wait_for("the first trial", lambda: running.results and running.results[0]["status"].get("trials"))
            with site.away(NODE):
                wait_for("the outage", lambda: running.status["run"].get("outages"))
                site.kill()
                site.release.ready()
            wait_for("the end of the outage", lambda: running.status["run"]["outages"][0].get("endTime"))
        running.wait_for_phase("Complete")
        (result,) = running.results
        trials = result["status"]["trials"]
        interrupted = {
            (one["trial"], one.get("attempt", 1)): one["failure"] for one in trials if one.get("interrupted")
        }
        assert [one["trial"] for one in trials if not one.get("interrupted")] == [1, 2, 3]
        assert interrupted[2, 1]["reason"] == "Interrupted"
        assert f"Node {NODE} was not Ready" in interrupted[2, 1]["message"]
        assert result["status"]["counts"]["completed"] == 3
        assert_nothing_left(running)
