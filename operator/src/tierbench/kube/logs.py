"""Logs of client pods, followed while they run: a line that was printed is not lost when its pod is deleted."""

import asyncio
import logging
from collections.abc import Callable, Iterable

import aiohttp

from tierbench.domain.observed import PodLog
from tierbench.domain.views import PodView
from tierbench.kube.client import ApiError, Kube

_AGAIN_SECONDS = 1.0
_logger = logging.getLogger(__name__)


class LogFollower:
    """Follows the logs of one benchmark's client pods; `wake` is called when a line has come."""

    def __init__(self, kube: Kube, namespace: str, wake: Callable[[], None]) -> None:
        self._kube = kube
        self._namespace = namespace
        self._wake = wake
        self._texts: dict[str, str] = {}
        self._complete: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def read(self, pods: Iterable[PodView]) -> dict[str, PodLog]:
        """What the pods have printed, by uid. A pod that has ended is read to its end first."""
        clients = {pod.uid: pod for pod in pods}
        for uid in [uid for uid in self._tasks if uid not in clients]:
            self._tasks.pop(uid).cancel()
        for pod in clients.values():
            if pod.terminated is not None:
                await self._finish(pod)
            elif pod.started and pod.uid not in self._tasks:
                self._tasks[pod.uid] = asyncio.create_task(self._follow(pod))
        for uid in [uid for uid in self._texts if uid not in clients]:
            del self._texts[uid]
            self._complete.discard(uid)
        return {uid: PodLog(self._texts.get(uid, ""), uid in self._complete) for uid in clients}

    async def _finish(self, pod: PodView) -> None:
        """Reads a log that will grow no more; if the node no longer gives it, what was followed has to do."""
        if pod.uid in self._complete:
            return
        task = self._tasks.pop(pod.uid, None)
        if task is not None:
            task.cancel()
        try:
            text = await self._kube.log(self._namespace, pod.name)
        except (ApiError, aiohttp.ClientError, TimeoutError) as error:
            _logger.warning("The log of pod %s/%s cannot be read to its end: %s", self._namespace, pod.name, error)
            text = ""
        self._texts[pod.uid] = max(text, self._texts.get(pod.uid, ""), key=len)
        self._complete.add(pod.uid)

    async def _follow(self, pod: PodView) -> None:
        while True:
            try:
                text = ""
                async for line in self._kube.follow(self._namespace, pod.name):
                    text += line
                    if len(text) > len(self._texts.get(pod.uid, "")):
                        self._texts[pod.uid] = text
                        self._wake()
            except (ApiError, aiohttp.ClientError, TimeoutError) as error:
                _logger.debug("Following the log of pod %s/%s: %s", self._namespace, pod.name, error)
            await asyncio.sleep(_AGAIN_SECONDS)

    def close(self) -> None:
        """Stops following."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
