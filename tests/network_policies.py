"""Evaluates manifests of NetworkPolicies as the API's reference defines them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Peer:
    """A pod, or an address outside the cluster if it has no namespace. `ports` has the pod's ports by name."""

    address: str
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[str, int] = field(default_factory=dict)


def permitted(policies: Iterable[Json], source: Peer, target: Peer, port: int | None, protocol: str = "TCP") -> bool:
    """Returns whether policies permit a connection at both ends. Without a port, it is an echo request."""
    known = list(policies)
    return _passes(known, "Egress", source, target, target, port, protocol) and _passes(
        known, "Ingress", target, source, target, port, protocol
    )


def _passes(
    policies: list[Json], direction: str, pod: Peer, other: Peer, target: Peer, port: int | None, protocol: str
) -> bool:
    """Returns whether any rule of a policy matches. A pod that no policy selects permits everything."""
    selecting = [item for item in policies if direction in item["spec"]["policyTypes"] and _selects(item, pod)]
    rules = [(item, rule) for item in selecting for rule in item["spec"].get(direction.lower(), ())]
    side = "from" if direction == "Ingress" else "to"
    return not selecting or any(
        (not rule.get(side) or any(_matches_peer(item, peer, other) for peer in rule[side]))
        and (not rule.get("ports") or any(_matches_port(entry, target, port, protocol) for entry in rule["ports"]))
        for item, rule in rules
    )


def _selects(policy: Json, pod: Peer) -> bool:
    return bool(pod.namespace) and (
        policy["metadata"]["namespace"] == pod.namespace and _matches(policy["spec"]["podSelector"], pod.labels)
    )


def _matches_peer(policy: Json, peer: Json, other: Peer) -> bool:
    if "ipBlock" in peer:
        block, address = peer["ipBlock"], ip_address(other.address)
        return address in ip_network(block["cidr"]) and not any(
            address in ip_network(one) for one in block.get("except", ())
        )
    if not other.namespace:
        return False
    if "namespaceSelector" in peer:
        in_namespace = _matches(peer["namespaceSelector"], {"kubernetes.io/metadata.name": other.namespace})
    else:
        in_namespace = other.namespace == policy["metadata"]["namespace"]
    return in_namespace and _matches(peer.get("podSelector", {}), other.labels)


def _matches(selector: Json, labels: Mapping[str, str]) -> bool:
    expressions = selector.get("matchExpressions", ())
    assert all(item["operator"] == "In" for item in expressions)
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        labels.get(item["key"]) in item["values"] for item in expressions
    )


def _matches_port(entry: Json, target: Peer, port: int | None, protocol: str) -> bool:
    number = target.ports.get(entry["port"]) if isinstance(entry["port"], str) else entry["port"]
    return port is not None and number == port and entry.get("protocol", "TCP") == protocol
