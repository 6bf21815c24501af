"""Before a run: node classes and a first benchmark from the labels of nodes, and an estimate of what a run takes."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tierbench.api.benchmark import Benchmark
from tierbench.api.model import API_VERSION
from tierbench.api.node_class import NodeClass
from tierbench.api.policy import Policy
from tierbench.api.quantity import parse_size
from tierbench.domain.views import NodeView
from tierbench.kinds.registry import kinds, workload_of
from tierbench.workloads.plan import STANDALONE, ServerPlacement, link_rate, plan, plan_blocks
from tierbench.workloads.workload import LINK, Images, Owner

ARCHITECTURE: Final = "kubernetes.io/arch"
HOSTNAME: Final = "kubernetes.io/hostname"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
CLIENT: Final = "client"

_BOARD_LABEL: Final = re.compile(r"(^|[./-])(hw|hardware|board|model|device)$")
_MAXIMUM_CLASSES: Final = 8
_COLOCATED_NOTE: Final = (
    "The client may share its node with a server. Traffic within a node is faster than any network, so compare such "
    "cases with care, or name a separate class in spec.clients.nodeClassNames and remove colocation."
)
_SECONDS_PER_SERVER: Final = 20
_SECONDS_PER_CLIENT: Final = 5
_SECONDS_PER_PREFLIGHT: Final = 15
_BYTES_PER_RESULT: Final = 6_000
_BYTES_PER_TRIAL: Final = 900
"""The size of a result in etcd, without traces: measured, see docs/how-to/make-room-in-etcd.md."""


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


@dataclass(frozen=True)
class Estimate:
    """What a run takes. `servers` counts all setups of servers, and `trials` contains warm-up trials.

    `bytes_moved` is the payload of all trials, or None if it depends on the speed of a server. `bytes_on_disk` is what
    a server prepares on its node, and `bytes_stored` what the results take in etcd, without traces.
    """

    servers: int
    cases: int
    trials: int
    seconds: float
    bytes_moved: int | None
    bytes_on_disk: int
    bytes_stored: int


def estimate(benchmark: Benchmark, bits_per_second: float = LINK) -> Estimate:
    """Returns an estimate for a network of this rate. It expects a node for each server, and no refinement."""
    spec, metadata = benchmark.spec, benchmark.metadata
    owner = Owner(benchmark.KIND.kind, metadata.namespace or "default", metadata.name, metadata.uid or "")
    workload = workload_of(owner, spec, Images(client="", programs={}), Policy())
    placements = workload.server_placements()
    cases = plan(spec, placements, workload.factors)
    groups: dict[object, tuple[ServerPlacement, ...]] = {}
    for placement in placements:
        key = placement.levels if placement.provider == STANDALONE else placement
        groups[key] = (*groups.get(key, ()), placement)
    passes = 1 if len(groups) == 1 else min(spec.order.passes, spec.repetitions)
    blocks = plan_blocks(cases, list(groups.values()), spec.order, spec.repetitions, passes)
    # Each block has its own client, which repeats the warm-up.
    trials = [case for block in blocks for case in block.cases for _ in range(spec.warmup_trials + len(block.trials))]
    loads = [workload.load(case) for case in trials]
    moved = [load.bytes_moved for load in loads if load.bytes_moved is not None]
    seconds = (
        load.duration(min(bits_per_second, link_rate(spec, case))) for case, load in zip(trials, loads, strict=True)
    )
    servers = passes * sum(not placement.external for placement in placements)
    preflights = len(workload.preflight()) * len(placements) * len(spec.clients.placements)
    starts = servers * _SECONDS_PER_SERVER + len(blocks) * _SECONDS_PER_CLIENT + preflights * _SECONDS_PER_PREFLIGHT
    prepared = [
        sum(parse_size(level) for factor in workload.factors(placement) if factor.prepared for level in factor.levels)
        for placement in placements
    ]
    return Estimate(
        servers=servers,
        cases=len(cases),
        trials=len(loads),
        seconds=starts + sum(seconds),
        bytes_moved=sum(moved) if len(moved) == len(loads) else None,
        bytes_on_disk=max(prepared, default=0),
        bytes_stored=len(cases) * (_BYTES_PER_RESULT + _BYTES_PER_TRIAL * (spec.repetitions + spec.warmup_trials)),
    )
