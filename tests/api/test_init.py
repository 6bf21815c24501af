"""`kubectl tierbench init` prints or creates objects for the nodes of a real API server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.api.server import ApiServer, RefusedError
from tests.unit.cli.test_examples import EXAMPLES
from tierbench.cli.cluster import ANNOTATION
from tierbench.cli.main import main

pytestmark = pytest.mark.apiserver

ARCHITECTURES = {"server-1": "amd64", "server-2": "amd64", "pi-1": "arm64", "control-plane": "riscv64"}
TAINT = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
NAMESPACE = "/api/v1/namespaces/leases"
OURS = "/apis/tierbench.io/v1alpha1"
BENCHMARKS = f"{OURS}/namespaces/leases/filetransferbenchmarks"
EXAMPLE = (EXAMPLES / "quick-start" / "benchmark.yaml").read_text()


@pytest.fixture
def nodes(server: ApiServer) -> Iterator[ApiServer]:
    """An API server with two amd64 nodes, one arm64 node, and a tainted node."""
    for name, architecture in ARCHITECTURES.items():
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/arch": architecture}
        spec = {"taints": [TAINT]} if name == "control-plane" else {}
        server.request("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}, "spec": spec})
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        status = {"conditions": [ready], "capacity": {"cpu": "4", "memory": "8Gi"}}
        patch = {"Content-Type": "application/merge-patch+json"}
        server.request("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, patch)
    untaint(server)
    yield server
    for name in ARCHITECTURES:
        server.request("DELETE", f"/api/v1/nodes/{name}")
    for name in ("amd64", "arm64"):
        try:
            server.request("DELETE", f"{OURS}/nodeclasses/{name}")
        except RefusedError:
            continue
    server.request("DELETE", BENCHMARKS)


def untaint(server: ApiServer) -> None:
    """Removes the taint of new nodes, because the controller that does it does not run in these tests."""
    for name in ARCHITECTURES:
        taints = [TAINT] if name == "control-plane" else []
        patch = {"Content-Type": "application/merge-patch+json"}
        server.request("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": taints}}, patch)


def init(server: ApiServer, *flags: str, kubeconfig: Path | None = None) -> int:
    return main(["init", "--kubeconfig", str(kubeconfig or server.kubeconfig), "--namespace", "leases", *flags])


def test_init_prints_the_example_for_a_small_mixed_cluster(
    nodes: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(nodes) == 0
    assert capsys.readouterr().out == EXAMPLE


def test_apply_creates_the_objects_only_once(nodes: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(nodes, "--apply") == 0
    assert "kubectl tierbench watch quick-start --namespace leases" in capsys.readouterr().out
    wanted = {body["metadata"]["name"]: body for body in yaml.safe_load_all(EXAMPLE)}
    created = nodes.request("GET", f"{BENCHMARKS}/quick-start")
    assert created["spec"]["fileSizes"] == wanted["quick-start"]["spec"]["fileSizes"]
    kept = nodes.request("GET", f"{OURS}/nodeclasses/arm64")["spec"]["nodeSelector"]["matchLabels"]
    assert kept == wanted["arm64"]["spec"]["nodeSelector"]["matchLabels"]
    assert init(nodes, "--apply") == 2
    assert "benchmark quick-start exists in namespace leases" in capsys.readouterr().err


def test_init_warns_of_a_namespace_that_no_operator_watches(
    nodes: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    metadata = {"name": "tierbench:tierbench", "annotations": {ANNOTATION: "team-a,team-b"}}
    nodes.request("POST", roles, {"metadata": metadata, "rules": []})
    assert init(nodes) == 0
    printed = capsys.readouterr()
    assert printed.out == EXAMPLE
    assert "Warning: The operator does not watch namespace leases, only team-a, team-b" in printed.err
    nodes.request("DELETE", f"{roles}/tierbench:tierbench")


def test_init_does_not_change_a_class_with_another_selector(
    nodes: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    other = {"nodeSelector": {"matchLabels": {"hw": "cloud"}}}
    body = {"apiVersion": "tierbench.io/v1alpha1", "kind": "NodeClass", "metadata": {"name": "amd64"}, "spec": other}
    before = nodes.request("POST", f"{OURS}/nodeclasses", body)
    assert init(nodes, "--apply") == 2
    assert "NodeClass amd64 exists with another selector" in capsys.readouterr().err
    assert nodes.request("GET", f"{OURS}/nodeclasses/amd64")["spec"] == before["spec"]


def test_init_without_permissions_names_the_missing_ones(
    nodes: ApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes.request("POST", f"{NAMESPACE}/serviceaccounts", {"metadata": {"name": "visitor"}})
    token = nodes.request("POST", f"{NAMESPACE}/serviceaccounts/visitor/token", {"spec": {}})["status"]["token"]
    kubeconfig: dict[str, Any] = json.loads(nodes.kubeconfig.read_text())
    kubeconfig["users"][0]["user"] = {"token": token}
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(kubeconfig))
    assert init(nodes, kubeconfig=path) == 2
    assert "you may list neither nodes nor node classes" in capsys.readouterr().err
