"""The nodes of a node class."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from tierbench.api.benchmark import NodeAssignment
from tierbench.api.node_class import (
    NodeClass,
    NodeClassStatus,
    NodeSelector,
    NodeSummary,
    SelectorOperator,
    SelectorRequirement,
)
from tierbench.api.quantity import format_size
from tierbench.api.result import NodeFacts
from tierbench.domain import reasons
from tierbench.domain.views import NodeView

_MAXIMUM_LISTED = 64


def matches(selector: NodeSelector, labels: Mapping[str, str]) -> bool:
    """Whether a selector matches these labels, as metav1.LabelSelector does."""
    equal = all(labels.get(key) == value for key, value in selector.match_labels.items())
    return equal and all(_meets(requirement, labels) for requirement in selector.match_expressions)


def _meets(requirement: SelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case SelectorOperator.IN:
            return value in requirement.values
        case SelectorOperator.NOT_IN:
            return value not in requirement.values
        case SelectorOperator.EXISTS:
            return value is not None
        case SelectorOperator.DOES_NOT_EXIST:
            return value is None


def members(node_class: NodeClass, nodes: Iterable[NodeView]) -> tuple[NodeView, ...]:
    """Returns the nodes of a class, by name."""
    selector = node_class.spec.node_selector
    return tuple(sorted((node for node in nodes if matches(selector, node.labels)), key=lambda node: node.name))


def usable(node: NodeView) -> bool:
    """Whether a benchmark may start on the node: it is Ready and schedulable."""
    return node.ready and node.schedulable


def resolve(node_class: NodeClass, nodes: Iterable[NodeView]) -> NodeClassStatus:
    """Returns the status of a class with these nodes. Its conditions stay as they are."""
    chosen = members(node_class, nodes)
    listed = tuple(
        NodeSummary(name=node.name, ready=usable(node), architecture=node.architecture)
        for node in chosen[:_MAXIMUM_LISTED]
    )
    return NodeClassStatus(
        observed_generation=node_class.metadata.generation,
        nodes=len(chosen),
        ready_nodes=sum(usable(node) for node in chosen),
        architectures=",".join(sorted({node.architecture for node in chosen})),
        cpu=_span([node.cpu_millicores for node in chosen], lambda value: f"{value / 1000:g}"),
        memory=_span([node.memory_bytes for node in chosen], _memory),
        members=listed,
        conditions=node_class.status.conditions,
    )


def _span(values: Sequence[int], text: Callable[[int], str]) -> str:
    words = [text(value) for value in sorted(set(values))]
    return "" if not words else words[0] if words[0] == words[-1] else f"{words[0]}-{words[-1]}"


def _memory(size: int) -> str:
    unit = 2**30 if size >= 2**30 else 2**20
    return f"{size / unit:.3g}{format_size(unit)[1:]}"


def assign(name: str, node_class: NodeClass | None, nodes: Iterable[NodeView], needed: int) -> NodeAssignment:
    """Returns the usable nodes of a class, and the reason if they are fewer than needed."""
    if node_class is None:
        message = f"NodeClass {name} does not exist. Create it, or correct the name: see `kubectl get nodeclasses`."
        return NodeAssignment(node_class=name, reason=reasons.NODE_CLASS_NOT_FOUND, message=message)
    chosen = members(node_class, nodes)
    ready = tuple(node.name for node in chosen if usable(node))[:_MAXIMUM_LISTED]
    if len(ready) >= needed:
        return NodeAssignment(node_class=name, nodes=ready)
    if not chosen:
        reason, message = reasons.NO_SUCH_NODE, f"No node matches NodeClass {name}. Label a node, or fix its selector."
    elif not ready:
        reason = reasons.NO_READY_NODE
        message = (
            f"None of the {len(chosen)} nodes of NodeClass {name} is Ready and schedulable. See `kubectl get nodes`."
        )
    else:
        reason = reasons.TOO_FEW_NODES
        message = (
            f"NodeClass {name} has {len(ready)} usable nodes, but {needed} are needed. Add nodes, or lower "
            "spec.servers.nodesPerClass."
        )
    return NodeAssignment(node_class=name, nodes=ready, reason=reason, message=message)


def facts(name: str, node_class: NodeClass | None, node: NodeView | None) -> NodeFacts:
    """Returns what a result keeps of a node."""
    if node is None:
        return NodeFacts(node_class=name)
    return NodeFacts(
        node_class=name,
        node=node.name,
        architecture=node.architecture,
        kernel=node.kernel,
        os_image=node.os_image,
        kubelet=node.kubelet,
        runtime=node.runtime,
        cpu_millicores=node.cpu_millicores,
        memory_bytes=node.memory_bytes,
        access_network=(node_class.spec.access_network if node_class else None) or "",
        storage=(node_class.spec.storage if node_class else None) or "",
    )
