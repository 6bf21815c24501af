"""An upgrade from an earlier version and back, each in mid-run: what is measured is kept, and counts once."""

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
    """The same release of the earlier version; its definitions take the place of ours."""
    release = site.release
    site.bring_earlier_images()
    release.uninstall()
    chosen = [f"{image}.image=ghcr.io/tierbench/{image}:{versions.VERSION}" for image in EARLIER_IMAGES]
    flags = [flag for value in (*chosen, "operator.nodeSelector.hw=user") for flag in ("--set", value)]
    release.helm("install", release.name, str(versions.tree() / "charts" / "tierbench"), "--wait", *flags)
    release.kubectl.apply(*(node_class(name, hw=hardware) for name, hardware in HARDWARE.items()))
    yield release
    release.install()


def upgrade(release: Release) -> None:
    """As docs/operating.md says."""
    forgotten = [flag for image in EARLIER_IMAGES for flag in ("--set-json", f"{image}.image={{}}")]
    flags = ["--reset-then-reuse-values", "--wait", "--set", "allNamespaces=true", *forgotten]
    release.helm("upgrade", release.name, str(CHART), *flags)


@pytest.mark.timing
def test_upgrade_and_rollback_in_mid_run(site: Site, earlier: Release, kubectl: Kubectl) -> None:
    before, after = Running(kubectl, "before"), Running(kubectl, "after")
    with site.standing(before, body(before.name), trial=2):
        upgrade(earlier)
    before.wait_for_phase("Complete")
    assert_every_trial_once(before, TRIALS)
    assert_nothing_left_but_what_ends_with_it(before)
    with site.standing(after, body(after.name), trial=2):
        earlier.helm("rollback", earlier.name, "1", "--wait")
        assert_every_trial_once(before, TRIALS)
        upgrade(earlier)  # the earlier version may wait for ever for what it does not know
    after.wait_for_phase("Complete")
    assert_every_trial_once(after, TRIALS)
    assert_every_trial_once(before, TRIALS)


def body(name: str) -> Json:
    """Two cases that both versions measure."""
    return file_transfer(name, fileSizes=["64Mi", "128Mi"], repetitions=TRIALS)


def assert_nothing_left_but_what_ends_with_it(running: Running) -> None:
    """What the earlier version made, and this one does not know of, goes with the benchmark."""
    kept = ("configmaps/", "secrets/")
    wait_for("what runs is gone", lambda: all(left.startswith(kept) for left in running.leftovers()))
