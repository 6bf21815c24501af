"""Runs the operator as a task of a test, against a real API server."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

import pytest
from kubernetes.config import kube_config

from tests.api.waiting import SECONDS, eventually
from tests.ports import free_ports
from tests.unit.controller.test_settings import ENVIRONMENT
from tierbench.api.policy import Quotas
from tierbench.controller import node_classes
from tierbench.controller.main import operate
from tierbench.controller.settings import Settings
from tierbench.kube import leader_election


@asynccontextmanager
async def operator(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch, namespace: str, quotas: Quotas | None = None
) -> AsyncIterator[int]:
    """Yields the operator's port when it is ready.

    The operator watches one namespace, and its release has the same name.
    """
    context = {"name": "test", "context": {"cluster": "test", "user": "anonymous"}}
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "test", "cluster": {"server": url}}],
                "users": [{"name": "anonymous", "user": {}}],
                "contexts": [context],
                "current-context": "test",
            }
        )
    )
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))  # the library reads the variable when it is imported
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(kubeconfig))
    (port,) = free_ports(1)
    settings = replace(
        Settings.from_environment(ENVIRONMENT),
        release=f"bench/{namespace}",
        http_port=port,
        watch_namespaces=(namespace,),
        quotas=quotas or Quotas(),
    )
    loop = asyncio.get_running_loop()

    def end() -> None:
        loop.call_soon_threadsafe(running.cancel)

    async def is_ready() -> bool:
        if running.done():
            await running  # raises the error that ended it
        return await answers(port, "readyz")

    monkeypatch.setattr(leader_election, "RENEW_DEADLINE_SECONDS", SECONDS)  # a busy machine may renew a Lease late
    monkeypatch.setattr(node_classes, "_PAUSE_SECONDS", 0.1)
    others = asyncio.all_tasks()
    running = asyncio.create_task(operate(settings, end))
    try:
        await eventually(is_ready)
        yield port
    finally:
        running.cancel()
        while running in (await asyncio.wait({running}, timeout=1))[1]:
            for task in asyncio.all_tasks() - others:  # a request that is timing out ignores the cancellation
                task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def answer(port: int, path: str) -> str:
    """Returns the operator's response for this path. Raises OSError."""

    def read() -> str:
        with urlopen(f"http://127.0.0.1:{port}/{path}", timeout=SECONDS) as found:
            text: str = found.read().decode()
            return text

    return await asyncio.to_thread(read)


async def answers(port: int, path: str) -> bool:
    try:
        await answer(port, path)
    except OSError:
        return False
    return True
