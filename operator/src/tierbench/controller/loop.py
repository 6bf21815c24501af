"""The loop behind one benchmark: observe, decide, write, wait."""

import asyncio
import contextlib
import logging
import time
from datetime import UTC, datetime
from typing import Final

import aiohttp
import kopf

from tierbench.api.benchmark import Phase
from tierbench.api.model import API_VERSION
from tierbench.controller.context import Context
from tierbench.domain.actions import Action, Create, CreateCredentials, Decision, ReleaseLeases
from tierbench.domain.decide import decide
from tierbench.domain.ending import leave
from tierbench.domain.observed import Observed, Refusal
from tierbench.domain.run import Run
from tierbench.kube.apply import Executor
from tierbench.kube.client import ApiError, ConflictError, NotFoundError, ResourceType
from tierbench.kube.leases import NodeTakenError
from tierbench.kube.logs import LogFollower
from tierbench.kube.observe import observe
from tierbench.workloads.kinds import KINDS
from tierbench.workloads.names import Owner

_REFUSED: Final = frozenset({403, 422})
_SOON_SECONDS: Final = 1.0
_ERROR_SECONDS: Final = (1.0, 2.0, 5.0, 10.0)
_logger = logging.getLogger(__name__)


class Loop:
    """Level-triggered: each pass reads everything anew, and what it remembers is only a cache of logs."""

    def __init__(self, context: Context, resource: ResourceType, owner: Owner) -> None:
        self._context = context
        self._resource = resource
        self._owner = owner
        self._key = (owner.kind, owner.namespace, owner.name)
        self._bell = context.wakeups.bell(self._key)
        self._logs = LogFollower(context.kube, owner.namespace, self._bell.set)
        self._refusal: Refusal | None = None

    async def run(self, stop: kopf.DaemonStopped) -> None:
        """Passes until nothing is due or `stop` is set; errors of the API server are waited out."""
        errors = 0
        self._context.running.add(self._key)
        try:
            while not stop:
                self._bell.clear()
                try:
                    wait = await self._pass()
                    errors = 0
                except NotFoundError as error:
                    _logger.info("%s is gone: %s", self._owner.name, error)
                    return
                except (ApiError, NodeTakenError, aiohttp.ClientError, TimeoutError, OSError) as error:
                    wait = self._after(error, errors)
                    errors += 1
                self._context.metrics.expect(self._key, wait)
                await self._sleep(wait, stop)
        finally:
            self._logs.close()
            self._context.running.discard(self._key)
            self._context.queue.leave(self._key)
            self._context.wakeups.forget(self._key)
            self._context.metrics.forget(self._key)

    def _after(self, error: Exception, errors: int) -> float:
        """How long to wait after an error."""
        reason = error.reason if isinstance(error, ApiError) else type(error).__name__
        self._context.metrics.error(reason)
        if isinstance(error, (ConflictError, NodeTakenError)):
            _logger.debug("%s: %s; looking again", self._owner.name, error)
            return 0.05 if errors == 0 else _SOON_SECONDS
        _logger.warning("%s/%s: %s; trying again", self._owner.namespace, self._owner.name, error)
        return _ERROR_SECONDS[min(errors, len(_ERROR_SECONDS) - 1)]

    async def _sleep(self, seconds: float, stop: kopf.DaemonStopped) -> None:
        if seconds <= 0:
            return
        tasks = {asyncio.ensure_future(self._bell.wait()), asyncio.ensure_future(stop.wait())}
        _, pending = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()

    async def _pass(self) -> float:
        started = time.monotonic()
        observed = await self._observe()
        executor = self._executor(observed)
        if observed.benchmark.metadata.deletion_timestamp is not None:
            return _SOON_SECONDS
        decision = decide(observed, datetime.now(UTC))
        await self._write(observed, decision)
        self._enqueue(observed, decision)
        for action in decision.actions:
            await self._carry_out(executor, action)
        self._refusal = None
        if any(isinstance(action, ReleaseLeases) for action in decision.actions):
            self._context.wakeups.ring_all()
        for event in decision.events:
            await executor.post(event)
        self._context.metrics.passed(time.monotonic() - started)
        return decision.wait_seconds

    async def _carry_out(self, executor: Executor, action: Action) -> None:
        """One action. What the API server does not let be created is remembered: if that lasts, its cases fail."""
        try:
            await executor.carry_out(action)
        except ApiError as error:
            if isinstance(action, (Create, CreateCredentials)) and error.status in _REFUSED:
                since = datetime.now(UTC) if self._refusal is None else self._refusal.since
                self._refusal = Refusal(since, error.message)
            raise

    async def _observe(self) -> Observed:
        context, owner = self._context, self._owner
        raw = await context.kube.get(self._resource, owner.namespace, owner.name)
        benchmark, workload = KINDS[owner.kind].bind(raw, owner, context.settings.images)
        lease_namespace, ahead = context.settings.lease_namespace, context.queue.ahead(self._key)
        return await observe(
            context.kube, benchmark, owner, workload, context.cluster, self._logs, lease_namespace, ahead, self._refusal
        )

    def _executor(self, observed: Observed) -> Executor:
        context = self._context
        return Executor(context.kube, self._owner, self._resource, observed.holder, context.settings.lease_namespace)

    def _enqueue(self, observed: Observed, decision: Decision) -> None:
        """Whoever leaves the queue, or the nodes, lets the others look again."""
        context, run = self._context, decision.status.run
        if decision.status.phase is Phase.QUEUED and run is not None:
            nodes = Run(observed, run, datetime.now(UTC)).needed_nodes
            context.queue.wait(self._key, observed.benchmark.metadata.creation_timestamp or "", nodes)
        else:
            context.queue.leave(self._key)
        context.metrics.queue_length(len(context.queue))

    async def _write(self, observed: Observed, decision: Decision) -> None:
        """Writes the status if anything but the time left has changed."""
        before = observed.benchmark.status
        if decision.status.model_copy(update={"remaining_seconds": before.remaining_seconds}) == before:
            return
        metadata = observed.benchmark.metadata
        head = {"name": metadata.name, "namespace": metadata.namespace, "resourceVersion": metadata.resource_version}
        body = {"apiVersion": API_VERSION, "kind": self._owner.kind, "metadata": head}
        status = decision.status.to_json()
        await self._context.kube.apply_status(self._resource, metadata.namespace, {**body, "status": status})

    async def clean_up(self) -> None:
        """After deletion: removes what runs, waits until it is gone, gives the nodes back. The rest is owned."""
        while not await self._is_clean():
            self._bell.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._bell.wait(), _SOON_SECONDS / 4)
        self._context.wakeups.ring_all()

    async def _is_clean(self) -> bool:
        """One step of cleaning up; whether it was the last."""
        if self._key in self._context.running:
            self._bell.set()
            await asyncio.sleep(_SOON_SECONDS / 10)
            return False
        try:
            observed = await self._observe()
            decision = leave(observed, datetime.now(UTC))
            for action in () if decision is None else decision.actions:
                await self._executor(observed).carry_out(action)
        except NotFoundError:
            return True
        except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
            await asyncio.sleep(self._after(error, 0))
            return False
        return decision is None
