"""Follows the logs of client pods, so that a printed line is not lost when its pod is deleted."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field

from tierbench.domain.decision import FailedRequest, PodLog
from tierbench.domain.views import PodView
from tierbench.kube.client import REQUEST_ERRORS, ApiError, Kube
from tierbench.results.client_output import Output, OutputParser, SealState, check_seal
from tierbench.workloads.workload import CLIENT

_RETRY_SECONDS = 1.0
_GONE = "NotFound"  # the pod is gone; a node that does not answer has other reasons
_logger = logging.getLogger(__name__)


@dataclass
class _Log:
    """The parsed part of one pod's log. `failure` is why, and since when, it cannot be read to its end. `current` says
    whether the last call of `read` has read it to its end."""

    output: Output = field(default_factory=Output)
    complete: bool = False
    current: bool = False
    failure: FailedRequest | None = None
    task: asyncio.Task[None] | None = None

    def update(self, output: Output) -> bool:
        """Stores an output if it has more than the stored one. Returns whether it has."""
        known = self.output
        further = (output.lines, output.begun, output.full) > (known.lines, known.begun, known.full)
        if further:
            self.output = output
        return further

    def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
            self.task = None


class LogFollower:
    """Follows the logs of one benchmark's client pods. Calls `on_line` after each line."""

    def __init__(self, kube: Kube, namespace: str, on_line: Callable[[], None]) -> None:
        self._kube = kube
        self._namespace = namespace
        self._on_line = on_line
        self._pods: dict[str, _Log] = {}

    async def read(self, pods: Iterable[PodView], *, to_now: bool = False) -> dict[str, PodLog]:
        """Returns the logs of pods by UID. Reads the log of a terminated pod to its end first; with `to_now`, also the
        logs of running pods."""
        clients = {pod.uid: pod for pod in pods}
        for uid in self._pods.keys() - clients.keys():
            self._pods.pop(uid).stop()
        for pod in clients.values():
            known = self._pods.setdefault(pod.uid, _Log())
            known.current = False
            if pod.terminated is not None:
                await self._finish(pod, known)
            elif pod.started and known.task is None:
                known.task = asyncio.create_task(self._follow(pod, known))
            if to_now and pod.started and pod.terminated is None:
                await self._read_to_end(pod, known)
        return {
            uid: PodLog(known.output, known.complete, known.failure, known.current or known.complete)
            for uid, known in self._pods.items()
        }

    async def _finish(self, pod: PodView, known: _Log) -> None:
        """Reads the complete log of a terminated pod, unless all that its seal counts has been read."""
        if known.complete:
            return
        known.stop()
        if pod.terminated is not None and check_seal(known.output, pod.terminated.message).state is SealState.COMPLETE:
            known.complete = True
            return
        await self._read_to_end(pod, known)
        known.complete = known.current

    async def _read_to_end(self, pod: PodView, known: _Log) -> None:
        """Reads a log to its current end. That of a pod that is gone has no more."""
        try:
            known.update((await self._read(pod, None)).output)
        except REQUEST_ERRORS as error:
            if isinstance(error, ApiError) and error.reason == _GONE:
                known.current = True
                return
            _logger.warning("cannot read a log to its end; retrying", extra=self._fields(pod, error))
            since = self._kube.now() if known.failure is None else known.failure.since
            known.failure = FailedRequest(since, str(error) or type(error).__name__)
        else:
            known.current, known.failure = True, None

    async def _follow(self, pod: PodView, known: _Log) -> None:
        while True:
            try:
                if (await self._read(pod, known)).is_full:
                    return
            except REQUEST_ERRORS as error:
                _logger.debug("cannot follow a log; retrying", extra=self._fields(pod, error))
            except Exception:
                _logger.exception("cannot follow a log; reading it after the end", extra=self._fields(pod))
                return
            await asyncio.sleep(_RETRY_SECONDS)

    async def _read(self, pod: PodView, known: _Log | None) -> OutputParser:
        """Reads a log from its first line. If `known` is given, follows it and updates `known` after each line."""
        reader = OutputParser()
        async with aclosing(self._kube.log(self._namespace, pod.name, CLIENT, follow=known is not None)) as pieces:
            async for piece in pieces:
                if reader.feed(piece) and known is not None and known.update(reader.output):
                    self._on_line()
                if reader.is_full:
                    break
        return reader

    def _fields(self, pod: PodView, error: Exception | None = None) -> dict[str, str]:
        fields = {"pod": f"{self._namespace}/{pod.name}", "node": pod.node}
        return fields if error is None else {**fields, "error": str(error)}

    def close(self) -> None:
        """Stops following all logs."""
        for known in self._pods.values():
            known.stop()
        self._pods.clear()
