"""The loop behind one benchmark: observe, decide, write, wait."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping
from typing import Final

import kopf
from pydantic import ValidationError

from tierbench.api.benchmark import Benchmark, Phase
from tierbench.api.benchmark_kinds import BENCHMARKS
from tierbench.api.model import API_VERSION
from tierbench.api.result import BenchmarkResult
from tierbench.controller.context import Context
from tierbench.domain import reasons
from tierbench.domain.actions import Action, Create, CreateCredentials, Decision, Event, ReleaseLeases, SaveResult
from tierbench.domain.children import Family
from tierbench.domain.decide import decide
from tierbench.domain.leave import leave
from tierbench.domain.observed import Observed, Refusal, Surroundings
from tierbench.domain.providers.registry import APIS, apis
from tierbench.kube.apply import Executor
from tierbench.kube.client import (
    REFUSED,
    UNANSWERED,
    ApiError,
    ConflictError,
    NotFoundError,
    OccupiedError,
    ResourceType,
)
from tierbench.kube.events import post
from tierbench.kube.leases import NodeTakenError
from tierbench.kube.logs import LogFollower
from tierbench.kube.observe import look_around
from tierbench.kube.refused import refused_pods
from tierbench.workloads.kinds import workload_of
from tierbench.workloads.names import ROLE_CLIENT, Owner
from tierbench.workloads.workload import Workload

_NOT_TAKEN: Final = frozenset({400, 413, 422})
_SOON_SECONDS: Final = 1.0
_ERROR_SECONDS: Final = (1.0, 2.0, 5.0, 10.0)
_NAMED: Final = 5
_logger = logging.getLogger(__name__)


class GoneError(Exception):
    """The benchmark was deleted, or another bears its name."""


class UnreadableError(Exception):
    """The benchmark is not as this version of tierbench writes it."""


class Loop:
    """Level-triggered: each pass reads everything anew. What it remembers are logs, and what it need not say again."""

    def __init__(self, context: Context, resource: ResourceType, owner: Owner) -> None:
        self._context = context
        self._resource = resource
        self._owner = owner
        self._key = (owner.kind, owner.namespace, owner.name)
        self._bell = context.wakeups.bell(self._key)
        self._logs = LogFollower(context.kube, owner.namespace, self._bell.set)
        self._family = Family(owner)
        self._refusal: Refusal | None = None
        self._refused_results: dict[str, str] = {}
        self._told: set[str] = set()

    async def run(self, stop: kopf.DaemonStopped) -> None:
        """Passes until the benchmark is gone or `stop` is set; errors are waited out, and cost nobody else anything."""
        errors = 0
        self._context.running.add(self._key)
        try:
            while not stop:
                self._bell.clear()
                try:
                    wait = await self._pass()
                    errors = 0
                except GoneError:
                    _logger.info("%s/%s is gone", self._owner.namespace, self._owner.name)
                    return
                except Exception as error:
                    wait = self._after(error, errors)
                    errors += 1
                    await self._tell(error)
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
        expected = isinstance(error, (*UNANSWERED, UnreadableError))
        words = "%s/%s: %s; trying again"
        _logger.warning(words, self._owner.namespace, self._owner.name, error, exc_info=None if expected else error)
        return _ERROR_SECONDS[min(errors, len(_ERROR_SECONDS) - 1)]

    async def _tell(self, error: Exception) -> None:
        """An event, once, for what does not go by itself."""
        if isinstance(error, OccupiedError):
            await self._say(reasons.FOREIGN_OBJECT, f"{error.message}.")
        elif not isinstance(error, (*UNANSWERED, NodeTakenError)):
            await self._say(reasons.UNREADABLE if isinstance(error, UnreadableError) else reasons.INTERNAL, str(error))

    async def _say(self, reason: str, message: str) -> None:
        if message in self._told:
            return
        with contextlib.suppress(*UNANSWERED):
            await post(self._context.kube, self._owner, Event(reason, message, warning=True))
            self._told.add(message)

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
        if observed.benchmark.metadata.deletion_timestamp is not None:
            return _SOON_SECONDS
        await self._name_foreign(observed)
        for refusal in observed.refused_pods.values():
            await self._say(reasons.REFUSED, refusal.message)
        executor = self._executor(observed, observed.benchmark.metadata.labels, observed.results)
        decision = decide(observed, self._context.kube.now())
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
            if isinstance(action, SaveResult) and error.status in _NOT_TAKEN:
                self._refused_results[action.name] = error.message
            refused = error.status in REFUSED or isinstance(error, OccupiedError)
            if isinstance(action, (Create, CreateCredentials)) and refused:
                since = self._context.kube.now() if self._refusal is None else self._refusal.since
                self._refusal = Refusal(since, error.message)
                if not isinstance(error, OccupiedError):
                    await self._say(reasons.REFUSED, error.message)
            raise

    async def _observe(self) -> Observed:
        context, owner = self._context, self._owner
        benchmark, workload = await self._read()
        asked = apis(workload.slots())
        seen = await look_around(
            context.kube, owner, self._family, context.cluster, context.settings.lease_namespace, asked
        )
        return Observed(
            **vars(seen.surroundings),
            benchmark=benchmark,
            workload=workload,
            quotas=context.settings.quotas,
            policy=context.settings.policy,
            classes=dict(context.cluster.classes),
            results=seen.children.results,
            logs=await self._logs.read(pod for pod in seen.children.pods if pod.role == ROLE_CLIENT),
            ahead=context.queue.ahead(self._key),
            foreign=seen.children.foreign,
            last_orphan=seen.children.last_orphan,
            refusal=self._refusal,
            refused_pods=await refused_pods(context.kube, owner.namespace, seen.without_pod),
            refused_results=dict(self._refused_results),
            isolated=context.settings.isolated,
        )

    async def _read(self) -> tuple[Benchmark, Workload]:
        context, owner = self._context, self._owner
        try:
            raw = await context.kube.get(self._resource, owner.namespace, owner.name)
        except NotFoundError:
            raise GoneError from None
        if raw["metadata"]["uid"] != owner.uid:
            raise GoneError
        try:
            benchmark = BENCHMARKS[owner.kind].model_validate(raw)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            message = (
                f"{where}: {first['msg']}. Another version of tierbench, or somebody by hand, has written this: run "
                "that version, or delete the benchmark and create it again."
            )
            raise UnreadableError(message) from error
        return benchmark, workload_of(owner, benchmark.spec, context.settings.images, context.settings.policy)

    async def _name_foreign(self, observed: Observed) -> None:
        """One event for what bears the benchmark's labels and is not its own."""
        fresh = [name for name in observed.foreign if name not in self._told]
        if not fresh:
            return
        more = f" and {len(fresh) - _NAMED} more" if len(fresh) > _NAMED else ""
        message = (
            f"{', '.join(fresh[:_NAMED])}{more}: labelled as of this benchmark, but not made by it, or changed "
            "since. They count for nothing: delete them, or take the labels off."
        )
        await self._say(reasons.FOREIGN_OBJECT, message)
        self._told.update(fresh)

    def _executor(
        self, here: Surroundings, labels: Mapping[str, str], results: Mapping[str, BenchmarkResult]
    ) -> Executor:
        context = self._context
        return Executor(context.kube, self._resource, here, labels, context.settings.lease_namespace, results)

    def _enqueue(self, observed: Observed, decision: Decision) -> None:
        """Whoever leaves the queue, or the nodes, lets the others look again."""
        context = self._context
        if decision.status.phase is Phase.QUEUED:
            since = observed.benchmark.metadata.creation_timestamp or ""
            context.queue.wait(self._key, since, decision.waits_for)
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
        context = self._context
        try:
            seen = await look_around(
                context.kube, self._owner, self._family, context.cluster, context.settings.lease_namespace, APIS
            )
            leaving = leave(seen.surroundings, self._context.kube.now())
            executor = self._executor(seen.surroundings, {}, {})
            for action in () if leaving is None else leaving.actions:
                await executor.carry_out(action)
        except Exception as error:
            await asyncio.sleep(self._after(error, 0))
            return False
        return leaving is None
