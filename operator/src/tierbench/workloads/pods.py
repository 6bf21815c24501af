"""What all pods of a benchmark share: least rights, and the one node that they are pinned to."""

from dataclasses import dataclass
from typing import Any, Final, Protocol

from tierbench.api.node_class import NodeClassSpec
from tierbench.workloads.workload import Images

SERVER_READY_PERIOD_SECONDS: Final = 1

RESTRICTED: Final[dict[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


NO_SIDECARS: Final = {"sidecar.istio.io/inject": "false", "linkerd.io/inject": "disabled"}
"""Annotations of every pod: the proxy of a service mesh would be what is measured."""

POD_IP: Final = "$(POD_IP)"
"""In the command of a container with POD_IP_VARIABLE: the address of its pod, under HostNetwork that of the node."""
POD_IP_VARIABLE: Final[dict[str, Any]] = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}


class Directory(Protocol):
    """What a container finds at a path."""

    @property
    def mount(self) -> dict[str, Any]:
        """For its container."""

    @property
    def volume(self) -> dict[str, Any]:
        """For its pod."""


@dataclass(frozen=True)
class ScratchDirectory:
    """A directory in memory that a container may write to: no disk is in what is measured."""

    name: str
    path: str
    limit: str

    @property
    def mount(self) -> dict[str, Any]:
        """For its container."""
        return {"name": self.name, "mountPath": self.path}

    @property
    def volume(self) -> dict[str, Any]:
        """For its pod."""
        return {"name": self.name, "emptyDir": {"medium": "Memory", "sizeLimit": self.limit}}


@dataclass(frozen=True)
class ConfigMapDirectory:
    """A user's ConfigMap, to be read; empty if there is none, so that the program can say so."""

    name: str
    path: str
    config_map: str

    @property
    def mount(self) -> dict[str, Any]:
        """For its container."""
        return {"name": self.name, "mountPath": self.path, "readOnly": True}

    @property
    def volume(self) -> dict[str, Any]:
        """For its pod."""
        return {"name": self.name, "configMap": {"name": self.config_map, "optional": True, "defaultMode": 0o440}}


def placement(node: str, node_class: NodeClassSpec) -> dict[str, Any]:
    """Pins a pod to one node, as long as that node still bears the labels of its class.

    matchFields on metadata.name is what the DaemonSet controller uses: the hostname label may differ from the name.
    """
    selector = node_class.node_selector
    expressions = [{"key": key, "operator": "In", "values": [value]} for key, value in selector.match_labels.items()]
    expressions += [expression.to_json() for expression in selector.match_expressions]
    term = {
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}],
        "matchExpressions": expressions,
    }
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}},
        "tolerations": [toleration.to_json() for toleration in node_class.tolerations],
    }


def priority(images: Images) -> dict[str, Any]:
    """The PriorityClass of a pod, if it has one."""
    return {"priorityClassName": images.priority_class} if images.priority_class else {}


def pod_basics(images: Images) -> dict[str, Any]:
    """An unprivileged user, no service-account token, no environment of other services, a quick end."""
    return {
        **priority(images),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 2,
        "imagePullSecrets": [{"name": name} for name in images.pull_secrets],
        "securityContext": pod_security(images.user),
    }


def pod_security(user: int | None) -> dict[str, Any]:
    """The user that all containers run as. One that is not named is the platform's to assign, its groups included."""
    named = {} if user is None else {"runAsUser": user, "runAsGroup": user, "fsGroup": user}
    return {
        "runAsNonRoot": True,
        **named,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }
