"""The operator, behind an API server that forgets to tell it of deletions."""

import asyncio
from pathlib import Path

import pytest

from tests.api.forgetful import forgetful
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


async def test_lost_deletions_are_made_up_for(
    server: ApiServer, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that was removed stayed Ready and was assigned, and a deleted benchmark's alert kept firing."""

    async def ask(method: str, path: str, body: Json | None = None) -> Json:
        return await asyncio.to_thread(server.request, method, path, body)

    async def ready_nodes() -> int:
        found: int = (await ask("GET", f"{CLASSES}/forgotten")).get("status", {}).get("readyNodes", -1)
        return found

    async def counted(nodes: int) -> bool:
        return await ready_nodes() == nodes

    async def told_of(name: str) -> bool:
        return f'benchmark="{name}"' in await answer(port, "metrics")

    node = {"metadata": {"name": "removed", "labels": {"hw": "forgotten"}}}
    chosen = {"nodeSelector": {"matchLabels": {"hw": "forgotten"}}}
    await ask("POST", NODES, node)
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    await ask("PUT", f"{NODES}/removed/status", {**node, "status": {"conditions": [ready]}})
    for name in ("forgotten", "removed-class"):
        await ask("POST", CLASSES, {**smallest(NodeClass, name), "spec": chosen})
    for model, name in ((FileTransferBenchmark, "removed-files"), (PlacementAdvice, "removed-advice")):
        await ask("POST", collection(model, namespace), smallest(model, name))
    async with forgetful(server) as (proxy, url), operator(url, tmp_path, monkeypatch, namespace) as port:
        await eventually(lambda: counted(1))
        await eventually(lambda: told_of("removed-files"))
        doomed = {
            f"{NODES}/removed",
            f"{CLASSES}/removed-class",
            item(FileTransferBenchmark, "removed-files", namespace),
            item(PlacementAdvice, "removed-advice", namespace),
        }

        async def watched() -> bool:
            return proxy.watched >= {path.rpartition("/")[0] for path in doomed}

        await eventually(watched)
        proxy.forgetting = True
        for path in doomed:
            await ask("DELETE", path)

        async def forgotten() -> bool:
            return proxy.forgotten >= {path.rpartition("/")[2] for path in doomed}

        await eventually(forgotten)
        assert (await ready_nodes(), await told_of("removed-files")) == (1, True)
        proxy.expire()
        await eventually(lambda: counted(0))

        async def told_no_more() -> bool:
            return not await told_of("removed-files")

        await eventually(told_no_more)
        assert await answers(port, "healthz")
