"""Checks the operator's health: when it is ready, and how long the longest step blocks its event loop."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import aiohttp

from benchmarks.scale.process import Process

_PORT: Final = 8081
_PAUSE_SECONDS: Final = 0.05
_TIMEOUT: Final = aiohttp.ClientTimeout(total=30)


@asynccontextmanager
async def waits(address: str) -> AsyncIterator[list[float]]:
    """Requests a pod's health repeatedly, and yields the seconds until each answer."""
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


async def ready_after(address: str, process: Process, seconds: float) -> float | None:
    """Returns the age of a process when it reports that it is ready, or None if it ends first or is too slow."""
    async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:
        while (age := process.age_seconds) is not None and age < seconds:
            with suppress(aiohttp.ClientError):  # it has not started yet
                async with session.get(f"http://{address}:{_PORT}/readyz") as response:
                    if response.ok:
                        return process.age_seconds
            await asyncio.sleep(_PAUSE_SECONDS)
    return None
