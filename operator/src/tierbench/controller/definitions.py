"""Keeps up with what the API server's definitions of our kinds know: they are upgraded apart from the operator."""

import asyncio
import logging
from typing import Any, Final

from tierbench.api.model import API_VERSION, GROUP, VERSION
from tierbench.api.schema import object_schema, resource_types
from tierbench.controller.advisor import Advisor
from tierbench.controller.context import Context
from tierbench.domain.definitions import compare
from tierbench.kube.client import Kube
from tierbench.kube.clock import wait_for_event
from tierbench.kube.errors import REQUEST_ERRORS

_AGAIN_SECONDS: Final = 30.0
_SOON_SECONDS: Final = 2.0
_LOOKS: Final = 5
"""After a write that was refused: what is served is published a little later than it takes effect."""

_PATH: Final = f"apis/{API_VERSION}"
_logger = logging.getLogger(__name__)


class DefinitionsReader:
    """Reads them at the start, after a write that they refuse, and now and then while they differ: else never."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._edition = ""

    async def read(self) -> bool:
        """Whether they are others than before."""
        context, kube = self._context, self._context.kube
        now = await edition(kube)
        if now == self._edition:
            return False
        before, served = context.cluster.definitions, await served_structure(kube)
        context.cluster.definitions = compare(_own(), served)
        kube.prune = context.cluster.definitions.fitted
        self._edition = now
        context.metrics.set_definitions_differ(context.cluster.definitions.reason)
        if context.cluster.definitions.reason and context.cluster.definitions != before:
            _logger.warning("%s", context.cluster.definitions.message)
        return context.cluster.definitions != before

    async def run(self, advisor: Advisor) -> None:
        """Reads them when there is a reason to, for ever."""
        context, looks = self._context, 0
        while True:
            if await wait_for_event(context.definitions_in_doubt, self._seconds(looks)):
                looks = _LOOKS
            context.definitions_in_doubt.clear()
            looks -= 1
            with context.metrics.track("definitions"):
                changed = await self.read_or_leave()
            if changed:
                looks = 0
                context.cluster.changed.set()
                context.workqueue.add_all()
                advisor.add_all()
            await asyncio.sleep(_SOON_SECONDS / 2)

    def _seconds(self, looks: int) -> float | None:
        if looks > 0:
            return _SOON_SECONDS
        unsure = self._context.cluster.definitions.reason or not self._edition
        return _AGAIN_SECONDS if unsure else None

    async def read_or_leave(self) -> bool:
        """The same. If they cannot be read, they are taken for what this version knows."""
        try:
            return await self.read()
        except REQUEST_ERRORS as error:
            _logger.warning("What the CustomResourceDefinitions know cannot be read: %s; trying again", error)
            return False


def _own() -> dict[str, dict[str, Any]]:
    return {model.KIND.kind: object_schema(model) for model in resource_types()}


async def edition(kube: Kube) -> str:
    """What changes with the structure, and is cheap to read; empty while nothing of ours is served."""
    index = await kube.request("GET", "/openapi/v3")
    return str(index["paths"].get(_PATH, {}).get("serverRelativeURL", ""))


async def served_structure(kube: Kube) -> dict[str, dict[str, Any]]:
    """The schema of each kind, by its name. Raises ApiError."""
    document = await kube.request("GET", f"/openapi/v3/{_PATH}")
    return {
        known["kind"]: schema
        for schema in document["components"]["schemas"].values()
        for known in schema.get("x-kubernetes-group-version-kind", ())
        if (known["group"], known["version"]) == (GROUP, VERSION) and "spec" in schema.get("properties", {})
    }
