"""Follows the logs of client pods, so that a printed line is not lost when its pod is deleted.

Where a log cannot be read, lines that a client pushes count, and the trials that the termination message holds.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tierbench.api.node_class import ResultsPath
from tierbench.api.record import CollectedBy
from tierbench.controller.collector import Inbox
from tierbench.domain.decision import FailedRequest, PodLog
from tierbench.domain.views import PodView, Termination
from tierbench.kube.client import REQUEST_ERRORS, Kube
from tierbench.kube.meta import Name
from tierbench.results.client_output import Output, OutputParser, SealState, add_sealed, check_seal
from tierbench.workloads.workload import CLIENT, Owner

_RETRY_SECONDS = 1.0
_PARTS_SECONDS = 0.25
_REST_SECONDS = 2.0  # the API server gives up a node that does not answer after half a minute
_WITHOUT_LOGS = frozenset({ResultsPath.PUSH, ResultsPath.STATUS})
_LONG_AGO = datetime.fromtimestamp(0, UTC)
_BY_STATUS = "its node class has results: Status, and the termination message does not hold all trials"
_EMPTY = "the log is empty, but the client has printed trials"
_logger = logging.getLogger(__name__)


@dataclass
class _Log:
    """The parsed part of one pod's log. `failure` is why, and since when, it cannot be read to its end. `current` says
    whether the last call of `read` has read it to its end. `task` follows it, or reads its `rest`. `broken` says that
    it cannot be followed."""

    name: Name
    output: Output = field(default_factory=Output)
    complete: bool = False
    current: bool = False
    failure: FailedRequest | None = None
    task: asyncio.Task[None] | None = None
    rest: bool = False
    broken: bool = False

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
    """Follows the logs of one benchmark's client pods, and takes what they push.

    Calls `on_trials` when all parts of a client have printed a trial, and at the latest a moment after one of them.
    """

    def __init__(self, kube: Kube, owner: Owner, inbox: Inbox, on_trials: Callable[[], None]) -> None:
        self._kube = kube
        self._owner = owner
        self._inbox = inbox
        self._on_trials = on_trials
        self._waiting: asyncio.TimerHandle | None = None
        self._pods: dict[str, _Log] = {}

    async def read(self, pods: Iterable[PodView], *, to_now: bool = False) -> dict[str, PodLog]:
        """Returns the logs of pods by UID. Reads the log of a terminated pod to its end, and waits a little for it;
        with `to_now`, also reads the logs of running pods."""
        clients = {pod.uid: pod for pod in pods}
        for uid in self._pods.keys() - clients.keys():
            self._drop(uid)
        for pod in clients.values():
            known = self._pods.setdefault(pod.uid, _Log(self._name(pod)))
            known.current = False
            self._take_pushed(pod, known)
            if pod.terminated is not None:
                await self._finish(pod, pod.terminated, known)
            elif pod.started and known.task is None and pod.results not in _WITHOUT_LOGS:
                known.task = asyncio.create_task(self._follow(pod, known))
            if to_now and pod.started and pod.terminated is None:
                await self._read_to_now(pod, known)
        return {
            uid: PodLog(known.output, known.complete, known.failure, known.current or known.complete)
            for uid, known in self._pods.items()
        }

    def acknowledge(self, logs: Mapping[str, PodLog], recorded: Iterable[str]) -> None:
        """Tells the pods with these UIDs that the trials of `logs` are stored."""
        for uid in recorded:
            if uid in self._pods:
                self._inbox.acknowledge(self._pods[uid].name, logs[uid].output.lines)

    def _take_pushed(self, pod: PodView, known: _Log) -> None:
        """Takes what a pod has pushed. Its lines are wanted if its log brings none."""
        wanted = pod.results is ResultsPath.PUSH or known.broken or not known.output.begun
        scope = (self._owner.uid, pod.run)
        known.update(self._inbox.expect(known.name, scope, self._wait_for_parts, wanted=wanted))

    def _observe_trial(self) -> None:
        """Calls `on_trials` at once if no part of a client is behind the others, or else after a wait for them."""
        if len({len(known.output.printed) for known in self._pods.values() if not known.complete}) == 1:
            self._stop_waiting()
            self._on_trials()
        else:
            self._wait_for_parts()

    def _wait_for_parts(self) -> None:
        if self._waiting is None:
            self._waiting = asyncio.get_running_loop().call_later(_PARTS_SECONDS, self._end_waiting)

    def _end_waiting(self) -> None:
        self._waiting = None
        self._on_trials()

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

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
        if pod.results is ResultsPath.STATUS:
            known.output = add_sealed(known.output, ended.message)
            known.complete = check_seal(known.output, ended.message).state is SealState.COMPLETE
            known.failure = None if known.complete else FailedRequest(_LONG_AGO, _BY_STATUS)
            return
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
        known.complete = _is_complete(known.output, ended)

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
                known.broken = True
                _logger.debug("cannot follow a log; retrying", extra=self._fields(pod, str(error)))
            except Exception as error:
                _logger.exception("cannot follow a log; reading it after the end", extra=self._fields(pod, str(error)))
                return
            await asyncio.sleep(_RETRY_SECONDS)

    async def _read(self, pod: PodView, known: _Log | None) -> OutputParser:
        """Reads a log from its first line. If `known` is given, follows it and updates `known` after each line."""
        reader = OutputParser()
        log = self._kube.log(*self._name(pod), CLIENT, follow=known is not None)
        async with aclosing(log) as pieces:
            async for piece in pieces:
                if reader.feed(piece) and known is not None:
                    trials = len(known.output.printed)
                    if known.update(reader.output):
                        known.broken = False
                    # Nothing follows from a trial that has begun, or that is printed again.
                    if len(known.output.printed) > trials or known.output.full:
                        self._observe_trial()
                if reader.is_full:
                    break
        return reader

    def _fields(self, pod: PodView, error: str) -> dict[str, str]:
        return {"pod": "/".join(self._name(pod)), "node": pod.node, "error": error}

    def _name(self, pod: PodView) -> Name:
        return self._owner.namespace, pod.name

    def _drop(self, uid: str) -> None:
        known = self._pods.pop(uid)
        known.stop()
        self._inbox.forget(known.name)

    def close(self) -> None:
        """Stops following all logs."""
        self._stop_waiting()
        for uid in tuple(self._pods):
            self._drop(uid)


def _is_complete(output: Output, ended: Termination) -> bool:
    """Whether all trials have arrived, and no traces that a seal left out."""
    left_out = any(trial.collected_by is CollectedBy.STATUS for trial in output.traced)
    return check_seal(output, ended.message).state is SealState.COMPLETE and not left_out


def _has_vanished(output: Output, ended: Termination) -> bool:
    """Whether the log of a client that did its work is empty."""
    cut_short = check_seal(output, ended.message).state is SealState.CUT_SHORT
    return ended.exit_code == 0 and output.lines == 0 and cut_short
