"""What all pods of a benchmark share: their node, least privileges, resources, credentials and network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from tierbench.api.benchmark import Access
from tierbench.api.node_class import NodeClassSpec, NodeSelector
from tierbench.api.policy import Policy
from tierbench.api.quantity import Resources, parse_quantity, parse_size
from tierbench.workloads.plan import STANDALONE
from tierbench.workloads.workload import (
    LABEL_ROLE,
    LABEL_RUN,
    ROLE_CLIENT,
    ROLE_SERVER,
    Images,
    Manifest,
    NodeSize,
    Owner,
    RunningServer,
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

# Behind its Service, the DNS of some clusters listens on 5353. A NetworkPolicy sees the port of the pod.
_DNS_PORTS: Final = (53, 5353)
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
# No ipBlock matches the addresses of nodes with every CNI plugin.
_EVERYWHERE: Final[dict[str, Any]] = {}
_EVERY_ADDRESS: Final = ("0.0.0.0/0", "::/0")


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


NOT_READY: Final = tuple(
    {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute"}
    for state in ("not-ready", "unreachable")
)


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


def service(
    metadata: Manifest,
    labels: Mapping[str, str],
    ports: Mapping[str, int],
    service_type: str,
    protocols: Sequence[str] = ("TCP",),
) -> Manifest:
    """Returns a Service for the server pod with these labels. A port has the same number in each protocol, also on the
    node.

    The Service also publishes a pod that is not ready. A server may miss a readiness probe while its disk stalls, and
    the stall must be measured.
    """
    owner_labels = {key: value for key, value in metadata["labels"].items() if key.startswith("tierbench.io/")}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "type": service_type,
            "publishNotReadyAddresses": True,
            "selector": {**owner_labels, **labels},
            "ports": [
                {"name": _port_name(name, protocol), "port": port, "targetPort": port, "protocol": protocol}
                for name, port in ports.items()
                for protocol in protocols
            ],
        },
    }


def _port_name(name: str, protocol: str) -> str:
    return name if protocol == "TCP" else f"{name}-{protocol.lower()}"


def access_services(
    metadata: Manifest,
    labels: Mapping[str, str],
    access: Access,
    ports: Mapping[str, int],
    protocols: Sequence[str] = ("TCP",),
) -> tuple[Manifest, ...]:
    """Returns the Service that `access` needs, if it needs one."""
    if access not in (Access.CLUSTER_IP, Access.NODE_PORT):
        return ()
    return (service(metadata, labels, ports, access.value, protocols),)


def network_of(access: Access) -> Manifest:
    """Returns the field of a pod's spec for the network that `access` needs. With HostNetwork, no pod needs a CNI."""
    return {"hostNetwork": True} if access is Access.HOST_NETWORK else {}


def pod_host(access: Access, server: RunningServer) -> str:
    """Returns the IP address of a server's pod. With HostNetwork, that is the one of its node."""
    return server.host_ip if access is Access.HOST_NETWORK else server.pod_ip


def address(access: Access, server: RunningServer, port_name: str, port: int) -> str:
    """Returns host:port of a running server, as its clients reach it."""
    match access:
        case Access.POD_IP | Access.HOST_NETWORK:
            host = pod_host(access, server)
        case Access.CLUSTER_IP:
            metadata = server.service["metadata"]
            host = f"{metadata['name']}.{metadata['namespace']}.svc"
        case Access.NODE_PORT:
            host, port = server.host_ip, node_port(server.service, port_name)
    return host_and_port(host, port)


def host_and_port(host: str, port: int) -> str:
    """Returns host:port, with brackets around an IPv6 address (RFC 3986, section 3.2.2)."""
    return f"{f'[{host}]' if ':' in host else host}:{port}"


def node_port(raw: Mapping[str, Any], name: str) -> int:
    """Returns the port of a Service on nodes."""
    return next(int(port["nodePort"]) for port in raw["spec"]["ports"] if port["name"] == name)


def network_policy(
    owner: Owner, instance: ServerInstance, server: Sequence[Manifest], policy: Policy, collector: str = ""
) -> Manifest:
    """Returns the NetworkPolicy of a server with these manifests and its clients. The manifests say which ports are
    open, `policy` says where an external server can be, and `collector` is the URL where clients push their lines."""
    of_run = {**owner.selector, LABEL_RUN: str(instance.run)}
    ours = {"key": LABEL_ROLE, "operator": "In", "values": [ROLE_SERVER, ROLE_CLIENT]}
    node_ports, placement = _node_ports(server), instance.placement
    # Strimzi decides by which address its brokers are reached.
    outside = [] if placement.provider == STANDALONE else [_outside(policy if placement.external else Policy())]
    by_nodes = bool(node_ports) or any(item["kind"] == "Pod" and item["spec"].get("hostNetwork") for item in server)
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": owner.metadata(instance.attached, {LABEL_RUN: str(instance.run), LABEL_ROLE: ROLE_SERVER}),
        "spec": {
            "podSelector": {"matchLabels": of_run, "matchExpressions": [ours]},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": _ingress(of_run, node_ports),
            "egress": [_EVERYWHERE]
            if by_nodes
            else [*egress_to_pods(of_run), *outside, *egress_to_collector(collector)],
        },
    }


def _node_ports(server: Sequence[Manifest]) -> list[dict[str, Any]]:
    """Returns the ports that are served on the node."""
    return [
        {"port": port["targetPort"], "protocol": port["protocol"]}
        for item in server
        if item["kind"] == "Service" and item["spec"]["type"] == "NodePort"
        for port in item["spec"]["ports"]
    ]


def _ingress(of_run: Mapping[str, str], node_ports: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rules for incoming traffic.

    Clients may send anything, including echo requests, which no port describes. Traffic through a port of the node can
    have any address, because the node may replace it by its own.
    """
    clients = {"from": [{"podSelector": {"matchLabels": {**of_run, LABEL_ROLE: ROLE_CLIENT}}}]}
    return [clients, {"ports": list(node_ports)}] if node_ports else [clients]


def egress_to_pods(of_run: Mapping[str, str]) -> list[dict[str, Any]]:
    """Returns the rules for outgoing traffic to pods with these labels, and to DNS."""
    pods = {"to": [{"podSelector": {"matchLabels": of_run}}]}
    dns = {"ports": [{"port": port, "protocol": protocol} for port in _DNS_PORTS for protocol in ("UDP", "TCP")]}
    return [pods, dns]


def egress_to_collector(url: str) -> list[dict[str, Any]]:
    """Returns the rule for outgoing traffic to the operator's collector: to the namespace of its Service, or to its
    port anywhere."""
    if not url:
        return []
    address = urlsplit(url)
    labels, ports = (address.hostname or "").split("."), [{"port": address.port, "protocol": "TCP"}]
    if labels[2:3] != ["svc"]:
        return [{"ports": ports}]
    return [{"to": [{"namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: labels[1]}}}], "ports": ports}]


def _outside(policy: Policy) -> dict[str, Any]:
    """Returns the rule for outgoing traffic to an external server.

    It names networks, and not the server: a name can resolve to any address later, and Kafka redirects its clients.
    """
    named = policy.allowed_names or not policy.allowed_networks
    networks = map(ip_network, _EVERY_ADDRESS if named else policy.allowed_networks)
    refused = tuple(map(ip_network, policy.refused_networks))
    blocks = [
        {"ipBlock": {"cidr": str(network), "except": [str(one) for one in refused if _contains(network, one)]}}
        for network in networks
        if not any(_contains(one, network) for one in refused)
    ]
    return {"to": [*blocks, *([{"namespaceSelector": {}}] if named else [])]}


def _contains(network: IPv4Network | IPv6Network, other: IPv4Network | IPv6Network) -> bool:
    return network.version == other.version and network.supernet_of(other)  # type: ignore[arg-type]
