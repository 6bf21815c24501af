"""An upgrade from an earlier version and back, each in mid-run: what is measured is kept, and counts once."""

from collections.abc import Iterator

import pytest

from tests import versions
from tests.cluster import Cluster
from tests.e2e.benchmarks import (
    HARDWARE,
    Running,
    assert_every_trial_once,
    file_transfer,
    node_class,
)
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.operator_release import CHART, IMAGES, Release

pytestmark = [pytest.mark.privileged, pytest.mark.release]

TRIALS = 5
BUILT = ("operator", "client", "nginx")


@pytest.fixture
def earlier(release: Release, cluster: Cluster) -> Iterator[Release]:
    """The same release of the earlier version; its definitions take the place of ours."""
    cluster.load(versions.images(*BUILT))
    release.uninstall()
    chosen = [f"{image}.image=ghcr.io/tierbench/{image}:{versions.VERSION}" for image in BUILT]
    flags = [flag for value in (*chosen, "operator.nodeSelector.hw=user") for flag in ("--set", value)]
    release.helm("install", release.name, str(versions.tree() / "charts" / "tierbench"), "--wait", *flags)
    release.kubectl.apply(*(node_class(name, hw=hardware) for name, hardware in HARDWARE.items()))
    yield release
    release.install()


def upgrade(release: Release) -> None:
    """As docs/operating.md says, with the images that were built here."""
    chosen = [f"{image}.image=ghcr.io/tierbench/{image}:dev" for image in IMAGES]
    flags = [flag for value in ("allNamespaces=true", *chosen) for flag in ("--set", value)]
    release.helm("upgrade", release.name, str(CHART), "--reset-then-reuse-values", "--wait", *flags)


def test_upgrade_and_rollback_in_mid_run(kubectl: Kubectl, earlier: Release) -> None:
    before, after = begin(kubectl, "before"), Running(kubectl, "after")
    upgrade(earlier)
    before.wait_for_phase("Complete")
    assert_every_trial_once(before, TRIALS)
    assert_nothing_left_but_what_ends_with_it(before)
    begin(kubectl, after.name)
    earlier.helm("rollback", earlier.name, "1", "--wait")
    assert_every_trial_once(before, TRIALS)
    upgrade(earlier)  # the earlier version may wait for ever for what it does not know
    after.wait_for_phase("Complete")
    assert_every_trial_once(after, TRIALS)
    assert_every_trial_once(before, TRIALS)


def begin(kubectl: Kubectl, name: str) -> Running:
    """A benchmark of which a trial is measured."""
    kubectl.apply(file_transfer(name, fileSizes=["64Mi", "128Mi"], repetitions=TRIALS))
    running = Running(kubectl, name)
    running.wait_for_trial(2)
    return running


def assert_nothing_left_but_what_ends_with_it(running: Running) -> None:
    """What the earlier version made, and this one does not know of, goes with the benchmark."""
    kept = ("configmaps/", "secrets/")
    wait_for("what runs is gone", lambda: all(left.startswith(kept) for left in running.leftovers()))
