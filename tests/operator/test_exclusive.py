"""Two benchmarks never measure on one node at the same time, in one release or in two."""

import secrets

import pytest

from tests.e2e.benchmarks import Running, assert_every_trial_once, file_transfer
from tests.e2e.kubectl import Kubectl
from tests.e2e.operator_release import Release
from tests.operator.site import Site


def _spans(running: Running) -> list[tuple[str, str]]:
    """Returns the start of the first and of the last trial of each case, by the clients' clocks."""
    trials = [result["status"]["trials"] for result in running.results]
    return [(case[0]["startTime"], case[-1]["startTime"]) for case in trials]


def _assert_not_simultaneous(one: Running, other: Running) -> None:
    for begin, end in _spans(one):
        for other_begin, other_end in _spans(other):
            assert end < other_begin or other_end < begin, "both measured at the same time"


def _assert_second_waits(site: Site, first: Running, second: Running, holder: str) -> None:
    """Asserts that the second is queued while the first measures, and names the holder. Then both are measured."""
    sizes, repetitions = ["64Mi"], 5
    with site.holding_clients(first, file_transfer(first.name, fileSizes=sizes, repetitions=repetitions)):
        second.kubectl.apply(file_transfer(second.name, fileSizes=sizes, repetitions=repetitions))
        second.wait_for_phase("Queued")
        assert holder in second.condition("Queued")["message"]
        assert not second.kubectl.list("pods", f"tierbench.io/benchmark={second.name}")
    for running in (first, second):
        running.wait_for_phase("Complete")
        assert_every_trial_once(running, repetitions)
    _assert_not_simultaneous(first, second)


@pytest.mark.timing
def test_second_benchmark_waits_and_names_the_first_one(site: Site, kubectl: Kubectl) -> None:
    _assert_second_waits(site, Running(kubectl, "first"), Running(kubectl, "second"), f"{kubectl.namespace}/first")


@pytest.mark.timing
def test_two_releases_in_two_namespaces_share_the_nodes(site: Site, kubectl: Kubectl) -> None:
    """Each release watches its own namespace. Both use the same Leases for nodes."""
    suffix = secrets.token_hex(3)
    elsewhere = site.kubectl(f"t-elsewhere-{suffix}")
    other = Release(f"tb-{suffix}", site.kubectl(f"t-operator-{suffix}"))
    elsewhere.create_namespace()
    site.release.install(f"watchNamespaces={{{kubectl.namespace}}}")
    try:
        other.install("crds.enabled=false", f"watchNamespaces={{{elsewhere.namespace}}}")
        _assert_second_waits(site, Running(kubectl), Running(elsewhere), "a benchmark of another namespace")
    finally:
        elsewhere("delete", "tbf", "--all", "--wait")
        other.uninstall()
        site.release.install()
        for space in (elsewhere, other.kubectl):
            space("delete", "namespace", space.namespace, "--wait=false")
