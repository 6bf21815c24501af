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
"""Annotations of every pod: the proxy of a service mesh would be what is measured."""

POD_IP: Final = "$(POD_IP)"
"""In the command of a container with POD_IP_VARIABLE: the address of its pod, under HostNetwork that of the node."""
POD_IP_VARIABLE: Final[dict[str, Any]] = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}


CREDENTIALS: Final = "/credentials"
CREDENTIALS_MOUNT: Final = {"name": "credentials", "mountPath": CREDENTIALS, "readOnly": True}

# Keys of a Secret.
TOKEN: Final = "agent-token"  # noqa: S105 (the name of one)
KEY: Final = "agent-key"
PIN: Final = "agent-pin"
CERTIFICATE: Final = ("tls.crt", "tls.key")

SMALL: Final = {"cpu": "50m", "memory": "32Mi"}
"""What a program asks for that needs next to nothing while it waits."""
_DISK: Final = {"ephemeral-storage": "32Mi"}


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


def pin_to_node(node: str, node_class: NodeClassSpec) -> dict[str, Any]:
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


def measured(asked: Resources | None, requests: Mapping[str, str] = SMALL) -> Manifest:
    """Of a container that is measured, or measures; `requests` are its own where the spec names none."""
    given = asked or Resources()
    return _within({**requests, **given.requests.to_json()}, given.limits.to_json())


def beside(asked: Resources | None, requests: Mapping[str, str] = SMALL) -> Manifest:
    """Of a container that runs before or beside a server: its requests are its own, its limits the server's."""
    given = asked or Resources()
    counted = given.requests.ephemeral_storage or given.limits.ephemeral_storage
    return _within({**requests, **(_DISK if counted else {})}, given.limits.to_json())


def _within(requests: Mapping[str, str], limits: Mapping[str, str]) -> Manifest:
    fitting = {name: min(amount, limits.get(name, amount), key=parse_quantity) for name, amount in requests.items()}
    return {"requests": fitting, **({"limits": dict(limits)} if limits else {})}


def left(asked: Resources | None, size: NodeSize) -> NodeSize:
    """What a server may use of its node."""
    limits = (asked or Resources()).limits
    return NodeSize(_less(size.memory_bytes, limits.memory), _less(size.storage_bytes, limits.ephemeral_storage))


def _less(known: int, limit: str | None) -> int:
    if limit is None:
        return known
    most = parse_size(limit)
    return min(known, most) if known else most


def secret_items(secret: str, *keys: str) -> dict[str, Any]:
    """Some keys of a Secret, as files of their names, for a projected volume."""
    return {"secret": {"name": secret, "items": _items(keys)}}


def secret_volume(name: str, instance: ServerInstance, keys: Sequence[str]) -> dict[str, Any]:
    """Some keys of a server's Secret, for its pod."""
    return {"name": name, "secret": {"secretName": instance.attached, "items": _items(keys), "defaultMode": 0o440}}


def credentials_volumes(instance: ServerInstance, keys: Sequence[str]) -> tuple[dict[str, Any], ...]:
    """Those that the server itself needs, if it needs any."""
    return (secret_volume("credentials", instance, keys),) if keys else ()


def credentials_mounts(keys: Sequence[str]) -> tuple[dict[str, Any], ...]:
    """The same for its container."""
    return (CREDENTIALS_MOUNT,) if keys else ()


def _items(keys: Sequence[str]) -> list[dict[str, str]]:
    return [{"key": key, "path": key} for key in keys]
