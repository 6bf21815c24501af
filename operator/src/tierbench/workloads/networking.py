"""How clients reach servers: Services and addresses, and the NetworkPolicy of a server and its clients."""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final
from urllib.parse import urlsplit

from tierbench.api.benchmark import Access
from tierbench.api.policy import Policy
from tierbench.workloads.plan import STANDALONE
from tierbench.workloads.workload import (
    LABEL_ROLE,
    LABEL_RUN,
    ROLE_CLIENT,
    ROLE_SERVER,
    Manifest,
    Owner,
    RunningServer,
    ServerInstance,
)

# Behind its Service, the DNS of some clusters listens on 5353. A NetworkPolicy sees the port of the pod.
_DNS_PORTS: Final = (53, 5353)
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
# No ipBlock matches the addresses of nodes with every CNI plugin.
_EVERYWHERE: Final[dict[str, Any]] = {}
_EVERY_ADDRESS: Final = ("0.0.0.0/0", "::/0")


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
