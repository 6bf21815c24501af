"""The loop behind one benchmark: observe, decide, write, wait."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from tierbench.api.benchmark import Benchmark, BenchmarkStatus, Phase
from tierbench.api.model import API_VERSION
from tierbench.api.result import BenchmarkResult
from tierbench.controller.context import Context
from tierbench.controller.due import FINALIZER, is_due, is_leaving
from tierbench.controller.refusals import REST_SECONDS, UPGRADE, Refusals
from tierbench.domain import reasons
from tierbench.domain.actions import (
    Action,
    Create,
    CreateCredentials,
    Decision,
    Event,
    ReleaseLeases,
    SaveResult,
    SaveTrace,
)
from tierbench.domain.children import PARSE_ERRORS, ControllerRefManager
from tierbench.domain.completion import cleanup
from tierbench.domain.decide import decide
from tierbench.domain.observed import ClusterState, FailedRequest, Observed
from tierbench.domain.providers import apis, known_apis
from tierbench.domain.views import ProviderApi, Raw
from tierbench.kinds.registry import BENCHMARKS, workload_of
from tierbench.kube.apply import Executor
from tierbench.kube.client import (
    REFUSED,
    RESULTS,
    UNANSWERED,
    ApiError,
    ConflictError,
    NotFoundError,
    OccupiedError,
    ResourceType,
    is_never_taken,
)
from tierbench.kube.events import post
from tierbench.kube.leases import NodeTakenError
from tierbench.kube.logs import LogFollower
from tierbench.kube.observe import Here, look_around
from tierbench.kube.refused import refused_pods
from tierbench.workloads.names import ROLE_CLIENT, Owner
from tierbench.workloads.workload import Workload

_STATUS: Final = "status"
_SOON_SECONDS: Final = 1.0
_ERROR_SECONDS: Final = (1.0, 2.0, 5.0, 10.0)
_NAMED: Final = 5
_OF_ANOTHER_VERSION: Final = (
    "was written by another version of tierbench, or by hand, and is kept as it is: run that version."
)
_logger = logging.getLogger(__name__)


def _understood(raws: Iterable[Raw]) -> Iterator[tuple[str, BenchmarkResult]]:
    for raw in raws:
        with contextlib.suppress(*PARSE_ERRORS):
            yield raw["metadata"]["name"], BenchmarkResult.model_validate(raw)


class GoneError(Exception):
    """The benchmark was deleted, or another bears its name."""


class UnreadableError(Exception):
    """The benchmark is not as this version of tierbench writes it."""


class Loop:
    """Level-triggered: each pass looks at everything, in what watches and own writes have told. What it remembers are
    logs, and what it need not say again."""

    def __init__(self, context: Context, resource: ResourceType, owner: Owner) -> None:
        self._context = context
        self._resource = resource
        self._owner = owner
        self._key = (owner.kind, owner.namespace, owner.name)
        self._bell = context.wakeups.bell(self._key)
        self._logs = LogFollower(context.kube, owner.namespace, self._bell.set)
        self._ref_manager = ControllerRefManager(owner)
        self._refusal: FailedRequest | None = None
        self._refusals = Refusals()
        self._told: set[str] = set()
        self._reads_earlier = False

    async def run(self) -> None:
        """Passes until nothing is due or the benchmark is gone. Errors are waited out, and cost nobody else a thing."""
        errors = 0
        try:
            while True:
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
                if wait is None:
                    return
                self._context.metrics.expect(self._key, wait)
                await self._sleep(wait)
        finally:
            self._logs.close()
            self._context.objects.results.leave(self._key)
            self._context.wakeups.ring(*self._context.queue.leave(self._key))
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
        if isinstance(error, UnreadableError):
            return REST_SECONDS  # a change of it rings
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

    async def _sleep(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._bell.wait(), seconds)

    async def _pass(self) -> float | None:
        """One look, and what follows from it; how long to wait then, None if there is nothing more to do."""
        raw = self._raw()
        if not is_due(raw):
            await self._let_go(raw)
            return None
        if FINALIZER not in raw["metadata"].get("finalizers", ()):
            if is_leaving(raw):
                raise GoneError
            await self._set_finalizers(raw, [*raw["metadata"].get("finalizers", ()), FINALIZER])
            raw = self._raw()
        return await (self._leave(raw) if is_leaving(raw) else self._go_on(raw))

    async def _go_on(self, raw: Raw) -> float:
        started = time.monotonic()
        observed = await self._observe(raw)
        await self._name_foreign(observed)
        for refusal in observed.rejected_pods.values():
            await self._say(reasons.REFUSED, refusal.message)
        for name in observed.unreadable:
            await self._say(reasons.UNREADABLE, f"BenchmarkResult {name} {_OF_ANOTHER_VERSION}")
        if self._refusals.rests(_STATUS):
            return REST_SECONDS
        executor = self._executor(observed, observed.benchmark.metadata.labels, observed.results)
        decision = decide(observed, self._context.kube.now())
        self._reads_earlier = decision.needs_earlier_runs
        written = await self._write(observed, decision)
        self._enqueue(observed, decision)
        for action in decision.actions:
            await self._carry_out(executor, action)
        self._refusal = None
        for event in decision.events:
            await executor.post(event)
        self._context.metrics.passed(time.monotonic() - started)
        return 0.0 if written else decision.requeue_after

    async def _leave(self, raw: Raw) -> float | None:
        """A step after deletion: removes what runs, waits until it is gone, gives the nodes back. The rest is owned."""
        here = await self._look_around(known_apis())
        step = cleanup(here.state, self._context.kube.now())
        if step is None:
            await self._let_go(raw)
            return None
        executor = self._executor(here.state, {}, {})
        for action in step.actions:
            await executor.carry_out(action)
        return min(step.requeue_after, _SOON_SECONDS)

    async def _let_go(self, raw: Raw) -> None:
        """Nothing of the benchmark needs the operator any more: it may be deleted while there is none."""
        finalizers = raw["metadata"].get("finalizers", ())
        if FINALIZER in finalizers:
            await self._set_finalizers(raw, [one for one in finalizers if one != FINALIZER])

    async def _set_finalizers(self, raw: Raw, finalizers: Sequence[str]) -> None:
        """Raises ConflictError if the benchmark has changed since."""
        context, owner = self._context, self._owner
        metadata = {"resourceVersion": raw["metadata"]["resourceVersion"], "finalizers": finalizers}
        try:
            answer = await context.kube.merge(self._resource, owner.namespace, owner.name, {"metadata": metadata})
        except NotFoundError:
            context.objects.written(self._resource, None, (owner.namespace, owner.name))
            raise GoneError from None
        context.objects.written(self._resource, answer)

    async def _carry_out(self, executor: Executor, action: Action) -> None:
        """One action. What the API server does not let be created is remembered: if that lasts, its cases fail."""
        try:
            await executor.carry_out(action)
            if isinstance(action, SaveResult):
                self._refusals.taken(action.name)
            if isinstance(action, ReleaseLeases):
                self._context.wakeups.ring(*self._context.queue.first())
        except ApiError as error:
            if isinstance(action, (SaveResult, SaveTrace)) and is_never_taken(error):
                self._context.definitions_in_doubt.set()
                if isinstance(action, SaveResult):
                    self._refusals.add_result(action.name, error)
                elif self._refusals.add(f"trace {action.name}"):
                    await self._say(reasons.TRACE_REFUSED, f"The API server takes no trace: {error.message}")
                    return
            refused = error.status in REFUSED or isinstance(error, OccupiedError)
            if isinstance(action, (Create, CreateCredentials)) and refused:
                since = self._context.kube.now() if self._refusal is None else self._refusal.since
                self._refusal = FailedRequest(since, error.message)
                if not isinstance(error, OccupiedError):
                    await self._say(reasons.REFUSED, error.message)
            raise

    async def _look_around(self, apis: Sequence[ProviderApi]) -> Here:
        context = self._context
        return await look_around(
            context.kube,
            context.objects,
            self._owner,
            self._ref_manager,
            context.cluster,
            context.results.metadata_of(self._key),
            apis,
        )

    async def _observe(self, raw: Raw) -> Observed:
        context, owner = self._context, self._owner
        benchmark, workload = self._read(raw)
        self._refusals.see((context.kube.definitions, benchmark.metadata.generation))
        earlier = await self._read_results(benchmark)
        here = await self._look_around(apis(workload.slots()))
        return Observed(
            **vars(here.state),
            benchmark=benchmark,
            workload=workload,
            quotas=context.settings.quotas,
            policy=context.settings.policy,
            classes=dict(context.cluster.classes),
            results=here.children.results,
            earlier=earlier,
            known_results=here.children.known_results,
            logs=await self._logs.read(pod for pod in here.children.pods if pod.role == ROLE_CLIENT),
            blocked_by=context.queue.ahead(self._key),
            unowned=here.children.unowned,
            last_orphaned_run=here.children.last_orphaned_run,
            stored_bytes=context.storage_usage.total,
            rejected_create=self._refusal,
            rejected_pods=await refused_pods(context.kube, owner.namespace, here.without_pod),
            rejected_results=dict(self._refusals.results),
            permanently_rejected=self._refusals.unwritable,
            unreadable=here.children.unreadable,
            definitions=context.kube.definitions,
            isolated=context.settings.isolated,
        )

    async def _read_results(self, benchmark: Benchmark) -> dict[str, BenchmarkResult] | None:
        """Sees to it that the results of the run under way are known in full; those of earlier runs, if asked for."""
        context, run = self._context, benchmark.status.run
        number = 0 if run is None else run.number
        lacking = context.objects.results.follow(self._key, number, context.results.metadata_of(self._key))
        if not (lacking or self._reads_earlier):
            return None
        raws = await context.kube.list(RESULTS, self._owner.namespace, self._owner.selector)
        for raw in raws:
            context.objects.results.see(raw)
        earlier = [raw for raw in raws if raw["spec"]["run"] != number] if self._reads_earlier else []
        return dict(_understood(earlier)) if self._reads_earlier else None

    def _raw(self) -> Raw:
        raw = self._context.objects[self._resource].get((self._owner.namespace, self._owner.name))
        if raw is None or raw["metadata"]["uid"] != self._owner.uid:
            raise GoneError
        return raw

    def _read(self, raw: Raw) -> tuple[Benchmark, Workload]:
        context, owner = self._context, self._owner
        try:
            benchmark = BENCHMARKS[owner.kind].model_validate(raw)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            message = f"{where}: {first['msg']}. It {_OF_ANOTHER_VERSION} Or delete the benchmark and create it again."
            raise UnreadableError(message) from error
        return benchmark, workload_of(owner, benchmark.spec, context.settings.images, context.settings.policy)

    async def _name_foreign(self, observed: Observed) -> None:
        """One event for what bears the benchmark's labels and is not its own."""
        fresh = [name for name in observed.unowned if name not in self._told]
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
        self, here: ClusterState, labels: Mapping[str, str], results: Mapping[str, BenchmarkResult]
    ) -> Executor:
        context = self._context
        return Executor(
            context.kube, context.objects, self._resource, here, labels, context.settings.lease_namespace, results
        )

    def _enqueue(self, observed: Observed, decision: Decision) -> None:
        """Whoever comes into the queue, or leaves it, lets those behind it look again."""
        context, phase = self._context, decision.status.phase
        if phase is Phase.QUEUED:
            since = observed.benchmark.metadata.creation_timestamp or ""
            context.wakeups.ring(*context.queue.wait(self._key, since, decision.waits_for))
        else:
            context.wakeups.ring(*context.queue.leave(self._key))
        run = decision.status.run
        chosen = frozenset(node for one in run.assignments for node in one.nodes) if run is not None else frozenset()
        context.wakeups.ask(self._key, None if phase is Phase.PENDING else chosen)
        context.metrics.queue_length(len(context.queue))

    async def _write(self, observed: Observed, decision: Decision) -> bool:
        """Writes the status if anything but the time left has changed; whether it has."""
        before, kube = observed.benchmark.status, self._context.kube
        same = decision.status.model_copy(update={"remaining_seconds": before.remaining_seconds})
        if same == before or self._body(observed, same) == self._body(observed, before):
            return False
        try:
            answer = await kube.apply_status(
                self._resource, self._owner.namespace, self._body(observed, decision.status)
            )
        except ApiError as error:
            if is_never_taken(error):
                self._context.definitions_in_doubt.set()
                if self._refusals.add(_STATUS):
                    await self._say(reasons.STATUS_REFUSED, f"{error.message}. {UPGRADE}")
            raise
        self._refusals.taken(_STATUS)
        self._context.objects.written(self._resource, answer)
        return True

    def _body(self, observed: Observed, status: BenchmarkStatus) -> dict[str, Any]:
        """What is written of a status: what is served may not know all of it."""
        metadata = observed.benchmark.metadata
        head = {"name": metadata.name, "namespace": metadata.namespace, "resourceVersion": metadata.resource_version}
        body = {"apiVersion": API_VERSION, "kind": self._owner.kind, "metadata": head, "status": status.to_json()}
        return self._context.kube.definitions.fitted(body)
