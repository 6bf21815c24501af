"""The operator recovers from deletions that its watches missed."""

import asyncio
from pathlib import Path

import pytest

from tests.api.lossy_proxy import lossy_proxy
from tests.api.objects import collection, item, smallest
from tests.api.operator import answer, answers, operator
from tests.api.server import ApiServer, Json
from tests.api.waiting import eventually
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark

pytestmark = [pytest.mark.apiserver, pytest.mark.timing]

CLASSES = collection(NodeClass)
NODES = "/api/v1/nodes"


async def test_the_operator_recovers_from_missed_deletions(
    server: ApiServer, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise, a removed node stays Ready and assigned, and the alert of a deleted benchmark keeps firing."""

    async def ask(method: str, path: str, body: Json | None = None) -> Json:
        return await asyncio.to_thread(server.request, method, path, body)

    async def ready_nodes() -> int:
        found: int = (await ask("GET", f"{CLASSES}/kept-class")).get("status", {}).get("readyNodes", -1)
        return found

    async def has_ready_nodes(nodes: int) -> bool:
        return await ready_nodes() == nodes

    async def is_exported(name: str) -> bool:
        return f'benchmark="{name}"' in await answer(port, "metrics")

    node = {"metadata": {"name": "removed", "labels": {"hw": "kept-class"}}}
    chosen = {"nodeSelector": {"matchLabels": {"hw": "kept-class"}}}
    await ask("POST", NODES, node)
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    await ask("PUT", f"{NODES}/removed/status", {**node, "status": {"conditions": [ready]}})
    for name in ("kept-class", "removed-class"):
        await ask("POST", CLASSES, {**smallest(NodeClass, name), "spec": chosen})
    for model, name in ((FileTransferBenchmark, "removed-files"), (PlacementAdvice, "removed-advice")):
        await ask("POST", collection(model, namespace), smallest(model, name))
    async with lossy_proxy(server) as (proxy, url), operator(url, tmp_path, monkeypatch, namespace) as port:
        await eventually(lambda: has_ready_nodes(1))
        await eventually(lambda: is_exported("removed-files"))
        deleted = {
            f"{NODES}/removed",
            f"{CLASSES}/removed-class",
            item(FileTransferBenchmark, "removed-files", namespace),
            item(PlacementAdvice, "removed-advice", namespace),
        }

        async def watched() -> bool:
            return proxy.watched >= {path.rpartition("/")[0] for path in deleted}

        await eventually(watched)
        proxy.dropping = True
        for path in deleted:
            await ask("DELETE", path)

        async def are_dropped() -> bool:
            return proxy.dropped >= {path.rpartition("/")[2] for path in deleted}

        await eventually(are_dropped)
        assert (await ready_nodes(), await is_exported("removed-files")) == (1, True)
        proxy.expire()
        await eventually(lambda: has_ready_nodes(0))

        async def is_no_longer_exported() -> bool:
            return not await is_exported("removed-files")

        await eventually(is_no_longer_exported)
        assert await answers(port, "healthz")
