"""Waiting for what another process does. The bound only catches a hang: it is the same for everything."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tests.cluster.processes import wait
from tests.timeouts import TIMEOUT_FACTOR

SECONDS = 60 * TIMEOUT_FACTOR


T = TypeVar("T")


def wait_for(look: Callable[[], T], what: str) -> T:
    """What a look gives once it gives something. Raises ClusterError that names `what`."""
    found: list[T] = []

    def is_there() -> bool:
        found[:] = [look()]
        return bool(found[0])

    wait(is_there, what, SECONDS)
    return found[0]


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    """The same in a test that runs the operator itself, which continues meanwhile."""
    async with asyncio.timeout(SECONDS):
        while not await holds():  # noqa: ASYNC110 (what is asked is of another process)
            await asyncio.sleep(0.1)
