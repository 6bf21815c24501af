"""The network path from clients to a server: Services, addresses, and the NetworkPolicy that isolates both."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tierbench.api.benchmark import Access
from tierbench.workloads.names import LABEL_ROLE, LABEL_RUN, ROLE_CLIENT, ROLE_SERVER, Owner
from tierbench.workloads.plan import STANDALONE
from tierbench.workloads.workload import Manifest, RunningServer, ServerInstance

SERVER_NAME: Final = "server.tierbench.internal"

# Some clusters' DNS listens on 5353 behind its Service, and what a policy sees is the port of the pod.
_DNS_PORTS: Final = (53, 5353)
# No block of addresses means a node's on every CNI.
_EVERYWHERE: Final[dict[str, Any]] = {}
# A name may lead to the metadata service of the cloud, whatever was checked when it was written.
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
    """A Service for the server pod with these labels. A port has the same number, of the node too, in each protocol.

    A server whose disk stalls may miss a readiness probe: it must stay reachable, the stall is what is measured.
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
    """The Service that `access` asks for, if it asks for one."""
    if access not in (Access.CLUSTER_IP, Access.NODE_PORT):
        return ()
    service_type = "NodePort" if access is Access.NODE_PORT else "ClusterIP"
    return (service(metadata, labels, ports, service_type, protocols),)


def address(access: Access, server: RunningServer, port_name: str, port: int) -> str:
    """host:port of a running server, as its clients reach it."""
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
    """host:port, with brackets around an IPv6 address (RFC 3986, section 3.2.2)."""
    return f"{f'[{host}]' if ':' in host else host}:{port}"


def _node_port(raw: Mapping[str, Any], name: str) -> int:
    ports = {port["name"]: int(port["nodePort"]) for port in raw["spec"]["ports"]}
    return ports[name]


def network_policy(owner: Owner, instance: ServerInstance, server: Sequence[Manifest]) -> Manifest:
    """That of a server with these manifests and its clients. What must be open besides is read off the manifests."""
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
    """What is served by ports of the node."""
    return [
        {"port": port["targetPort"], "protocol": port["protocol"]}
        for item in server
        if item["kind"] == "Service" and item["spec"]["type"] == "NodePort"
        for port in item["spec"]["ports"]
    ]


def _ingress(of_run: Mapping[str, str], node_ports: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """From clients everything, echo requests too, which no port names. Who comes by a port of the node has any address,
    as the node may put its own in place of it."""
    clients = {"from": [{"podSelector": {"matchLabels": {**of_run, LABEL_ROLE: ROLE_CLIENT}}}]}
    return [clients, {"ports": list(node_ports)}] if node_ports else [clients]


def _egress(of_run: Mapping[str, str], *, external: bool) -> list[dict[str, Any]]:
    """To the benchmark's pods, and DNS. A broker that is somebody else's tells its clients where to go on."""
    pods = {"to": [{"podSelector": {"matchLabels": of_run}}]}
    dns = {"ports": [{"port": port, "protocol": protocol} for port in _DNS_PORTS for protocol in ("UDP", "TCP")]}
    return [pods, dns, *([_NOT_LINK_LOCAL] if external else [])]
