"""Keeps the statuses of node classes as their nodes make them."""

import asyncio
import contextlib
import logging
from typing import Final

from tierbench.controller.context import Context
from tierbench.kube.client import UNANSWERED

_REST_SECONDS: Final = 5.0
_AGAIN_SECONDS: Final = 5.0
_logger = logging.getLogger(__name__)


async def keep_node_classes(context: Context) -> None:
    """Writes them when nodes or classes have changed, at most every five seconds; tries again what was refused."""
    changed, again = context.classes_changed, False
    while True:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(changed.wait(), _AGAIN_SECONDS if again else None)
        changed.clear()
        with context.metrics.working("statuses of node classes"):
            again = not await _write(context)
        await asyncio.sleep(_REST_SECONDS)


async def _write(context: Context) -> bool:
    try:
        await context.cluster.write_class_statuses(context.kube)
    except UNANSWERED as error:
        _logger.warning("Statuses of node classes: %s; trying again", error)
        return False
    return True
