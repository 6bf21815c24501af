"""Volumes of class local-test are bound on the pod's node. When their claim is gone, they can be recycled."""

import json
from typing import Any

import pytest

from tests.cluster import Cluster, volumes
from tests.cluster.conftest import NGINX, Probe, apply
from tests.cluster.processes import wait
from tests.timeouts import TIMEOUT_FACTOR

pytestmark = pytest.mark.release


def test_released_volume_is_emptied_and_becomes_available(cluster: Cluster, probes: dict[str, Probe]) -> None:
    probe = probes["cloud-1"]
    apply(cluster, probe.namespace, _claim(), _pod())
    succeeded = "--for=jsonpath={.status.phase}=Succeeded"
    probe.kubectl("wait", "pod", "claimant", succeeded, f"--timeout={60 * TIMEOUT_FACTOR:.0f}s")
    name = probe.kubectl("get", "persistentvolumeclaim", "claim", "-o", "jsonpath={.spec.volumeName}")
    path = json.loads(cluster.kubectl("get", "persistentvolume", name, "-o", "json"))["spec"]["local"]["path"]
    machine = cluster.node("user-1").machine
    assert name.startswith("user-1-")
    assert machine.output("ls", path) == "kept\n"
    probe.kubectl("delete", "pod/claimant", "persistentvolumeclaim/claim")
    wait(lambda: _phase(cluster, name) == "Released", f"release of {name}", 20)
    volumes.recycle(cluster)
    wait(lambda: _phase(cluster, name) == "Available", f"{name} to be available", 20)
    assert machine.output("ls", path) == ""


def _phase(cluster: Cluster, name: str) -> str:
    return cluster.kubectl("get", "persistentvolume", name, "-o", "jsonpath={.status.phase}")


def _claim() -> dict[str, Any]:
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": volumes.CLASS, "resources": resources}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "claim"}, "spec": spec}


def _pod() -> dict[str, Any]:
    container = {
        "name": "shell",
        "image": NGINX,
        "command": ["touch", "/volume/kept"],
        "securityContext": {"runAsUser": 65532},
        "volumeMounts": [{"name": "volume", "mountPath": "/volume"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "claimant"},
        "spec": {
            "nodeSelector": {"hw": "user"},
            "restartPolicy": "Never",
            "securityContext": {"fsGroup": 65532},
            "containers": [container],
            "volumes": [{"name": "volume", "persistentVolumeClaim": {"claimName": "claim"}}],
        },
    }
