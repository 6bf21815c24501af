"""What all benchmarks share a view of: nodes and node classes, kept current by watches."""

from collections.abc import Mapping
from typing import Any

from tierbench.api.model import API_VERSION
from tierbench.api.node_class import NodeClass, NodeClassStatus
from tierbench.domain.node_classes import resolve
from tierbench.domain.views import NodeView, node_view
from tierbench.kube.client import NODE_CLASSES, NODES, Kube


class ClusterView:
    """Nodes and node classes by name. Filled once by `load`, then fed by watch events."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeView] = {}
        self.classes: dict[str, NodeClass] = {}

    async def load(self, kube: Kube) -> None:
        """Reads all nodes and node classes."""
        self.nodes = {node.name: node for node in map(node_view, await kube.list(NODES))}
        classes = map(NodeClass.model_validate, await kube.list(NODE_CLASSES))
        self.classes = {item.metadata.name: item for item in classes}

    def see_node(self, raw: Mapping[str, Any], *, deleted: bool) -> bool:
        """Takes in a node; whether anything that matters has changed."""
        node = node_view(raw)
        before = self.nodes.pop(node.name, None)
        if not deleted:
            self.nodes[node.name] = node
        return deleted or node != before

    def see_class(self, raw: Mapping[str, Any], *, deleted: bool) -> bool:
        """Takes in a node class; whether its spec has changed."""
        item = NodeClass.model_validate(raw)
        before = self.classes.pop(item.metadata.name, None)
        if not deleted:
            self.classes[item.metadata.name] = item
        return deleted or before is None or before.spec != item.spec

    async def write_class_statuses(self, kube: Kube) -> None:
        """Writes the status of every class that is not what its nodes make it now."""
        for item in list(self.classes.values()):
            status = resolve(item, self.nodes.values())
            if status != item.status:
                await kube.apply_status(NODE_CLASSES, None, _class_status(item.metadata.name, status))


def _class_status(name: str, status: NodeClassStatus) -> dict[str, Any]:
    body: dict[str, Any] = {"apiVersion": API_VERSION, "kind": NodeClass.KIND.kind, "metadata": {"name": name}}
    return {**body, "status": status.to_json()}
