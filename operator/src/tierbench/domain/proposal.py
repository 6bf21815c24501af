"""Proposes node classes and a first benchmark for a cluster, from the labels of its nodes."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tierbench.api.model import API_VERSION
from tierbench.api.node_class import NodeClass
from tierbench.domain.views import NodeView
from tierbench.kinds.registry import kinds

ARCHITECTURE: Final = "kubernetes.io/arch"
HOSTNAME: Final = "kubernetes.io/hostname"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
CLIENT: Final = "client"

_BOARD_LABEL: Final = re.compile(r"(^|[./-])(hw|hardware|board|model|device)$")
_MAXIMUM_CLASSES: Final = 8


@dataclass(frozen=True)
class Proposal:
    """Proposed node classes and a benchmark. `selectors` maps each node class to its labels, `servers` and `clients`
    name classes, `notes` explain the choice and its limits."""

    selectors: Mapping[str, Mapping[str, str]]
    servers: tuple[str, ...]
    clients: tuple[str, ...]
    colocated: bool
    notes: tuple[str, ...]

    def node_classes(self) -> list[dict[str, Any]]:
        """Returns the NodeClass objects."""
        return [
            _object(NodeClass.KIND.kind, name, {"nodeSelector": {"matchLabels": dict(labels)}})
            for name, labels in self.selectors.items()
        ]

    def benchmark(self, name: str) -> dict[str, Any]:
        """Returns the benchmark object."""
        kind, first = next((kind.model.KIND.kind, kind.first) for kind in kinds() if kind.first is not None)
        spec: dict[str, Any] = {
            "servers": {"nodeClassNames": list(self.servers)},
            "clients": {"nodeClassNames": list(self.clients)},
            **first,
        }
        if self.colocated:
            spec["colocation"] = "Allowed"
        return _object(kind, name, spec)


def _object(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def propose(nodes: Iterable[NodeView]) -> Proposal | None:
    """Returns a proposal for nodes that can run pods; None if there are none."""
    known = sorted(nodes, key=lambda node: node.name)
    if not known:
        return None
    if len(known) == 1:
        return _single(known[0])
    label, groups = _grouped(known)
    names = _class_names(groups)
    selectors: dict[str, Mapping[str, str]] = {names[value]: {label: value} for value in groups}
    notes = [f"Node classes by the label {label}: {_listed(names, groups)}."]
    if label == HOSTNAME:
        notes.append(_single_nodes_note(known, groups))
    clients, colocated = _clients(names, groups, selectors, notes)
    servers = tuple(name for name in selectors if name != CLIENT)
    return Proposal(selectors, servers, clients, colocated, tuple(notes))


def propose_from_classes(names: Sequence[str]) -> Proposal | None:
    """Returns a proposal from existing node classes, for a user who may not list nodes; None if there are none."""
    servers = tuple(sorted(names)[:_MAXIMUM_CLASSES])
    if not servers:
        return None
    note = "Without the right to list nodes, this compares the node classes that exist. Their nodes may be alike."
    return Proposal({}, servers, servers[:1], colocated=True, notes=(note, _COLOCATED_NOTE))


_COLOCATED_NOTE: Final = (
    "The client may share its node with a server. Traffic within a node is faster than any network, so compare such "
    "cases with care, or name a separate class in spec.clients.nodeClassNames and remove colocation."
)


def _single(node: NodeView) -> Proposal:
    name = _name(node.architecture or node.name)
    note = (
        f"The cluster has one node that can run pods, {node.name}: node classes cannot be compared. This measures the "
        "node itself, with server and client on it. Add a node of another kind, and run init again."
    )
    return Proposal({name: {HOSTNAME: _hostname(node)}}, (name,), (name,), colocated=True, notes=(note,))


def _grouped(nodes: Sequence[NodeView]) -> tuple[str, dict[str, list[NodeView]]]:
    """Returns the first label that divides all nodes into two to eight groups, and the groups; else one node per
    group."""
    boards = sorted({key for node in nodes for key in node.labels if _BOARD_LABEL.search(key)})
    for label in (ARCHITECTURE, INSTANCE_TYPE, *boards):
        groups: dict[str, list[NodeView]] = {}
        for node in nodes:
            groups.setdefault(node.labels.get(label, ""), []).append(node)
        if "" not in groups and 1 < len(groups) <= _MAXIMUM_CLASSES:
            return label, dict(sorted(groups.items()))
    return HOSTNAME, {_hostname(node): [node] for node in nodes[:_MAXIMUM_CLASSES]}


def _single_nodes_note(nodes: Sequence[NodeView], groups: Mapping[str, Sequence[NodeView]]) -> str:
    kinds = {(node.architecture, node.cpu_millicores, node.memory_bytes) for node in nodes}
    left = len(nodes) - len(groups)
    rest = f" {left} more nodes are left out." if left else ""
    if len(kinds) == 1:
        return (
            "All nodes are alike (same architecture, CPUs and memory): classes of hardware cannot be compared, only "
            f"single nodes.{rest}"
        )
    return f"No label distinguishes kinds of nodes, so each node is a class of its own.{rest}"


def _clients(
    names: Mapping[str, str],
    groups: Mapping[str, Sequence[NodeView]],
    selectors: dict[str, Mapping[str, str]],
    notes: list[str],
) -> tuple[tuple[str, ...], bool]:
    """Returns the client classes, and whether a client may share a server's node. May move a node to a class for
    clients."""
    largest = max(groups, key=lambda value: len(groups[value]))
    if len(groups[largest]) > 1:
        notes.append(f"The client runs on a node of class {names[largest]} that serves no files.")
        return (names[largest],), False
    if len(groups) > 2:  # noqa: PLR2004 (two classes to compare, and one for the client)
        last = max(groups, key=lambda value: groups[value][0].name)
        selectors[CLIENT] = selectors.pop(names[last])
        notes.append(f"The client runs on {groups[last][0].name}, which is not compared.")
        return (CLIENT,), False
    notes.append(_COLOCATED_NOTE)
    return (names[largest],), True


def _class_names(groups: Mapping[str, Sequence[NodeView]]) -> dict[str, str]:
    """Returns a class name per label value, all different."""
    found: dict[str, str] = {}
    for value in groups:
        name = _name(value)
        while name in found.values() or name == CLIENT:
            name = f"{name[:60]}-x"
        found[value] = name
    return found


def _name(text: str) -> str:
    """Returns the text as the name of a NodeClass."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:63].strip("-") or "nodes"


def _hostname(node: NodeView) -> str:
    return node.labels.get(HOSTNAME, node.name)


def _listed(names: Mapping[str, str], groups: Mapping[str, Sequence[NodeView]]) -> str:
    return ", ".join(
        f"{names[value]} ({len(group)} node{'s' if len(group) > 1 else ''})" for value, group in groups.items()
    )
