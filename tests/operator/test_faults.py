"""Faults on purpose: nothing is counted twice, nothing measured is lost, nothing is left behind."""

from typing import Any

import pytest

from tests.e2e.benchmarks import Running, assert_every_trial_once, assert_nothing_left, file_transfer
from tests.e2e.kubectl import Kubectl, wait_for
from tests.operator.site import Site
from tests.patience import PATIENCE

TWO_CASES: dict[str, Any] = {"fileSizes": ["1Mi", "64Mi"], "repetitions": 2}


@pytest.mark.timing
def test_operator_killed_at_each_step_measures_every_trial_once(site: Site, kubectl: Kubectl) -> None:
    """Before the server, while it starts, in each trial, at the end."""
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
def test_deleted_at_any_time_leaves_nothing(site: Site, kubectl: Kubectl, moment: str) -> None:
    running, body = Running(kubectl), file_transfer(fileSizes=["64Mi"], repetitions=10)
    match moment:
        case "at once":
            kubectl.apply(body)
            delete(running)
        case "server starting":
            with site.starting(running, body):
                delete(running)
        case "client running":
            with site.standing(running, body):
                delete(running)
        case "complete":
            kubectl.apply(body)
            running.wait_for_phase("Complete")
            delete(running)
    assert_nothing_left(running)
    wait_for("results are gone", lambda: not running.results)


def delete(running: Running) -> None:
    running.kubectl("delete", "ftb", "files", "--wait", f"--timeout={60 * PATIENCE:.0f}s")
