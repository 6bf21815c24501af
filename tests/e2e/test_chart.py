"""Upgrade and removal of the chart while a benchmark runs."""

from tests.e2e.benchmarks import Running, assert_every_trial_once, assert_nothing_left, file_transfer
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.operator_release import Release


def test_upgrade_in_mid_run(kubectl: Kubectl, release: Release) -> None:
    kubectl.apply(file_transfer(fileSizes=["64Mi", "128Mi"], repetitions=5))
    running = Running(kubectl)
    running.wait_for_pod("client")
    before = release.pod
    release.install("logLevel=debug")
    try:
        wait_for("another operator pod", lambda: release.pod != before)
        running.wait_for_phase("Complete")
        assert_every_trial_once(running, 5)
        assert_nothing_left(running)
    finally:
        release.install()


def test_removed_and_installed_again_in_mid_run(kubectl: Kubectl, release: Release) -> None:
    """The objects stay with their definitions, and the next release goes on with the next trial."""
    kubectl.apply(file_transfer(fileSizes=["64Mi", "128Mi"], repetitions=5))
    running = Running(kubectl)
    running.wait_for_pod("client")
    release.uninstall()
    try:
        assert running.status["phase"] == "Running"
    finally:
        release.install()
    running.wait_for_phase("Complete")
    assert_every_trial_once(running, 5)
    assert_nothing_left(running)
