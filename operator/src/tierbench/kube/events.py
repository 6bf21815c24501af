"""Events of objects, for `kubectl describe`."""

import contextlib
from collections.abc import Mapping
from typing import Final

from tierbench.kube.client import Kube
from tierbench.kube.clock import format_time
from tierbench.kube.errors import REQUEST_ERRORS
from tierbench.kube.resources import EVENTS

_LONGEST_MESSAGE: Final = 1024


class EventRecorder:
    """Records events of one object. `reference` is its ObjectReference, `controller` the reporting controller."""

    def __init__(self, kube: Kube, reference: Mapping[str, str], component: str, controller: str) -> None:
        self._kube = kube
        self._reference = reference
        self._component = component
        self._controller = controller
        self._recorded: set[str] = set()

    async def event(self, reason: str, message: str, *, warning: bool = False) -> None:
        """Records an event. Raises ApiError."""
        stamp = format_time(self._kube.now())
        name, namespace = self._reference["name"], self._reference["namespace"]
        body = {
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
        await self._kube.create(EVENTS, namespace, body)

    async def warn_once(self, reason: str, message: str) -> None:
        """Records a warning with a message that this recorder has not recorded yet. Ignores a failed request."""
        if message in self._recorded:
            return
        with contextlib.suppress(*REQUEST_ERRORS):
            await self.event(reason, message, warning=True)
            self._recorded.add(message)
