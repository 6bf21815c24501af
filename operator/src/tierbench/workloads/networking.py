"""The network path from clients to a server: Services, addresses, and the NetworkPolicy that isolates both."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tierbench.api.benchmark import Access
from tierbench.workloads.names import LABEL_ROLE, LABEL_RUN, ROLE_CLIENT, ROLE_SERVER, Owner
from tierbench.workloads.plan import STANDALONE
from tierbench.workloads.workload import Manifest, RunningServer, ServerInstance

SERVER_NAME: Final = "server.tierbench.internal"

# Behind its Service, the DNS of some clusters listens on 5353. A NetworkPolicy sees the port of the pod.
_DNS_PORTS: Final = (53, 5353)
# No ipBlock matches the addresses of nodes with every CNI plugin.
_EVERYWHERE: Final[dict[str, Any]] = {}
# A name can resolve to the metadata service of the cloud, whatever it resolved to when it was checked.
_NOT_LINK_LOCAL: Final[dict[str, Any]] = {
    "to": [
        {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]}},
        {"ipBlock": {"cidr": "::/0", "except": ["fe80::/10"]}},
        {"namespaceSelector": {}},
    ]
}


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
    service_type = "NodePort" if access is Access.NODE_PORT else "ClusterIP"
    return (service(metadata, labels, ports, service_type, protocols),)


def address(access: Access, server: RunningServer, port_name: str, port: int) -> str:
    """Returns host:port of a running server, as its clients reach it."""
    match access:
        case Access.POD_IP:
            host = server.pod_ip
        case Access.HOST_NETWORK:
            host = server.host_ip
        case Access.CLUSTER_IP:
            metadata = server.service["metadata"]
            host = f"{metadata['name']}.{metadata['namespace']}.svc"
        case Access.NODE_PORT:
            host, port = server.host_ip, _node_port(server.service, port_name)
    return host_and_port(host, port)


def host_and_port(host: str, port: int) -> str:
    """Returns host:port, with brackets around an IPv6 address (RFC 3986, section 3.2.2)."""
    return f"{f'[{host}]' if ':' in host else host}:{port}"


def _node_port(raw: Mapping[str, Any], name: str) -> int:
    ports = {port["name"]: int(port["nodePort"]) for port in raw["spec"]["ports"]}
    return ports[name]


def network_policy(owner: Owner, instance: ServerInstance, server: Sequence[Manifest]) -> Manifest:
    """Returns the NetworkPolicy of a server with these manifests and its clients. The manifests say which ports are
    open."""
    of_run = {**owner.selector, LABEL_RUN: str(instance.run)}
    ours = {"key": LABEL_ROLE, "operator": "In", "values": [ROLE_SERVER, ROLE_CLIENT]}
    node_ports, external = _node_ports(server), instance.placement.provider != STANDALONE
    by_nodes = bool(node_ports) or any(item["kind"] == "Pod" and item["spec"].get("hostNetwork") for item in server)
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": owner.metadata(instance.attached, {LABEL_RUN: str(instance.run), LABEL_ROLE: ROLE_SERVER}),
        "spec": {
            "podSelector": {"matchLabels": of_run, "matchExpressions": [ours]},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": _ingress(of_run, node_ports),
            "egress": [_EVERYWHERE] if by_nodes else _egress(of_run, external=external),
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


def _egress(of_run: Mapping[str, str], *, external: bool) -> list[dict[str, Any]]:
    """Returns the rules for outgoing traffic: to the benchmark's pods and DNS. An external broker redirects its
    clients."""
    pods = {"to": [{"podSelector": {"matchLabels": of_run}}]}
    dns = {"ports": [{"port": port, "protocol": protocol} for port in _DNS_PORTS for protocol in ("UDP", "TCP")]}
    return [pods, dns, *([_NOT_LINK_LOCAL] if external else [])]
