"""Provides the built-in cluster, and a pod on each node in which tests run programs."""

import json
import os
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from images.naming import reference
from tests.cluster import Cluster, images
from tests.timeouts import TIMEOUT_FACTOR

NGINX = reference("nginx")
CONFIGURATION = """
pid /tmp/nginx.pid;
error_log /dev/stderr notice;
events {}
http {
  access_log off;
  sendfile on;
  client_body_temp_path /tmp/client; proxy_temp_path /tmp/proxy; fastcgi_temp_path /tmp/fastcgi;
  uwsgi_temp_path /tmp/uwsgi; scgi_temp_path /tmp/scgi;
  server { listen 8080; root /data; }
}
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.cluster)


@dataclass(frozen=True)
class Probe:
    """A pod on one node. It has a shell as root, the node's /data, and an nginx that serves /data."""

    cluster: Cluster
    namespace: str
    node: str

    def __call__(self, script: str) -> str:
        """Runs a shell script in the pod, and returns its output. Raises ClusterError if it fails or takes 2 min."""
        limit = ("timeout", "--signal=KILL", "120")
        return self.kubectl("exec", self.node, "--container=shell", "--", *limit, "bash", "-ec", script)

    def kubectl(self, *arguments: str) -> str:
        return self.cluster.kubectl("--namespace", self.namespace, *arguments)

    @property
    def address(self) -> str:
        return self.kubectl("get", "pod", self.node, "-o", "jsonpath={.status.podIP}")

    def seconds(self, script: str) -> float:
        """Returns how long the script takes."""
        began, ended = self(f"began=$EPOCHREALTIME\n{script}\necho; echo $began $EPOCHREALTIME").split()[-2:]
        return float(ended) - float(began)


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """The running cluster with the image that the tests use. No disk stalls."""
    cluster = Cluster(os.environ.get("CLUSTER_NAME", "tierbench"))
    cluster.up()
    cluster.stalls(False)
    cluster.load([images.build("nginx")])
    return cluster


@pytest.fixture(scope="session")
def probes(cluster: Cluster) -> Iterator[dict[str, Probe]]:
    """Creates a probe on each node, and yields the probes by node name."""
    namespace = f"smoke-{secrets.token_hex(3)}"
    cluster.kubectl("create", "namespace", namespace)
    names = [node.profile.name for node in cluster.nodes]
    configuration = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "nginx"},
        "data": {"nginx.conf": CONFIGURATION},
    }
    objects = [configuration, *(_pod(name) for name in names), *(_service(name) for name in names)]
    apply(cluster, namespace, *objects)
    cluster.kubectl(
        "--namespace",
        namespace,
        "wait",
        "pod",
        "--all",
        "--for=condition=Ready",
        f"--timeout={60 * TIMEOUT_FACTOR:.0f}s",
    )
    probes = {name: Probe(cluster, namespace, name) for name in names}
    yield probes
    for probe in probes.values():
        probe("rm -rf /data/smoke-*")
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")


def apply(cluster: Cluster, namespace: str, *objects: dict[str, Any]) -> None:
    command = [f"{cluster.binaries}/kubectl", f"--kubeconfig={cluster.kubeconfig}", "--namespace", namespace]
    document = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    subprocess.run([*command, "apply", "-f", "-"], input=document, text=True, check=True, stdout=subprocess.DEVNULL)


def _pod(node: str) -> dict[str, Any]:
    data = {"name": "data", "mountPath": "/data"}
    shell = {"name": "shell", "image": NGINX, "command": ["sleep", "infinity"], "volumeMounts": [data]}
    nginx = {
        "name": "nginx",
        "image": NGINX,
        "volumeMounts": [data, {"name": "nginx", "mountPath": "/etc/tierbench"}, {"name": "tmp", "mountPath": "/tmp"}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": node, "labels": {"probe": node}},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 0,
            "containers": [{**shell, "securityContext": {"runAsUser": 0}}, nginx],
            "volumes": [
                {"name": "data", "hostPath": {"path": "/var/lib/tierbench"}},
                {"name": "nginx", "configMap": {"name": "nginx"}},
                {"name": "tmp", "emptyDir": {}},
            ],
        },
    }


def _service(node: str) -> dict[str, Any]:
    spec = {"type": "NodePort", "selector": {"probe": node}, "ports": [{"port": 80, "targetPort": 8080}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": node}, "spec": spec}
