"""The NetworkPolicy of a server: the pods of a benchmark talk to one another, and to nobody else."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tierbench.workloads.names import LABEL_ROLE, LABEL_RUN, ROLE_CLIENT, ROLE_SERVER, Owner
from tierbench.workloads.plan import STANDALONE
from tierbench.workloads.workload import Manifest, ServerSite

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


def network_policy(owner: Owner, site: ServerSite, server: Sequence[Manifest]) -> Manifest:
    """That of a server with these manifests and its clients. What must be open besides is read off the manifests."""
    of_run = {**owner.selector, LABEL_RUN: str(site.run)}
    ours = {"key": LABEL_ROLE, "operator": "In", "values": [ROLE_SERVER, ROLE_CLIENT]}
    node_ports, external = _node_ports(server), site.slot.provider != STANDALONE
    by_nodes = bool(node_ports) or any(item["kind"] == "Pod" and item["spec"].get("hostNetwork") for item in server)
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": owner.metadata(site.attached, {LABEL_RUN: str(site.run), LABEL_ROLE: ROLE_SERVER}),
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
