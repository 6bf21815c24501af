"""Two replicas: when the leader is gone, the other continues, and no trial is lost or counted twice."""

from collections.abc import Iterator

import pytest

from tests.cluster.processes import Process
from tests.e2e.benchmarks import Running, assert_every_trial_once, assert_nothing_left, file_transfer
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.operator_release import Release
from tests.operator.site import Site

pytestmark = pytest.mark.timing
BODY = file_transfer(fileSizes=["128Mi"], repetitions=5)


@pytest.fixture(scope="module", autouse=True)
def replicas(site: Site) -> Iterator[None]:
    """A leader, and one that stands by."""
    site.scale(2)
    yield
    site.scale(1)


@pytest.fixture(autouse=True)
def both_ready(site: Site, replicas: None) -> None:
    """What the test before has ended stands by again."""
    site.wait_for_operators(2)
    wait_for("a leader", lambda: site.release.leader)


def wait_for_another(release: Release, before: str) -> str:
    """The pod that leads in place of another."""
    return wait_for("another leads", lambda: leader if (leader := release.leader) not in {"", before} else None)


def test_another_leads_when_the_leader_was_killed(site: Site, kubectl: Kubectl) -> None:
    release, running = site.release, Running(kubectl)

    def kill() -> None:
        leader = release.leader
        site.lose(leader)
        wait_for_another(release, leader)

    site.strike(running, BODY, kill, trial=2)
    assert_every_trial_once(running, 5)
    assert_nothing_left(running)


def test_another_leads_when_the_leader_was_asked_to_end(site: Site, kubectl: Kubectl) -> None:
    """As in a drain of its node: it gives the Lease away."""
    release, running = site.release, Running(kubectl)

    def end() -> None:
        leader = release.leader
        release.kubectl("delete", "pod", leader, "--wait=false")
        wait_for_another(release, leader)

    site.strike(running, BODY, end, trial=2)
    assert_every_trial_once(running, 5)


def test_leader_stopped_and_continued_and_another_cut_off_write_no_more(site: Site, kubectl: Kubectl) -> None:
    """Each is deposed meanwhile, and ends as soon as it can see that; what it had sent does not arrive later."""
    release, running = site.release, Running(kubectl)

    def depose() -> None:
        first = release.leader
        leaders = [Process(pid) for pid in site.pids(first)]
        with site.stopped(first):
            second = wait_for_another(release, first)
        wait_for("the first has ended", lambda: not any(leader.alive for leader in leaders))
        leaders = [Process(pid) for pid in site.pids(second)]
        with site.cut_off(second):
            wait_for_another(release, second)
            wait_for("the second has ended", lambda: not any(leader.alive for leader in leaders))

    site.strike(running, BODY, depose, trial=2)
    assert_every_trial_once(running, 5)
    assert_nothing_left(running)
