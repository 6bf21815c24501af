"""Creates simulated nodes and their classes."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final

from benchmarks.scale.connection import all_of
from benchmarks.scale.kubelet import SIMULATED
from tests.e2e.benchmarks import node_class
from tests.e2e.kubectl import Kubectl
from tierbench.kube.client import Kube
from tierbench.kube.meta import NODES, format_time

CLASS_LABEL: Final = "scale"
MANAGED: Final = {"kwok.x-k8s.io/node": "fake"}
_DOWN_SECONDS: Final = 5.0


def names(node_class: str, number: int) -> list[str]:
    """Returns the names of the nodes of a class."""
    return [f"{SIMULATED}{node_class}-{index}" for index in range(number)]


@asynccontextmanager
async def simulated(kube: Kube, kubectl: Kubectl, classes: dict[str, int]) -> AsyncIterator[None]:
    """Keeps this many nodes of each class Ready until the context ends."""
    nodes = [(one, name) for one, number in classes.items() for name in names(one, number)]
    try:
        await all_of(kube.create(NODES, None, _node(name, one)) for one, name in nodes)
        await asyncio.to_thread(kubectl.apply, *(node_class(one, **{CLASS_LABEL: one}) for one in classes))
        await _ready(kube, len(nodes))
        yield
    finally:
        await all_of(kube.delete(NODES, None, name) for _, name in nodes)
        await asyncio.to_thread(kubectl, "delete", "nodeclasses", *classes)


def _node(name: str, node_class: str) -> dict[str, Any]:
    labels = {CLASS_LABEL: node_class, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    metadata = {"name": name, "labels": labels, "annotations": MANAGED}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata}


async def _ready(kube: Kube, number: int) -> None:
    """Waits until this many nodes are Ready. Removes their taints: the node controller removes only four per second."""
    while True:
        ready, tainted = 0, []
        async for node in kube.each(NODES):
            conditions = {item["type"]: item["status"] for item in node.get("status", {}).get("conditions", ())}
            if node["metadata"]["name"].startswith(SIMULATED) and conditions.get("Ready") == "True":
                ready += 1
                tainted += [node["metadata"]["name"]] if node["spec"].get("taints") else []
        if ready >= number and not tainted:
            return
        await all_of(kube.merge(NODES, None, name, {"spec": {"taints": None}}) for name in tainted)
        await asyncio.sleep(0.5)


async def flap(kube: Kube, flapping: Sequence[str], period: float) -> None:
    """Takes one node after the other down for a while, each once per period, without end."""
    pause = period / len(flapping)
    async with asyncio.TaskGroup() as group:
        for name in itertools.cycle(flapping):
            group.create_task(_flap(kube, name))
            await asyncio.sleep(pause)


async def _flap(kube: Kube, name: str) -> None:
    await _report(kube, name, ready=False)
    await asyncio.sleep(_DOWN_SECONDS)
    await _report(kube, name, ready=True)


async def _report(kube: Kube, name: str, *, ready: bool) -> None:
    """Sets the Ready condition of a node."""
    now = format_time(datetime.now(UTC))
    reason = "KubeletReady" if ready else "KubeletNotReady"
    condition = {"type": "Ready", "status": str(ready), "reason": reason, "lastHeartbeatTime": now}
    await kube.request(
        "PATCH",
        NODES.path(None, name, "status"),
        body={"status": {"conditions": [{**condition, "lastTransitionTime": now}]}},
        content_type="application/strategic-merge-patch+json",
    )
