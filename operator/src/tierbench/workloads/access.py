"""The path from clients to a server: Services, and the address that they give."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tierbench.api.benchmark import Access
from tierbench.workloads.workload import Manifest, RunningServer

SERVER_NAME: Final = "server.tierbench.internal"


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
