"""Records events of objects."""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from tierbench.kube.client import REQUEST_ERRORS, Kube
from tierbench.kube.meta import EVENTS, format_time

_LONGEST_MESSAGE: Final = 1024
_MOST_POSTED: Final = 100
_FLUSH_SECONDS: Final = 2.0
_logger = logging.getLogger(__name__)


class EventRecorder:
    """Records events of one object. `reference` is its ObjectReference, `controller` the reporting controller."""

    def __init__(self, kube: Kube, reference: Mapping[str, str], component: str, controller: str) -> None:
        self._kube = kube
        self._reference = reference
        self._component = component
        self._controller = controller
        self._recorded: set[str] = set()
        self._posted: deque[Mapping[str, Any]] = deque()
        self._posting: asyncio.Task[None] | None = None

    async def event(self, reason: str, message: str, *, warning: bool = False) -> None:
        """Records an event. Raises ApiError."""
        await self._create(self._body(reason, message, warning=warning))

    async def post(self, reason: str, message: str, *, warning: bool = False) -> None:
        """Records an event in the background, after those that were posted before. Logs a failed request.

        Returns at once, unless too many events wait: then it waits until they are recorded.
        """
        if self._posting is not None and len(self._posted) >= _MOST_POSTED:
            await asyncio.wait({self._posting})
        self._posted.append(self._body(reason, message, warning=warning))
        if self._posting is None or self._posting.done():
            self._posting = asyncio.create_task(self._post_all())

    async def flush(self) -> None:
        """Waits a moment until all posted events are recorded."""
        if self._posting is not None:
            await asyncio.wait({self._posting}, timeout=_FLUSH_SECONDS)

    async def _post_all(self) -> None:
        while self._posted:
            body = self._posted.popleft()
            try:
                await self._create(body)
            except REQUEST_ERRORS as error:
                extra = {"object": self._reference["name"], "reason": body["reason"], "error": str(error)}
                _logger.warning("cannot record an event", extra=extra)

    async def _create(self, body: Mapping[str, Any]) -> None:
        await self._kube.create(EVENTS, self._reference["namespace"], body)

    def _body(self, reason: str, message: str, *, warning: bool) -> dict[str, Any]:
        stamp = format_time(self._kube.now())
        name, namespace = self._reference["name"], self._reference["namespace"]
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{name}.", "namespace": namespace},
            "involvedObject": dict(self._reference),
            "reason": reason,
            "message": message[:_LONGEST_MESSAGE],
            "type": "Warning" if warning else "Normal",
            "source": {"component": self._component},
            "reportingComponent": self._controller,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }

    async def warn_once(self, reason: str, message: str) -> None:
        """Records a warning with a message that this recorder has not recorded yet. Ignores a failed request."""
        if message in self._recorded:
            return
        with contextlib.suppress(*REQUEST_ERRORS):
            await self.event(reason, message, warning=True)
            self._recorded.add(message)
