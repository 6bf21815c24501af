"""What all benchmarks share a view of: nodes and node classes, kept current by watches."""

import logging
from collections.abc import Mapping
from typing import Any

from tierbench.api.model import API_VERSION
from tierbench.api.node_class import NodeClass, NodeClassStatus
from tierbench.domain.children import PARSE_ERRORS
from tierbench.domain.definitions import Definitions
from tierbench.domain.node_classes import resolve
from tierbench.domain.views import NodeView, node_view
from tierbench.kube.client import NODE_CLASSES, UNANSWERED, Kube, NotFoundError, is_never_taken

_logger = logging.getLogger(__name__)


class ClusterView:
    """Nodes and node classes by name, as watches show them."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeView] = {}
        self.classes: dict[str, NodeClass] = {}
        self._refused: dict[str, tuple[NodeClassStatus, Definitions]] = {}

    def see_node(self, raw: Mapping[str, Any], *, deleted: bool) -> bool:
        """Takes in a node; whether anything that matters has changed. One that cannot be understood is none."""
        name = raw["metadata"]["name"]
        before = self.nodes.pop(name, None)
        if deleted:
            return True
        try:
            self.nodes[name] = node_view(raw)
        except PARSE_ERRORS as error:
            _logger.warning("Node %s cannot be understood, and is left out: %s", name, error)
        return self.nodes.get(name) != before

    def see_class(self, raw: Mapping[str, Any], *, deleted: bool) -> bool:
        """Takes in a node class; whether its spec has changed. One that cannot be understood is none."""
        name = raw["metadata"]["name"]
        before = self.classes.pop(name, None)
        if deleted:
            return True
        try:
            self.classes[name] = NodeClass.model_validate(raw)
        except PARSE_ERRORS as error:
            _logger.warning("NodeClass %s cannot be understood, and is left out: %s", name, error)
        after = self.classes.get(name)
        return (before and before.spec) != (after and after.spec)

    async def write_class_statuses(self, kube: Kube) -> None:
        """Writes the status of every class that is not what its nodes make it. Raises the first error at its end.

        One that is not taken is not written again before it, or what is served, has changed.
        """
        errors = []
        for item in list(self.classes.values()):
            try:
                status = resolve(item, self.nodes.values())
                if status == item.status or self._refused.get(item.metadata.name) == (status, kube.definitions):
                    continue
                written = await kube.apply_status(NODE_CLASSES, None, _class_status(item, status))
                self.see_class(written, deleted=False)
            except NotFoundError:
                continue
            except PARSE_ERRORS as error:
                _logger.warning("NodeClass %s has a node that cannot be understood: %s", item.metadata.name, error)
            except UNANSWERED as error:
                if is_never_taken(error):
                    self._refused[item.metadata.name] = status, kube.definitions
                errors.append(error)
        if errors:
            raise errors[0]


def _class_status(item: NodeClass, status: NodeClassStatus) -> dict[str, Any]:
    head = {"name": item.metadata.name}
    if item.metadata.resource_version is not None:
        head["resourceVersion"] = item.metadata.resource_version
    return {"apiVersion": API_VERSION, "kind": NodeClass.KIND.kind, "metadata": head, "status": status.to_json()}
