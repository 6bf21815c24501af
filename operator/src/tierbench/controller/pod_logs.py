"""Follows the logs of client pods, so that a printed line is not lost when its pod is deleted.

Where a log cannot be read, the trials that the termination message holds count.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime

from tierbench.api.record import CollectedBy
from tierbench.domain.decision import FailedRequest, PodLog
from tierbench.domain.views import PodView, Termination
from tierbench.kube.client import REQUEST_ERRORS, Kube
from tierbench.results.client_output import Output, OutputParser, SealState, add_sealed, check_seal
from tierbench.workloads.workload import CLIENT

_RETRY_SECONDS = 1.0
_REST_SECONDS = 2.0  # the API server gives up a node that does not answer after half a minute
_EMPTY = "the log is empty, but the client has printed trials"
_logger = logging.getLogger(__name__)


@dataclass
class _Log:
    """The parsed part of one pod's log. `failure` is why, and since when, it cannot be read to its end. `current` says
    whether the last call of `read` has read it to its end. `task` follows it, or reads its `rest`."""

    output: Output = field(default_factory=Output)
    complete: bool = False
    current: bool = False
    failure: FailedRequest | None = None
    task: asyncio.Task[None] | None = None
    rest: bool = False

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
        self.rest = False


class LogFollower:
    """Follows the logs of one benchmark's client pods. Calls `on_line` after each line."""

    def __init__(self, kube: Kube, namespace: str, on_line: Callable[[], None]) -> None:
        self._kube = kube
        self._namespace = namespace
        self._on_line = on_line
        self._pods: dict[str, _Log] = {}

    async def read(self, pods: Iterable[PodView], *, to_now: bool = False) -> dict[str, PodLog]:
        """Returns the logs of pods by UID. Reads the log of a terminated pod to its end, and waits a little for it;
        with `to_now`, also reads the logs of running pods."""
        clients = {pod.uid: pod for pod in pods}
        for uid in self._pods.keys() - clients.keys():
            self._pods.pop(uid).stop()
        for pod in clients.values():
            known = self._pods.setdefault(pod.uid, _Log())
            known.current = False
            if pod.terminated is not None:
                await self._finish(pod, pod.terminated, known)
            elif pod.started and known.task is None:
                known.task = asyncio.create_task(self._follow(pod, known))
            if to_now and pod.started and pod.terminated is None:
                await self._read_to_now(pod, known)
        return {
            uid: PodLog(known.output, known.complete, known.failure, known.current or known.complete)
            for uid, known in self._pods.items()
        }

    async def _finish(self, pod: PodView, ended: Termination, known: _Log) -> None:
        """Reads the complete log of a terminated pod, unless all that its seal counts has been read."""
        if known.complete:
            return
        if known.task is None or not known.rest:
            known.stop()
            known.task, known.rest = asyncio.create_task(self._read_rest(pod, ended, known)), True
        task = known.task
        await asyncio.wait({task}, timeout=_REST_SECONDS)
        if task.done():
            known.stop()
            task.result()

    async def _read_rest(self, pod: PodView, ended: Termination, known: _Log) -> None:
        begun = self._kube.now()
        if not _is_complete(known.output, ended):
            try:
                found = (await self._read(pod, None)).output
            except REQUEST_ERRORS as error:
                self._fail(pod, known, begun, str(error) or type(error).__name__)
                self._take_sealed(known, ended)
                return
            if _has_vanished(found, ended):
                self._fail(pod, known, begun, _EMPTY)
                self._take_sealed(known, ended)
                return
            if known.update(found) and check_seal(found, ended.message).state is SealState.CUT_SHORT:
                return  # a tunnel that is cut ends a log, too: the next read shows whether there is more
        known.output = add_sealed(known.output, ended.message)
        known.complete, known.failure = True, None

    async def _read_to_now(self, pod: PodView, known: _Log) -> None:
        """Reads the log of a running pod to its current end."""
        begun = self._kube.now()
        try:
            known.update((await self._read(pod, None)).output)
        except REQUEST_ERRORS as error:
            self._fail(pod, known, begun, str(error) or type(error).__name__)
        else:
            known.current, known.failure = True, None

    def _take_sealed(self, known: _Log, ended: Termination) -> None:
        """Adds what the seal holds. It replaces a log that has nothing more."""
        known.output = add_sealed(known.output, ended.message)
        incomplete = any(trial.collected_by is CollectedBy.STATUS for trial in known.output.traced)
        known.complete = _is_complete(known.output, ended) and not incomplete

    def _fail(self, pod: PodView, known: _Log, since: datetime, message: str) -> None:
        """Notes that a log cannot be read."""
        level = logging.WARNING if known.failure is None else logging.DEBUG
        _logger.log(level, "cannot read a log to its end; retrying", extra=self._fields(pod, message))
        known.failure = FailedRequest(since if known.failure is None else known.failure.since, message)

    async def _follow(self, pod: PodView, known: _Log) -> None:
        while True:
            try:
                if (await self._read(pod, known)).is_full:
                    return
            except REQUEST_ERRORS as error:
                _logger.debug("cannot follow a log; retrying", extra=self._fields(pod, str(error)))
            except Exception as error:
                _logger.exception("cannot follow a log; reading it after the end", extra=self._fields(pod, str(error)))
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

    def _fields(self, pod: PodView, error: str) -> dict[str, str]:
        return {"pod": f"{self._namespace}/{pod.name}", "node": pod.node, "error": error}

    def close(self) -> None:
        """Stops following all logs."""
        for known in self._pods.values():
            known.stop()
        self._pods.clear()


def _is_complete(output: Output, ended: Termination) -> bool:
    return check_seal(output, ended.message).state is SealState.COMPLETE


def _has_vanished(output: Output, ended: Termination) -> bool:
    """Whether the log of a client that did its work is empty."""
    cut_short = check_seal(output, ended.message).state is SealState.CUT_SHORT
    return ended.exit_code == 0 and output.lines == 0 and cut_short
