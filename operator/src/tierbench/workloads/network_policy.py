"""The NetworkPolicy of a server: the pods of a benchmark talk to one another, and to nobody else."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tierbench.workloads.names import LABEL_ROLE, LABEL_RUN, ROLE_CLIENT, ROLE_SERVER, Owner
from tierbench.workloads.plan import STANDALONE
from tierbench.workloads.workload import Manifest, ServerSite

# Some clusters' DNS listens on 5353 behind its Service, and what a policy sees is the port of the pod.
_DNS_PORTS: Final = (53, 5353)
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
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": owner.metadata(site.attached, {LABEL_RUN: str(site.run), LABEL_ROLE: ROLE_SERVER}),
        "spec": {
            "podSelector": {"matchLabels": of_run, "matchExpressions": [ours]},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": list(_ingress(of_run, server)),
            "egress": list(_egress(of_run, site, server)),
        },
    }


def _ingress(of_run: Mapping[str, str], server: Sequence[Manifest]) -> Iterator[dict[str, Any]]:
    """From clients everything, echo requests too, which no port names. Who comes by a port of the node has any address,
    as the node may put its own in place of it."""
    yield {"from": [{"podSelector": {"matchLabels": {**of_run, LABEL_ROLE: ROLE_CLIENT}}}]}
    ports = [
        {"port": port["targetPort"], "protocol": port["protocol"]}
        for item in server
        if item["kind"] == "Service" and item["spec"]["type"] == "NodePort"
        for port in item["spec"]["ports"]
    ]
    if ports:
        yield {"ports": ports}


def _egress(of_run: Mapping[str, str], site: ServerSite, server: Sequence[Manifest]) -> Iterator[dict[str, Any]]:
    """To the benchmark's pods, and DNS. A node's address can be named on no CNI alike, and a broker that is somebody
    else's tells its clients where to go on."""
    if _goes_by_nodes(server):
        yield _EVERYWHERE
        return
    yield {"to": [{"podSelector": {"matchLabels": of_run}}]}
    yield {"ports": [{"port": port, "protocol": protocol} for port in _DNS_PORTS for protocol in ("UDP", "TCP")]}
    if site.slot.provider != STANDALONE:
        yield _NOT_LINK_LOCAL


def _goes_by_nodes(server: Sequence[Manifest]) -> bool:
    """Whether clients reach the server by an address of its node."""
    in_hosts_network = any(item["kind"] == "Pod" and item["spec"].get("hostNetwork") for item in server)
    return in_hosts_network or any(item["kind"] == "Service" and item["spec"]["type"] == "NodePort" for item in server)
