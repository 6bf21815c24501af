"""`make demo CLUSTER=current` and `make demo-down` run the demo on a user's cluster."""

import subprocess
from pathlib import Path

import pytest

from tests.e2e.benchmarks import HARDWARE, node_class
from tests.e2e.kubectl import Kubectl
from tests.e2e.operator_release import Release

ROOT = Path(__file__).parents[2]
SECONDS = 900  # to catch a hang


def run_demo(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the demo as `make` does, without a terminal."""
    command = [str(ROOT / "tools" / "demo-current"), *arguments]
    return subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.release
def test_demo_measures_the_current_cluster_and_is_removed(release: Release, environment: dict[str, str]) -> None:
    kubectl, agreed = Kubectl(environment), environment | {"YES": "1"}
    refused = run_demo(agreed, "up", "test-demo")
    assert "belong to the Helm release tierbench/tierbench" in refused.stdout
    assert refused.returncode == 1
    release.install("crds.keep=false")
    release.uninstall()
    kubectl("delete", "namespace", "tierbench", "--wait")
    before = set(kubectl("get", "namespaces", "-o", "name").split())
    try:
        asked = run_demo(environment, "up", "test-demo")
        assert "There is no terminal to ask on" in asked.stdout
        assert set(kubectl("get", "namespaces", "-o", "name").split()) == before

        without = run_demo(agreed | {"REGISTRY": "127.0.0.1:1/none"}, "up", "test-demo")
        assert "An image cannot be pulled: 127.0.0.1:1/none/tierbench/operator" in without.stdout
        assert "make push REGISTRY=" in without.stdout
        assert without.returncode == 1

        shown = run_demo(agreed, "up", "test-demo")
        assert shown.returncode == 0, shown.stdout
        assert "Complete: 4 of 4 cases measured." in shown.stdout
        assert "Node classes by the label hw" in shown.stdout
        assert (ROOT / "build" / "test-demo" / "report.html").exists()

        removed = run_demo(agreed, "down")
        assert removed.returncode == 0, removed.stdout
        assert "tierbench.io" not in kubectl("get", "crd", "-o", "name")
        assert set(kubectl("get", "namespaces", "-o", "name").split()) == before
    finally:
        release.install()
        kubectl.apply(*(node_class(name, hw=hardware) for name, hardware in HARDWARE.items()))
