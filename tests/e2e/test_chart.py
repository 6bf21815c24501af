"""The chart is upgraded and removed during a run, and rendered without Helm's access to the cluster."""

from typing import Any

import pytest

from tests.cluster import Cluster
from tests.e2e.benchmarks import (
    HARDWARE,
    Running,
    assert_every_trial_once,
    assert_nothing_left,
    file_transfer,
    node_class,
)
from tests.e2e.kubectl import Kubectl, KubectlError, wait_for
from tests.e2e.operator_release import Release
from tests.e2e.strike import SLOW, open_trials

LONG_TRIALS: dict[str, Any] = {"fileSizes": ["128Mi"], "repetitions": 2}
"""Trials that take minutes on a slow link."""


@pytest.mark.timing
def test_upgrade_during_a_run_interrupts_no_trial(kubectl: Kubectl, cluster: Cluster, release: Release) -> None:
    with cluster.link("cloud-1", SLOW):
        kubectl.apply(file_transfer(**LONG_TRIALS))
        running = Running(kubectl)
        running.wait_for_trial()
        trials, before = open_trials(running, cluster), release.pod
        release.install("logLevel=debug")
        assert trials == open_trials(running, cluster) != set()
    try:
        assert release.pod != before
        running.wait_for_phase("Complete")
        assert_every_trial_once(running, 2)
        assert running.results[0]["status"]["counts"]["interruptions"] == 0
        assert_nothing_left(running)
    finally:
        release.install()


@pytest.mark.timing
def test_run_continues_after_the_chart_is_removed_and_installed_again(
    kubectl: Kubectl, cluster: Cluster, release: Release
) -> None:
    """The objects remain with their definitions. The next release continues with the open trial."""
    with cluster.link("cloud-1", SLOW):
        kubectl.apply(file_transfer(**LONG_TRIALS))
        running = Running(kubectl)
        running.wait_for_trial()
        trials = open_trials(running, cluster)
        release.uninstall()
        try:
            assert running.status["phase"] == "Running"
        finally:
            release.install()
        assert trials == open_trials(running, cluster) != set()
    running.wait_for_phase("Complete")
    assert_every_trial_once(running, 2)
    assert running.results[0]["status"]["counts"]["interruptions"] == 0
    assert_nothing_left(running)


@pytest.mark.release
def test_chart_is_removed_with_its_definitions_during_a_run(kubectl: Kubectl, release: Release) -> None:
    """The chart's hook makes the operator remove all finalizers, so that the definitions can be deleted."""
    release.install("crds.keep=false")
    kubectl.apply(file_transfer(fileSizes=["64Mi", "128Mi"], repetitions=30))
    Running(kubectl).wait_for_pod("client")
    release.uninstall()
    try:
        wait_for("no definition is left", lambda: "tierbench.io" not in kubectl("get", "crd", "-o", "name"))
        assert kubectl.list("pods") == []
    finally:
        release.install()
        kubectl.apply(*(node_class(name, hw=hardware) for name, hardware in HARDWARE.items()))


@pytest.mark.release
def test_release_of_a_gitops_tool_waits_for_the_running_operator(kubectl: Kubectl, release: Release) -> None:
    """GitOps tools render the chart without `lookup`, and apply it repeatedly."""
    own = kubectl.inside(f"{kubectl.namespace}-operator")
    other = Release("gitops", own)
    manifests = other.template("crds.enabled=false", "leases.create=false", f"watchNamespaces={{{kubectl.namespace}}}")
    everywhere, elsewhere = kubectl.inside(""), kubectl.inside(f"{kubectl.namespace}-b")
    deployment = "deployment/gitops-tierbench"

    def warns() -> bool:
        try:
            return "Another operator watches the same namespaces: release tierbench/tierbench" in own(
                "logs", deployment
            )
        except KubectlError:  # the container does not run yet
            return False

    elsewhere.create_namespace()
    own.create_namespace()
    everywhere("apply", "-f", "-", stdin=manifests)
    try:
        wait_for("the second operator warns of the first", warns)
        assert own.get("deployment", "gitops-tierbench")["status"].get("readyReplicas", 0) == 0
        release.install(f"watchNamespaces={{{elsewhere.namespace}}}")
        own("rollout", "status", deployment, "--timeout=90s")
        release.test()
        everywhere("apply", "-f", "-", stdin=manifests)
        assert everywhere("diff", "-f", "-", stdin=manifests) == ""
        kubectl.apply(file_transfer())
        running = Running(kubectl)
        running.wait_for_phase("Complete")
        assert_every_trial_once(running)
        kubectl("delete", "tbf", "--all", "--wait")
    finally:
        everywhere("delete", "-f", "-", "--ignore-not-found", "--wait", stdin=manifests)
        for space in (elsewhere, own):
            space("delete", "namespace", space.namespace, "--wait=false")
        release.install()
