"""Two benchmarks never measure on one node at once: in one release, and across two."""

import secrets

import pytest

from tests.cluster import Cluster
from tests.e2e.benchmarks import Running, assert_every_trial_once, file_transfer
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.operator_release import Release


def _spans(running: Running) -> list[tuple[str, str]]:
    """First and last moment of each case, as the clients say."""
    trials = [result["status"]["trials"] for result in running.results]
    return [(case[0]["startTime"], case[-1]["startTime"]) for case in trials]


def _never_together(one: Running, other: Running) -> None:
    for begin, end in _spans(one):
        for other_begin, other_end in _spans(other):
            assert end < other_begin or other_end < begin, "both measured at once"


def test_the_second_waits_and_says_for_whom(kubectl: Kubectl) -> None:
    kubectl.apply(file_transfer("first", fileSizes=["64Mi"], repetitions=5))
    first, second = Running(kubectl, "first"), Running(kubectl, "second")
    first.wait_for_pod("server", running=False)
    kubectl.apply(file_transfer("second", fileSizes=["64Mi"], repetitions=5))
    second.wait_for_phase("Queued")
    assert f"{kubectl.namespace}/first" in second.condition("Queued")["message"]
    first.wait_for_phase("Complete")
    second.wait_for_phase("Complete")
    assert_every_trial_once(first, 5)
    assert_every_trial_once(second, 5)
    _never_together(first, second)


def test_two_releases_in_two_namespaces_share_the_nodes(
    environment: dict[str, str], release: Release, cluster: Cluster
) -> None:
    """Each release watches its own namespace; the Leases are shared."""
    mark = secrets.token_hex(3)
    spaces = [Kubectl(environment, f"t-left-{mark}"), Kubectl(environment, f"t-right-{mark}")]
    releases = [
        Release(f"tb-{space.namespace}", Kubectl(environment, f"{space.namespace}-operator")) for space in spaces
    ]
    elsewhere = Kubectl(environment, f"t-elsewhere-{mark}")
    for space in (*spaces, elsewhere):
        space.create_namespace()
    release.install(f"watchNamespaces={{{elsewhere.namespace}}}")
    try:
        for space, one in zip(spaces, releases, strict=True):
            one.install("crds.install=false", f"watchNamespaces={{{space.namespace}}}")
        for space in spaces:
            space.apply(file_transfer(fileSizes=["64Mi"], repetitions=5))
        left, right = (Running(space) for space in spaces)
        wait_for("one is queued", lambda: "Queued" in {left.status.get("phase"), right.status.get("phase")}, 30)
        for running in (left, right):
            running.wait_for_phase("Complete")
            assert_every_trial_once(running, 5)
        _never_together(left, right)
    finally:
        for space, one in zip(spaces, releases, strict=True):
            space("delete", "ftb", "--all", "--wait")
            one.uninstall()
            space("delete", "namespace", space.namespace, one.kubectl.namespace, "--wait=false")
        release.install()
        elsewhere("delete", "namespace", elsewhere.namespace, "--wait=false")


@pytest.fixture(autouse=True)
def _needs_release(release: Release) -> None:
    """These tests look at Leases of the shared namespace."""
