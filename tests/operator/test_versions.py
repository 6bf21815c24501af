"""Trials are stored and counted once when the operator is upgraded or rolled back during a run."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.benchmarks import HARDWARE, Running, assert_every_trial_once, file_transfer, node_class
from tests.e2e.kubectl import Kubectl
from tests.e2e.operator_release import CHART, Release
from tests.operator.site import Json, Site

TRIALS = 5


@pytest.fixture
def earlier(site: Site, tmp_path: Path) -> Iterator[Release]:
    """Replaces the release with one whose chart has a lower version."""
    chart = tmp_path / "tierbench"
    shutil.copytree(CHART, chart)
    head = yaml.safe_load((chart / "Chart.yaml").read_text())
    (chart / "Chart.yaml").write_text(yaml.safe_dump({**head, "version": "0.0.1"}))
    site.release.uninstall()
    site.release.install(chart=chart)
    site.release.kubectl.apply(*(node_class(name, hw=hardware) for name, hardware in HARDWARE.items()))
    yield site.release
    site.release.install()


def upgrade(release: Release) -> None:
    """Upgrades as the documentation describes, with new pods."""
    restart = ("--set", "operator.podAnnotations.upgraded=yes")
    release.helm("upgrade", release.name, str(CHART), "--reset-then-reuse-values", "--wait", *restart)


@pytest.mark.release
@pytest.mark.timing
def test_upgrade_and_rollback_during_a_run_lose_no_trial(site: Site, earlier: Release, kubectl: Kubectl) -> None:
    before, after = Running(kubectl, "before"), Running(kubectl, "after")
    first = earlier.pod
    with site.holding_clients(before, body(before.name), trial=2):
        upgrade(earlier)
        assert earlier.pod != first
    before.wait_for_phase("Complete")
    assert_every_trial_once(before, TRIALS)
    with site.holding_clients(after, body(after.name), trial=2):
        second = earlier.pod
        earlier.helm("rollback", earlier.name, "1", "--wait")
        assert earlier.pod != second
    after.wait_for_phase("Complete")
    assert_every_trial_once(after, TRIALS)
    assert_every_trial_once(before, TRIALS)


def body(name: str) -> Json:
    """Returns a benchmark with two cases."""
    return file_transfer(name, fileSizes=["64Mi", "128Mi"], repetitions=TRIALS)
