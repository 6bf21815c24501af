"""Keeps up with what the API server's definitions of our kinds know: they are upgraded apart from the operator."""

import asyncio
import contextlib
import logging
from typing import Any, Final

from tierbench.api.schema import object_schema, resource_types
from tierbench.controller.advisor import Advisor
from tierbench.controller.context import Context
from tierbench.domain.definitions import compare
from tierbench.kube.client import UNANSWERED
from tierbench.kube.definitions import edition, served_structure

_AGAIN_SECONDS: Final = 30.0
_SOON_SECONDS: Final = 2.0
_LOOKS: Final = 5
"""After a write that was refused: what is served is published a little later than it takes effect."""

_logger = logging.getLogger(__name__)


class DefinitionsReader:
    """Reads them at the start, after a write that they refuse, and now and then while they differ: else never."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._edition = ""

    async def read(self) -> bool:
        """Whether they are others than before."""
        kube = self._context.kube
        now = await edition(kube)
        if now == self._edition:
            return False
        before, served = kube.definitions, await served_structure(kube)
        kube.definitions = compare(_own(), served)
        self._edition = now
        self._context.metrics.definitions(kube.definitions.reason)
        if kube.definitions.reason and kube.definitions != before:
            _logger.warning("%s", kube.definitions.message)
        return kube.definitions != before

    async def run(self, advisor: Advisor) -> None:
        """Reads them when there is a reason to, for ever."""
        context, looks = self._context, 0
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(context.definitions_in_doubt.wait(), self._seconds(looks))
                looks = _LOOKS
            context.definitions_in_doubt.clear()
            looks -= 1
            with context.metrics.working("definitions"):
                changed = await self.read_or_leave()
            if changed:
                looks = 0
                context.classes_changed.set()
                context.wakeups.ring_all()
                advisor.look_again()
            await asyncio.sleep(_SOON_SECONDS / 2)

    def _seconds(self, looks: int) -> float | None:
        if looks > 0:
            return _SOON_SECONDS
        unsure = self._context.kube.definitions.reason or not self._edition
        return _AGAIN_SECONDS if unsure else None

    async def read_or_leave(self) -> bool:
        """The same. If they cannot be read, they are taken for what this version knows."""
        try:
            return await self.read()
        except UNANSWERED as error:
            _logger.warning("What the CustomResourceDefinitions know cannot be read: %s; trying again", error)
            return False


def _own() -> dict[str, dict[str, Any]]:
    return {model.KIND.kind: object_schema(model) for model in resource_types()}
