"""Sends many requests at once to the API server, as the administrator or as another user."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from kubernetes import config
from kubernetes.aio.client import ApiClient, Configuration

from tierbench.kube.client import Kube

_load_kube_config: Callable[..., None] = config.load_kube_config
_AT_ONCE: Final = 32


@asynccontextmanager
async def connected(kubeconfig: Path, user: str = "") -> AsyncIterator[Kube]:
    """Opens a connection that impersonates `user`."""
    configuration = Configuration()
    _load_kube_config(str(kubeconfig), client_configuration=configuration)
    async with ApiClient(configuration) as client:
        if user:
            client.set_default_header("Impersonate-User", user)
        yield Kube(client)


async def all_of(work: Iterable[Awaitable[Any]]) -> None:
    """Awaits all coroutines, a few at a time. Stops at the first error."""
    todo = iter(work)

    async def worker() -> None:
        for one in todo:
            await one

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(worker())
