"""Nodes for tests of what is chosen among them."""

from collections.abc import Mapping

from tierbench.domain.proposal import ARCHITECTURE, HOSTNAME
from tierbench.domain.views import NodeView, node_view


def node(name: str, architecture: str = "amd64", labels: Mapping[str, str] | None = None) -> NodeView:
    """A usable node with these labels and those that every kubelet sets."""
    return node_view(
        {
            "metadata": {"name": name, "labels": {HOSTNAME: name, ARCHITECTURE: architecture, **(labels or {})}},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "capacity": {"cpu": "4", "memory": "8Gi"},
                "nodeInfo": {"architecture": architecture},
            },
        }
    )
