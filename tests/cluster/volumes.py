"""Persistent volumes of class `local-test`: a few folders of each node."""

import json
from typing import TYPE_CHECKING

from tests.cluster.processes import run

if TYPE_CHECKING:
    from tests.cluster.cluster import Cluster
    from tests.cluster.node import NodeMachine

CLASS = "local-test"
PER_NODE = 4
FOLDER = "var/lib/tierbench-volumes"


def apply(cluster: "Cluster") -> None:
    """Make the volumes' folders and objects."""
    items = []
    for node in cluster.nodes:
        for number in range(PER_NODE):
            (node.root / FOLDER / str(number)).mkdir(parents=True, exist_ok=True)
            items.append(_volume(node, number))
    volumes = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    run(f"{cluster.binaries}/kubectl", f"--kubeconfig={cluster.kubeconfig}", "apply", "-f", "-", stdin=volumes)


def _volume(node: "NodeMachine", number: int) -> dict[str, object]:
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
            "local": {"path": f"/{FOLDER}/{number}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
    }
