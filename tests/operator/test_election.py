"""With two replicas, the standby continues when the leader is gone. No trial is lost or counted twice."""

from collections.abc import Iterator

import pytest

from tests.e2e.benchmarks import Running, assert_every_trial_once, assert_nothing_left, file_transfer
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.operator_release import Release
from tests.operator.site import Site, programs

pytestmark = pytest.mark.timing
BODY = file_transfer(fileSizes=["128Mi"], repetitions=5)


@pytest.fixture(scope="module", autouse=True)
def replicas(site: Site) -> Iterator[None]:
    """A leader, and an operator on standby."""
    site.scale(2)
    yield
    site.scale(1)


@pytest.fixture(autouse=True)
def both_ready(site: Site, replicas: None) -> None:
    """Waits until the operator that the previous test ended is on standby again."""
    site.wait_for_operators(2)
    wait_for("a leader", lambda: site.release.leader)


def wait_for_another(release: Release, before: str) -> str:
    """Waits until another pod leads, and returns its name."""
    return wait_for("another pod leads", lambda: leader if (leader := release.leader) not in {"", before} else None)


def test_standby_takes_over_when_the_leader_is_killed(site: Site, kubectl: Kubectl) -> None:
    release, running = site.release, Running(kubectl)

    def kill() -> None:
        leader = release.leader
        site.kill_and_delete(leader)
        wait_for_another(release, leader)

    site.strike(running, BODY, kill, trial=2)
    assert_every_trial_once(running, 5)
    assert_nothing_left(running)


def test_standby_takes_over_when_the_leader_is_terminated(site: Site, kubectl: Kubectl) -> None:
    """The leader releases the Lease, as when its node is drained."""
    release, running = site.release, Running(kubectl)

    def end() -> None:
        leader = release.leader
        release.kubectl("delete", "pod", leader, "--wait=false")
        wait_for_another(release, leader)

    site.strike(running, BODY, end, trial=2)
    assert_every_trial_once(running, 5)


def test_former_leaders_write_nothing_after_a_pause_or_a_partition(site: Site, kubectl: Kubectl) -> None:
    """Each former leader restarts when it notices that another one leads. Its requests never arrive."""
    release, running = site.release, Running(kubectl)

    def replace_leader_twice() -> None:
        first = release.leader
        pids = site.pids(first)
        before = programs(pids)
        with site.stopped(first):
            second = wait_for_another(release, first)
        wait_for("the first starts again", lambda: before.isdisjoint(programs(pids)))
        pids = site.pids(second)
        before = programs(pids)
        with site.cut_off(second):
            wait_for_another(release, second)
            wait_for("the second starts again", lambda: before.isdisjoint(programs(pids)))

    site.strike(running, BODY, replace_leader_twice, trial=2)
    assert_every_trial_once(running, 5)
    assert_nothing_left(running)
