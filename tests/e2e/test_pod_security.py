"""The operator runs on a tainted control plane. tests/api checks the Pod Security Standards."""

from collections.abc import Iterator

import pytest

from tests.e2e.operator_release import Release

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


@pytest.fixture
def control_plane(release: Release) -> Iterator[str]:
    """A node with the taint that kubeadm sets."""
    (node,) = (item["metadata"]["name"] for item in release.kubectl.list("nodes", "hw=user"))
    release.kubectl("label", "node", node, f"{CONTROL_PLANE}=")
    release.kubectl("taint", "node", node, f"{CONTROL_PLANE}:NoSchedule")
    yield node
    release.kubectl("taint", "node", node, f"{CONTROL_PLANE}-")
    release.kubectl("label", "node", node, f"{CONTROL_PLANE}-")
    release.install()


@pytest.mark.release
def test_the_operator_runs_on_a_tainted_control_plane(release: Release, control_plane: str) -> None:
    release.install("operator.nodeSelector." + CONTROL_PLANE.replace(".", r"\.") + "=")
    pod = release.kubectl.get("pod", release.pod)
    assert pod["spec"]["nodeSelector"].keys() >= {CONTROL_PLANE}
    assert pod["spec"]["nodeName"] == control_plane
