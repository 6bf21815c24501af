"""The operator, behind an API server that forgets to tell it of deletions."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

import pytest
from kubernetes.config import kube_config

from tests.api.forgetful import forgetful
from tests.api.objects import smallest
from tests.api.server import ApiServer, Json
from tests.ports import free_ports
from tests.unit.controller.test_controller import ENVIRONMENT
from tierbench.api.file_transfer import FileTransferBenchmark
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.controller import comparison
from tierbench.controller.main import operate
from tierbench.controller.settings import Settings

CLASSES = "/apis/tierbench.io/v1alpha1/nodeclasses"
NAMESPACED = "/apis/tierbench.io/v1alpha1/namespaces/default"
NODES = "/api/v1/nodes"


@asynccontextmanager
async def operator(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    """The operator's port, once it is ready."""
    context = {"name": "test", "context": {"cluster": "test", "user": "nobody"}}
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "test", "cluster": {"server": url}}],
                "users": [{"name": "nobody", "user": {}}],
                "contexts": [context],
                "current-context": "test",
            }
        )
    )
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))  # read by kopf, and by the other when it was imported
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(kubeconfig))
    monkeypatch.setattr(comparison, "SETTLE_SECONDS", 0.5)
    (port,) = free_ports(1)
    settings = replace(Settings.from_environment(ENVIRONMENT), http_port=port, watch_namespaces=("default",))
    running = asyncio.create_task(operate(settings))
    try:
        await eventually(lambda: answers(port, "readyz"))
        yield port
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await holds():  # noqa: ASYNC110 (what is asked is of another process)
            await asyncio.sleep(0.1)


async def answers(port: int, path: str) -> bool:
    try:
        await asyncio.to_thread(lambda: urlopen(f"http://127.0.0.1:{port}/{path}", timeout=5).close())
    except OSError:
        return False
    return True


async def metrics(port: int) -> str:
    def read() -> str:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            text: str = answer.read().decode()
            return text

    return await asyncio.to_thread(read)


async def test_lost_deletions_are_made_up_for(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
        return f'benchmark="{name}"' in await metrics(port)

    node = {"metadata": {"name": "removed", "labels": {"hw": "forgotten"}}}
    chosen = {"nodeSelector": {"matchLabels": {"hw": "forgotten"}}}
    await ask("POST", NODES, node)
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    await ask("PUT", f"{NODES}/removed/status", {**node, "status": {"conditions": [ready]}})
    for name in ("forgotten", "removed-class"):
        await ask("POST", CLASSES, {**smallest(NodeClass, name), "spec": chosen})
    await ask("POST", f"{NAMESPACED}/filetransferbenchmarks", smallest(FileTransferBenchmark, "removed-files"))
    await ask("POST", f"{NAMESPACED}/placementadvices", smallest(PlacementAdvice, "removed-advice"))
    async with forgetful(server) as (proxy, url), operator(url, tmp_path, monkeypatch) as port:
        await eventually(lambda: counted(1))
        await eventually(lambda: told_of("removed-files"))
        doomed = {
            f"{NODES}/removed",
            f"{CLASSES}/removed-class",
            f"{NAMESPACED}/filetransferbenchmarks/removed-files",
            f"{NAMESPACED}/placementadvices/removed-advice",
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
