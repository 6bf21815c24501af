"""What all pods of a benchmark share: their node, least privileges, resources and credentials.

The link of a client is here, too: a container that carries the packets of its pod.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol
from zlib import crc32

from tierbench.api.link import LINK, Link, LinkPath
from tierbench.api.node_class import NodeClassSpec, NodeSelector
from tierbench.api.quantity import Resources, parse_quantity, parse_size
from tierbench.api.trial_plan import PlannedLink
from tierbench.workloads.workload import (
    Images,
    Manifest,
    NodeSize,
    ServerInstance,
)

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
COLLECTOR_TOKEN: Final = "collector-token"  # noqa: S105 (the name of one)
COLLECTOR_PIN: Final = "collector-pin"
CA: Final = "ca.crt"
TLS_CERTIFICATE: Final = ("tls.crt", "tls.key")
CLIENT_CERTIFICATE: Final = ("client.crt", "client.key")

SMALL_REQUESTS: Final = {"cpu": "50m", "memory": "32Mi"}
"""The requests of a program that needs very little while it waits."""
_DISK: Final = {"ephemeral-storage": "32Mi"}

SERVER_NAME: Final = "server.tierbench.internal"
CLIENT_NAME: Final = "client.tierbench.internal"

PING_SYSCTL: Final = {"name": "net.ipv4.ping_group_range", "value": "0 2147483647"}
"""Lets every group open ICMP sockets without a capability, because the platform can choose the pod's group. It only
applies to the network of the pod, and is a safe sysctl in Kubernetes."""
NOT_READY: Final = tuple(
    {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute"}
    for state in ("not-ready", "unreachable")
)
_READY: Final = "/link/ready"
_TRACE: Final = "/trace"
_REQUESTS: Final = {"cpu": "100m", "memory": "32Mi"}
_CAPABILITIES: Final = ("NET_ADMIN", "NET_RAW", "SYS_NICE")
_INTERFACE: Final = "eth0"  # as every network plugin calls it


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
    name. The operator decides how long a node can be NotReady. Otherwise Kubernetes would evict the pod after five
    minutes.
    """
    selector = node_class.node_selector or NodeSelector()
    expressions = [{"key": key, "operator": "In", "values": [value]} for key, value in selector.match_labels.items()]
    expressions += [expression.to_json() for expression in selector.match_expressions]
    term = {
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}],
        "matchExpressions": expressions,
    }
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}},
        "tolerations": [*(toleration.to_json() for toleration in node_class.tolerations), *NOT_READY],
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
    """Returns the security context of all containers. Without `user`, the platform assigns user and groups."""
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


def secret_items(secret: str, *keys: str, optional: bool = False) -> dict[str, Any]:
    """Returns keys of a Secret as files, for a projected volume. If they are `optional`, the pod starts without those
    that do not exist."""
    return {"secret": {"name": secret, "items": _items(keys), **({"optional": True} if optional else {})}}


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


def planned_link(link: Link | None) -> PlannedLink | None:
    """Returns what a client needs to measure its link."""
    if link is None:
        return None
    up, down = (path.kilobits_per_second or 0 for path in link.paths)
    return PlannedLink(name=link.name, up_kilobits_per_second=up, down_kilobits_per_second=down)


def with_link(pod: Manifest, link: Link | None, images: Images, resources: Resources | None, seed: str) -> Manifest:
    """Returns the spec of a client's pod, with the link between its programs and the network.

    The container starts before the others and ends after them. It alone has capabilities. `resources` are those of the
    client, and `seed` decides which packets are lost.

    Raises:
        ValueError: the pod has the network of its node, which the link would take from all others. The API server
            refuses such a benchmark.
    """
    if link is None:
        return pod
    if pod.get("hostNetwork"):
        raise ValueError(f"the link {link.name} cannot be in the network of a node")
    volumes: list[Manifest] = [{"name": LINK, "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}]
    mounts: list[Manifest] = [{"name": LINK, "mountPath": _READY.rpartition("/")[0]}]
    if link.trace is not None:
        config_map = {"name": link.trace.config_map_ref.name, "optional": True, "defaultMode": 0o440}
        volumes.append({"name": "trace", "configMap": config_map})
        mounts.append({"name": "trace", "mountPath": _TRACE, "readOnly": True})
    container: Manifest = {
        "name": LINK,
        **images.pulled(images.client),
        "restartPolicy": "Always",
        "args": _link_arguments(link, crc32(seed.encode())),
        "startupProbe": {
            "exec": {"command": ["/tierbench-client", "prepared", _READY]},
            "periodSeconds": SERVER_READY_PERIOD_SECONDS,
            "timeoutSeconds": 10,
            "failureThreshold": 60,
        },
        "resources": sidecar_resources(resources, _REQUESTS),
        "securityContext": {
            **RESTRICTED,
            "runAsUser": 0,
            "runAsGroup": 0,
            "runAsNonRoot": False,
            "capabilities": {"drop": ["ALL"], "add": list(_CAPABILITIES)},
        },
        "volumeMounts": mounts,
    }
    return {**pod, "initContainers": [container], "volumes": [*pod["volumes"], *volumes]}


def _link_arguments(link: Link, seed: int) -> list[str]:
    """Returns the arguments of the program that carries the packets."""
    up, down = (
        json.dumps(_path(path, f"{_TRACE}/{key}" if link.trace else ""))
        for path, key in zip(link.paths, ("up", "down"), strict=True)
    )
    ends = [f"--before={_INTERFACE}", f"--ready={_READY}", "--termination-log=/dev/termination-log"]
    return ["link", f"--up={up}", f"--down={down}", f"--seed={seed}", *ends]


def _path(path: LinkPath, trace: str) -> dict[str, Any]:
    values = {
        "bitsPerSecond": (path.kilobits_per_second or 0) * 1000,
        "trace": trace,
        "delayNanoseconds": path.delay_microseconds * 1000,
        "jitterNanoseconds": path.jitter_microseconds * 1000,
        "loss": path.loss_parts_per_million / 1e6,
        "queueNanoseconds": path.queue_milliseconds * 1_000_000,
    }
    return {name: value for name, value in values.items() if value}
