"""Waits for another process. The only purpose of the time limit is to catch a hang."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tests.cluster.processes import wait
from tests.timeouts import TIMEOUT_FACTOR

SECONDS = 60 * TIMEOUT_FACTOR


T = TypeVar("T")


def wait_for(look: Callable[[], T], what: str) -> T:
    """Returns the first true result of `look`. Raises ClusterError that names `what`."""
    found: list[T] = []

    def is_there() -> bool:
        found[:] = [look()]
        return bool(found[0])

    wait(is_there, what, SECONDS)
    return found[0]


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    """Waits until `holds` returns true, while the operator runs in the same event loop."""
    async with asyncio.timeout(SECONDS):
        while not await holds():  # noqa: ASYNC110 (the state of another process is polled)
            await asyncio.sleep(0.1)
