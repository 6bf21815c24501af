"""Trials are stored and counted once when the operator is upgraded, or rolled back, during a run."""

from collections.abc import Iterator

import pytest

from tests import versions
from tests.e2e.benchmarks import HARDWARE, Running, assert_every_trial_once, file_transfer, node_class
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.operator_release import CHART, Release
from tests.operator.site import Json, Site

TRIALS = 5
EARLIER_IMAGES = ("operator", "client", "nginx")


@pytest.fixture
def earlier(site: Site) -> Iterator[Release]:
    """Replaces the release and its definitions by those of the earlier version."""
    release = site.release
    site.load_earlier_images()
    release.uninstall()
    chosen = [f"{image}.image=ghcr.io/tierbench/{image}:{versions.VERSION}" for image in EARLIER_IMAGES]
    flags = [flag for value in (*chosen, "operator.nodeSelector.hw=user") for flag in ("--set", value)]
    release.helm("install", release.name, str(versions.tree() / "charts" / "tierbench"), "--wait", *flags)
    release.kubectl.apply(*(node_class(name, hw=hardware) for name, hardware in HARDWARE.items()))
    yield release
    release.install()


def upgrade(release: Release) -> None:
    """Upgrades as docs/how-to/upgrade.md describes."""
    unset = [flag for image in EARLIER_IMAGES for flag in ("--set-json", f"{image}.image={{}}")]
    flags = ["--reset-then-reuse-values", "--wait", "--set", "allNamespaces=true", *unset]
    release.helm("upgrade", release.name, str(CHART), *flags)


@pytest.mark.timing
def test_upgrade_and_rollback_during_a_run(site: Site, earlier: Release, kubectl: Kubectl) -> None:
    before, after = Running(kubectl, "before"), Running(kubectl, "after")
    with site.holding_clients(before, body(before.name), trial=2):
        upgrade(earlier)
    before.wait_for_phase("Complete")
    assert_every_trial_once(before, TRIALS)
    assert_only_owned_objects_left(before)
    with site.holding_clients(after, body(after.name), trial=2):
        earlier.helm("rollback", earlier.name, "1", "--wait")
        assert_every_trial_once(before, TRIALS)
        upgrade(earlier)  # the earlier version may wait forever for objects that it does not know
    after.wait_for_phase("Complete")
    assert_every_trial_once(after, TRIALS)
    assert_every_trial_once(before, TRIALS)


def body(name: str) -> Json:
    """Returns a benchmark of two cases that both versions measure."""
    return file_transfer(name, fileSizes=["64Mi", "128Mi"], repetitions=TRIALS)


def assert_only_owned_objects_left(running: Running) -> None:
    """Objects of the earlier version that this version does not know are deleted with the benchmark."""
    kept = ("configmaps/", "secrets/")
    wait_for("pods, Jobs and Services are gone", lambda: all(left.startswith(kept) for left in running.leftovers()))
