"""Logs of client pods, followed while they run: a line that was printed is not lost when its pod is deleted."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field

from tierbench.domain.observed import FailedRequest, PodLog
from tierbench.domain.views import PodView
from tierbench.kube.client import Kube
from tierbench.kube.errors import REQUEST_ERRORS, ApiError
from tierbench.results.parser import Output, OutputParser, SealState, check_seal
from tierbench.workloads.names import CLIENT

_AGAIN_SECONDS = 1.0
_GONE = "NotFound"  # the pod; of a node that does not answer there are other reasons
_logger = logging.getLogger(__name__)


@dataclass
class _Followed:
    """What is known of one pod's log. `trouble` is since when, and why, it cannot be read to its end."""

    output: Output = field(default_factory=Output)
    complete: bool = False
    trouble: FailedRequest | None = None
    task: asyncio.Task[None] | None = None

    def take(self, output: Output) -> bool:
        """Takes in what a reading has come to, unless an earlier one came further."""
        further = (output.lines, output.begun) > (self.output.lines, self.output.begun)
        if further:
            self.output = output
        return further

    def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
            self.task = None


class LogFollower:
    """Follows the logs of one benchmark's client pods; `wake` is called when a line has come."""

    def __init__(self, kube: Kube, namespace: str, wake: Callable[[], None]) -> None:
        self._kube = kube
        self._namespace = namespace
        self._wake = wake
        self._pods: dict[str, _Followed] = {}

    async def read(self, pods: Iterable[PodView]) -> dict[str, PodLog]:
        """What the pods have printed, by uid. A pod that has ended is read to its end first."""
        clients = {pod.uid: pod for pod in pods}
        for uid in self._pods.keys() - clients.keys():
            self._pods.pop(uid).stop()
        for pod in clients.values():
            known = self._pods.setdefault(pod.uid, _Followed())
            if pod.terminated is not None:
                await self._finish(pod, known)
            elif pod.started and known.task is None:
                known.task = asyncio.create_task(self._follow(pod, known))
        return {uid: PodLog(known.output, known.complete, known.trouble) for uid, known in self._pods.items()}

    async def _finish(self, pod: PodView, known: _Followed) -> None:
        """Reads a log that will grow no more, unless all that its seal tells of has been followed already."""
        if known.complete:
            return
        known.stop()
        if pod.terminated is not None and check_seal(known.output, pod.terminated.message).state is SealState.COMPLETE:
            known.complete = True
            return
        try:
            known.take((await self._read(pod, None)).output)
        except REQUEST_ERRORS as error:
            if isinstance(error, ApiError) and error.reason == _GONE:
                known.complete = True
                return
            _logger.warning("The log of pod %s/%s cannot be read to its end: %s", self._namespace, pod.name, error)
            since = self._kube.now() if known.trouble is None else known.trouble.since
            known.trouble = FailedRequest(since, str(error) or type(error).__name__)
        else:
            known.complete, known.trouble = True, None

    async def _follow(self, pod: PodView, known: _Followed) -> None:
        while True:
            try:
                if (await self._read(pod, known)).is_full:
                    return
            except REQUEST_ERRORS as error:
                _logger.debug("Following the log of pod %s/%s: %s", self._namespace, pod.name, error)
            except Exception:
                _logger.exception("The log of pod %s/%s is read when it has ended", self._namespace, pod.name)
                return
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _read(self, pod: PodView, known: _Followed | None) -> OutputParser:
        """The log from its first line. If it is followed, `known` is told of each line as it comes."""
        reader = OutputParser()
        async with aclosing(self._kube.log(self._namespace, pod.name, CLIENT, follow=known is not None)) as pieces:
            async for piece in pieces:
                if reader.feed(piece) and known is not None and known.take(reader.output):
                    self._wake()
                if reader.is_full:
                    break
        return reader

    def close(self) -> None:
        """Stops following."""
        for known in self._pods.values():
            known.stop()
        self._pods.clear()
