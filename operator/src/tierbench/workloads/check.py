"""The manifests of `kubectl tierbench doctor`: a pod that answers and one that asks, on a node of each class. Another
one pulls images.

All objects belong to a Job without pods. To delete it deletes them. After its deadline, Kubernetes deletes it.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from tierbench.api.benchmark import Access
from tierbench.api.model import GROUP
from tierbench.api.node_class import NodeClassSpec
from tierbench.workloads.networking import egress_to_collector, egress_to_pods, host_and_port, node_port, service
from tierbench.workloads.pods import (
    NO_SIDECARS,
    PING_SYSCTL,
    POD_IP,
    POD_IP_VARIABLE,
    RESTRICTED,
    measured_resources,
    pin_to_node,
    pod_basics,
    pod_security,
)
from tierbench.workloads.workload import CLIENT, Images, Manifest

LABEL_CHECK: Final = f"{GROUP}/check"
"""The label of all objects of one check."""
LABEL_CHECK_ROLE: Final = f"{GROUP}/check-role"
LABEL_CHECK_CLASS: Final = f"{GROUP}/check-class"
ANSWERS, ASKS, PULLS = "answers", "asks", "pulls"

_FIRST_PORT: Final = 28091
_PORT: Final = "check"
_ENDS: Final = {"command": ["true"], "terminationMessagePolicy": "FallbackToLogsOnError"}
_FEW_REQUESTS: Final = {"cpu": "10m", "memory": "16Mi"}
_SPARE_SECONDS: Final = 60
_SPOOL: Final = "/spool"
_TERMINATION_LOG: Final = "/dev/termination-log"


@dataclass(frozen=True)
class Place:
    """A class, the node where it is checked, and its port: on the node itself, each class needs another one."""

    name: str
    spec: NodeClassSpec
    node: str
    index: int

    @property
    def port(self) -> int:
        """The port of the pod that answers."""
        return _FIRST_PORT + self.index


@dataclass(frozen=True)
class AnsweringPod:
    """A running pod that answers, the address of its node, and its Service."""

    place: Place
    address: str
    host: str
    service: Manifest


@dataclass(frozen=True)
class CheckRun:
    """One check. `name` is that of the Job that owns everything, `uid` its UID. With `host_network`, the pods use the
    network of their nodes. `pulled` are the names of the programs whose images are pulled, too."""

    name: str
    namespace: str
    images: Images
    seconds: int
    host_network: bool = False
    isolated: bool = False
    pulled: tuple[str, ...] = ()
    uid: str = ""

    @property
    def labels(self) -> dict[str, str]:
        """The labels of all objects."""
        return {LABEL_CHECK: self.name}

    def owner(self) -> Manifest:
        """Returns the Job that owns the other objects."""
        container = {"name": CLIENT, **self.images.pulled(self.images.client), "securityContext": RESTRICTED}
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": self.name, "namespace": self.namespace, "labels": self.labels},
            "spec": {
                "parallelism": 0,
                "activeDeadlineSeconds": self.seconds + 2 * _SPARE_SECONDS,
                "ttlSecondsAfterFinished": 0,
                "template": {
                    "spec": {**pod_basics(self.images), "restartPolicy": "Never", "containers": [container]},
                },
            },
        }

    def policy(self, services: Iterable[Manifest]) -> Manifest:
        """Returns the NetworkPolicy, which lets the pods reach one another, as that of a benchmark does. Traffic
        through a port of a node can have any address."""
        ports = [port for each in services for port in each["spec"]["ports"]]
        served = [{"port": port["targetPort"], "protocol": "TCP"} for port in ports]
        on_nodes = [{"port": port["nodePort"], "protocol": "TCP"} for port in ports if "nodePort" in port]
        return {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": self._metadata(self.name, {}),
            "spec": {
                "podSelector": {"matchLabels": self.labels},
                "policyTypes": ["Ingress", "Egress"],
                "ingress": [{"from": [{"podSelector": {"matchLabels": self.labels}}]}, {"ports": served}],
                "egress": [
                    *egress_to_pods(self.labels),
                    *egress_to_collector(self.images.collector),
                    {"ports": [*served, *on_nodes]},
                ],
            },
        }

    def service(self, place: Place, access: Access) -> Manifest:
        """Returns the Service of the pod that answers at a place: of the type NodePort, or ClusterIP."""
        labels = self._pod_labels(place, ANSWERS)
        metadata = self._metadata(f"{self.name}-{place.index}", labels)
        return service(metadata, labels, {_PORT: place.port}, access.value)

    def answering_pod(self, place: Place) -> Manifest:
        """Returns the pod that answers at a place."""
        return self._pod(place, ANSWERS, ["--listen", f"{POD_IP}:{place.port}"])

    def asking_pod(self, place: Place, others: Sequence[AnsweringPod]) -> Manifest:
        """Returns the pod that asks the others, and reports what it found."""
        peers = [f"--peer={self._peer(each)}" for each in others]
        collector = [f"--collector={urlsplit(self.images.collector).netloc}"] if self.images.collector else []
        return self._pod(
            place, ASKS, [*peers, *collector, f"--directory={_SPOOL}", f"--termination-log={_TERMINATION_LOG}"]
        )

    def pulling_pod(self, place: Place) -> Manifest:
        """Returns the pod that pulls the images of programs at a place. Each container ends at once."""
        resources = measured_resources(None, _FEW_REQUESTS)
        same = {**_ENDS, "resources": resources, "securityContext": RESTRICTED}
        containers = [{"name": name, **self.images.pulled(self.images.programs[name]), **same} for name in self.pulled]
        return self._placed(place, PULLS, containers)

    def _peer(self, answering: AnsweringPod) -> str:
        port, found = answering.place.port, answering.service
        name, spec = f"{found['metadata']['name']}.{self.namespace}.svc", found["spec"]
        by_node = spec["type"] == Access.NODE_PORT
        return json.dumps(
            {
                "name": answering.place.name,
                "address": host_and_port(answering.address, port),
                "service": host_and_port(spec["clusterIP"], port),
                "nodePort": host_and_port(answering.host, node_port(found, _PORT)) if by_node else "",
                "host": name,
            }
        )

    def _pod_labels(self, place: Place, role: str) -> dict[str, str]:
        return {**self.labels, LABEL_CHECK_ROLE: role, LABEL_CHECK_CLASS: place.name}

    def _metadata(self, name: str, labels: dict[str, str]) -> dict[str, Any]:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": self.name, "uid": self.uid}
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": {**self.labels, **labels},
            "ownerReferences": [owner],
        }

    def _pod(self, place: Place, role: str, arguments: list[str]) -> Manifest:
        container = {
            "name": CLIENT,
            **self.images.pulled(self.images.client),
            "args": ["check", *arguments],
            "env": [POD_IP_VARIABLE],
            "resources": measured_resources(None),
            "securityContext": RESTRICTED,
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [{"name": "spool", "mountPath": _SPOOL}],
        }
        return self._placed(place, role, [container])

    def _placed(self, place: Place, role: str, containers: list[Manifest]) -> Manifest:
        network: Manifest = {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"} if self.host_network else {}
        sysctls: Manifest = {} if self.host_network else {"sysctls": [PING_SYSCTL]}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **self._metadata(f"{self.name}-{place.index}-{role}", self._pod_labels(place, role)),
                "annotations": NO_SIDECARS,
            },
            "spec": {
                **pod_basics(self.images),
                **pin_to_node(place.node, place.spec),
                **network,
                "securityContext": {**pod_security(self.images.user), **sysctls},
                "restartPolicy": "Never",
                "activeDeadlineSeconds": self.seconds + _SPARE_SECONDS,
                "containers": containers,
                "volumes": [{"name": "spool", "emptyDir": {"sizeLimit": "1Mi"}}],
            },
        }
