"""The operator, as a task of the test's own, on a real API server."""

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

from tests.ports import free_ports
from tests.unit.controller.test_controller import ENVIRONMENT
from tierbench.api.quotas import Quotas
from tierbench.controller.main import operate
from tierbench.controller.settings import Settings


@asynccontextmanager
async def operator(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch, namespace: str = "default", quotas: Quotas | None = None
) -> AsyncIterator[int]:
    """The operator's port, once it is ready. It runs the benchmarks of one namespace."""
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
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))  # where it is read; else when it was imported
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(kubeconfig))
    (port,) = free_ports(1)
    settings = replace(
        Settings.from_environment(ENVIRONMENT),
        http_port=port,
        watch_namespaces=(namespace,),
        quotas=quotas or Quotas(),
    )
    loop = asyncio.get_running_loop()

    def end() -> None:
        loop.call_soon_threadsafe(running.cancel)

    running = asyncio.create_task(operate(settings, end))
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
