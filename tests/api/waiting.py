"""Waiting for what another process does. The bound only catches a hang: it is the same for everything."""

import asyncio
from collections.abc import Awaitable, Callable

from tests.cluster.processes import wait
from tests.patience import PATIENCE

SECONDS = 60 * PATIENCE


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Waits until the condition holds. Raises ClusterError that names `what`."""
    wait(condition, what, SECONDS)


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    """The same in a test that runs the operator itself, which goes on meanwhile."""
    async with asyncio.timeout(SECONDS):
        while not await holds():  # noqa: ASYNC110 (what is asked is of another process)
            await asyncio.sleep(0.1)
