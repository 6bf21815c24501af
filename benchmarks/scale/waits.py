"""How long the operator lets others wait: the longest step that blocks its event loop."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import aiohttp

_PORT: Final = 8081
_PAUSE_SECONDS: Final = 0.05
_TIMEOUT: Final = aiohttp.ClientTimeout(total=30)


@asynccontextmanager
async def waits(address: str) -> AsyncIterator[list[float]]:
    """Asks a pod for its health repeatedly, and yields the seconds until each answer."""
    found: list[float] = []

    async def ask(session: aiohttp.ClientSession) -> None:
        while True:
            began = time.monotonic()
            try:
                async with session.get(f"http://{address}:{_PORT}/healthz") as response:
                    await response.read()
                found.append(time.monotonic() - began)
            except aiohttp.ClientError:  # it has not started yet
                pass
            await asyncio.sleep(_PAUSE_SECONDS)

    async with aiohttp.ClientSession(timeout=_TIMEOUT) as session, asyncio.TaskGroup() as group:
        task = group.create_task(ask(session))
        yield found
        task.cancel()
