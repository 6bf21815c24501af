"""Manages persistent volumes of class `local-test`: a few folders on the disk of each node."""

import json
from typing import TYPE_CHECKING

from tests.cluster.hardware import VOLUMES
from tests.cluster.node import NodeMachine
from tests.cluster.processes import run

if TYPE_CHECKING:
    from tests.cluster.cluster import Cluster

CLASS = "local-test"
PER_NODE = 8


def apply(cluster: "Cluster") -> None:
    """Creates the volumes' folders and objects."""
    items = []
    for node in cluster.nodes:
        node.machine.run("mkdir", "-p", *(f"{VOLUMES}/{number}" for number in range(PER_NODE)))
        items += [_volume(node, number) for number in range(PER_NODE)]
    volumes = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    run(
        f"{cluster.binaries}/kubectl",
        f"--kubeconfig={cluster.kubeconfig}",
        "apply",
        "--validate=false",
        "-f",
        "-",
        stdin=volumes,
    )


def recycle(cluster: "Cluster") -> None:
    """Empties the volumes whose claim is gone, and makes them available. Kubernetes does not recycle local volumes."""
    for volume in json.loads(cluster.kubectl("get", "persistentvolumes", "-o", "json"))["items"]:
        name, spec = volume["metadata"]["name"], volume["spec"]
        if volume["status"]["phase"] == "Released" and spec["storageClassName"] == CLASS:
            node = cluster.node(name.rpartition("-")[0])
            node.machine.run("find", spec["local"]["path"], "-mindepth", "1", "-delete")
            cluster.kubectl("patch", "persistentvolume", name, "--patch", '{"spec": {"claimRef": null}}')


def _volume(node: NodeMachine, number: int) -> dict[str, object]:
    name = node.profile.name
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}]}]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{name}-{number}"},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": CLASS,
            "local": {"path": f"{VOLUMES}/{number}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
    }
