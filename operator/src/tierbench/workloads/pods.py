"""What all pods of a benchmark share: the node that they are pinned to, least privileges, resources and credentials."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from tierbench.api.node_class import NodeClassSpec
from tierbench.api.quantity import Resources, parse_quantity, parse_size
from tierbench.workloads.workload import Images, Manifest, NodeSize, ServerInstance

SERVER_READY_PERIOD_SECONDS: Final = 1

RESTRICTED: Final[dict[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


NO_SIDECARS: Final = {"sidecar.istio.io/inject": "false", "linkerd.io/inject": "disabled"}
"""Annotations of every pod. The proxy of a service mesh would distort the measurements."""

POD_IP: Final = "$(POD_IP)"
"""The IP address of the pod, in the command of a container with POD_IP_VARIABLE. With HostNetwork, it is that of the
node."""
POD_IP_VARIABLE: Final[dict[str, Any]] = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}


CREDENTIALS: Final = "/credentials"
CREDENTIALS_MOUNT: Final = {"name": "credentials", "mountPath": CREDENTIALS, "readOnly": True}

# Keys of a Secret.
AGENT_TOKEN: Final = "agent-token"  # noqa: S105 (the name of one)
AGENT_KEY: Final = "agent-key"
AGENT_PIN: Final = "agent-pin"
TLS_CERTIFICATE: Final = ("tls.crt", "tls.key")

SMALL_REQUESTS: Final = {"cpu": "50m", "memory": "32Mi"}
"""The requests of a program that needs very little while it waits."""
_DISK: Final = {"ephemeral-storage": "32Mi"}


class Directory(Protocol):
    """A directory of a container."""

    @property
    def mount(self) -> dict[str, Any]:
        """The mount for the container."""

    @property
    def volume(self) -> dict[str, Any]:
        """The volume for the pod."""


@dataclass(frozen=True)
class ScratchDirectory:
    """A directory in memory that a container can write to, so that no disk affects the measurements."""

    name: str
    path: str
    limit: str

    @property
    def mount(self) -> dict[str, Any]:
        """The mount for the container."""
        return {"name": self.name, "mountPath": self.path}

    @property
    def volume(self) -> dict[str, Any]:
        """The volume for the pod."""
        return {"name": self.name, "emptyDir": {"medium": "Memory", "sizeLimit": self.limit}}


@dataclass(frozen=True)
class ConfigMapDirectory:
    """A user's ConfigMap as a read-only directory. It is empty if there is no such ConfigMap, and the program reports
    that."""

    name: str
    path: str
    config_map: str

    @property
    def mount(self) -> dict[str, Any]:
        """The mount for the container."""
        return {"name": self.name, "mountPath": self.path, "readOnly": True}

    @property
    def volume(self) -> dict[str, Any]:
        """The volume for the pod."""
        return {"name": self.name, "configMap": {"name": self.config_map, "optional": True, "defaultMode": 0o440}}


def pin_to_node(node: str, node_class: NodeClassSpec) -> dict[str, Any]:
    """Returns the affinity and tolerations that pin a pod to a node, as long as the node has the labels of its class.

    The affinity matches metadata.name, as the DaemonSet controller does, because the hostname label can differ from the
    name.
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
    """Returns the PriorityClass of a pod, if there is one."""
    return {"priorityClassName": images.priority_class} if images.priority_class else {}


def pod_basics(images: Images) -> dict[str, Any]:
    """Returns the common part of a pod's spec.

    It has an unprivileged user, no service account token, no environment variables of Services, and a short grace
    period.
    """
    return {
        **priority(images),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 2,
        "imagePullSecrets": [{"name": name} for name in images.pull_secrets],
        "securityContext": pod_security(images.user),
    }


def pod_security(user: int | None) -> dict[str, Any]:
    """Returns the security context with the user of all containers. Without `user`, the platform assigns user and
    groups."""
    named = {} if user is None else {"runAsUser": user, "runAsGroup": user, "fsGroup": user}
    return {
        "runAsNonRoot": True,
        **named,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def measured_resources(asked: Resources | None, requests: Mapping[str, str] = SMALL_REQUESTS) -> Manifest:
    """Returns the resources of a container that is measured, or that measures. `requests` are its defaults."""
    given = asked or Resources()
    return _within({**requests, **given.requests.to_json()}, given.limits.to_json())


def sidecar_resources(asked: Resources | None, requests: Mapping[str, str] = SMALL_REQUESTS) -> Manifest:
    """Returns the resources of a container before or next to a server. It has its own requests, and the limits of the
    server."""
    given = asked or Resources()
    counted = given.requests.ephemeral_storage or given.limits.ephemeral_storage
    return _within({**requests, **(_DISK if counted else {})}, given.limits.to_json())


def _within(requests: Mapping[str, str], limits: Mapping[str, str]) -> Manifest:
    fitting = {name: min(amount, limits.get(name, amount), key=parse_quantity) for name, amount in requests.items()}
    return {"requests": fitting, **({"limits": dict(limits)} if limits else {})}


def available_size(asked: Resources | None, size: NodeSize) -> NodeSize:
    """Returns how much of its node a server can use."""
    limits = (asked or Resources()).limits
    return NodeSize(_less(size.memory_bytes, limits.memory), _less(size.storage_bytes, limits.ephemeral_storage))


def _less(known: int, limit: str | None) -> int:
    if limit is None:
        return known
    most = parse_size(limit)
    return min(known, most) if known else most


def secret_items(secret: str, *keys: str) -> dict[str, Any]:
    """Returns keys of a Secret as files, for a projected volume."""
    return {"secret": {"name": secret, "items": _items(keys)}}


def secret_volume(name: str, instance: ServerInstance, keys: Sequence[str]) -> dict[str, Any]:
    """Returns a volume of a server's pod with keys of the server's Secret."""
    return {"name": name, "secret": {"secretName": instance.attached, "items": _items(keys), "defaultMode": 0o440}}


def credentials_volumes(instance: ServerInstance, keys: Sequence[str]) -> tuple[dict[str, Any], ...]:
    """Returns the volume with the credentials that the server itself needs, if it needs any."""
    return (secret_volume("credentials", instance, keys),) if keys else ()


def credentials_mounts(keys: Sequence[str]) -> tuple[dict[str, Any], ...]:
    """Returns the mount of the credentials that the server itself needs, if it needs any."""
    return (CREDENTIALS_MOUNT,) if keys else ()


def _items(keys: Sequence[str]) -> list[dict[str, str]]:
    return [{"key": key, "path": key} for key in keys]
