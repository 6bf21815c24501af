"""Reconciles benchmarks: observe, decide, write, wait."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Final

from tierbench.api.benchmark import Benchmark, Phase
from tierbench.api.model import API_VERSION
from tierbench.api.record import BenchmarkRecord
from tierbench.api.result import BenchmarkResult
from tierbench.controller.context import (
    FINALIZER,
    SUSPENDED_SECONDS,
    Context,
    RetryTracker,
    is_being_deleted,
    is_running,
    needs_reconcile,
    recorder_of,
)
from tierbench.controller.executor import Executor, NameConflictError, NodeTakenError
from tierbench.controller.pod_logs import LogFollower
from tierbench.controller.snapshot import (
    OTHER_VERSION,
    ControllerRefManager,
    InvalidBenchmarkError,
    collect_objects,
    parse_benchmark,
    read_earlier,
    read_records,
    rejected_pods,
)
from tierbench.domain import reasons
from tierbench.domain.decide import decide_in_steps
from tierbench.domain.decision import (
    Action,
    ClusterState,
    Create,
    CreateCredentials,
    Decision,
    FailedRequest,
    Observed,
    ReleaseLeases,
    SaveRecord,
    SaveResult,
)
from tierbench.domain.ending import cleanup, used_apis
from tierbench.domain.servers import apis_of
from tierbench.domain.status import status_changes
from tierbench.kube.client import REJECTED, REQUEST_ERRORS, ApiError, ConflictError, is_permanent
from tierbench.kube.meta import Raw, ResourceType, wait_for_event
from tierbench.workloads.workload import MOST_INHERITED_LABELS, Owner, Workload, labels_left_out

_STATUS: Final = "status"
_HOLD_SECONDS: Final = 30.0
_CLEANUP_SECONDS: Final = 1.0
_IDLE_SECONDS: Final = 600.0
_CONFLICT_SECONDS: Final = (0.05, 1.0)
_ERROR_SECONDS: Final = (1.0, 2.0, 5.0, 10.0)
_COUNT_SECONDS: Final = 2.0
_MOST_NAMES: Final = 5
_logger = logging.getLogger(__name__)


async def _decide(observed: Observed, now: datetime) -> Decision:
    """Decides, and yields to other tasks between two steps."""
    steps = decide_in_steps(observed, now)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            decision: Decision = end.value
            return decision
        await asyncio.sleep(0)


class GoneError(Exception):
    """The benchmark was deleted, or another one has its name."""


class BenchmarkReconciler:
    """Reconciles one benchmark. It is level-triggered: each reconcile decides from a complete snapshot.

    Between reconciles it keeps only the logs that it has read, rejected writes, and which events it has recorded.
    """

    def __init__(self, context: Context, resource: ResourceType, owner: Owner) -> None:
        self._context = context
        self._resource = resource
        self._owner = owner
        self._key = (owner.kind, owner.namespace, owner.name)
        self._event = context.workqueue.event(self._key)
        self._recorder = recorder_of(context.kube, owner)
        self._logs = LogFollower(context.kube, owner, context.inbox, self._event.set)
        self._ref_manager = ControllerRefManager(owner)
        self._parsed: tuple[str, tuple[Benchmark, Workload]] | None = None
        self._rejected_create: FailedRequest | None = None
        self._retries = RetryTracker()
        self._recorded_foreign: set[str] = set()
        self._count_due = math.inf
        self._reads_earlier = False
        self._reads_logs = False
        self._reads_records: tuple[str, ...] = ()
        self._records: dict[str, BenchmarkRecord | None] = {}
        self._stopped = False

    async def run(self) -> None:
        """Reconciles until it is stopped, or the benchmark is gone. Backs off after errors."""
        await self._repeat(self.reconcile)

    async def clean_up(self) -> None:
        """Cleans up after the deletion of the benchmark, until nothing is left. Backs off after errors."""
        await self._repeat(self._clean_up)

    def stop(self) -> None:
        """Ends `run` after the current reconcile."""
        self._stopped = True
        self._event.set()

    async def _repeat(self, step: Callable[[], Awaitable[float | None]]) -> None:
        """Repeats a step after the seconds that it returns, or after an event. None ends it."""
        errors = 0
        try:
            while not self._stopped:
                self._event.clear()
                try:
                    wait = await step()
                    errors = 0
                except GoneError:
                    _logger.info("benchmark is gone", extra=self._fields)
                    return
                except Exception as error:
                    wait = self._backoff(error, errors)
                    errors += 1
                    await self._record_error(error)
                if wait is None:
                    return
                self._context.metrics.set_deadline(self._key, wait)
                await wait_for_event(self._event, wait)
        finally:
            self._logs.close()
            self._leave_queue()
            self._context.workqueue.forget(self._key)
            self._context.metrics.forget(self._key)
            await self._recorder.flush()

    @property
    def _fields(self) -> dict[str, str]:
        """The fields of each log line."""
        return {"kind": self._owner.kind, "benchmark": f"{self._owner.namespace}/{self._owner.name}"}

    def _backoff(self, error: Exception, errors: int) -> float:
        """Returns the seconds to wait after an error."""
        reason = error.reason if isinstance(error, ApiError) else type(error).__name__
        self._context.metrics.count_error(reason)
        fields = {**self._fields, "error": str(error)}
        if isinstance(error, (ConflictError, NodeTakenError)):
            _logger.debug("conflict; reconciling again", extra=fields)
            return _CONFLICT_SECONDS[min(errors, 1)]
        expected = isinstance(error, (*REQUEST_ERRORS, InvalidBenchmarkError))
        _logger.warning("reconcile failed; retrying", extra=fields, exc_info=None if expected else error)
        if isinstance(error, InvalidBenchmarkError):
            self._leave_queue()
            return SUSPENDED_SECONDS  # a change of the benchmark adds it to the workqueue
        return _ERROR_SECONDS[min(errors, len(_ERROR_SECONDS) - 1)]

    async def _record_error(self, error: Exception) -> None:
        """Records an event, once, for an error that a retry does not solve."""
        if isinstance(error, NameConflictError):
            await self._recorder.warn_once(reasons.FOREIGN_OBJECT, f"{error.message}.")
        elif not isinstance(error, (*REQUEST_ERRORS, NodeTakenError)):
            invalid = isinstance(error, InvalidBenchmarkError)
            await self._recorder.warn_once(reasons.UNREADABLE if invalid else reasons.INTERNAL, str(error))

    async def reconcile(self) -> float:
        """Reconciles once. Returns the seconds until the next reconcile."""
        if is_running(self._raw()):
            return await self._reconcile()
        async with self._context.slots:
            return await self._reconcile()

    async def _reconcile(self) -> float:
        raw = self._raw()
        if is_being_deleted(raw) or not needs_reconcile(raw):
            return _IDLE_SECONDS  # until kopf ends this reconciler
        if self._context.definitions.missing:
            return await self._hold(raw)
        if FINALIZER not in raw["metadata"].get("finalizers", ()):
            return _IDLE_SECONDS  # until kopf has written it
        started = time.monotonic()
        observed = await self._observe(raw)
        self._context.cluster.observe_logs(observed.pods, observed.logs)
        await self._record_foreign_objects(observed)
        if left_out := labels_left_out(observed.benchmark.metadata.labels):
            await self._recorder.warn_once(
                reasons.LABELS_LEFT_OUT,
                f"Results get {MOST_INHERITED_LABELS} labels of their benchmark, and not {', '.join(left_out)}. Remove "
                "labels of the benchmark that come before them.",
            )
        for rejected in observed.rejected_pods.values():
            await self._recorder.warn_once(reasons.REFUSED, rejected.message)
        for name in observed.unreadable:
            await self._recorder.warn_once(reasons.UNREADABLE, f"BenchmarkResult {name} {OTHER_VERSION}")
        if self._retries.suspended(_STATUS):
            self._leave_queue()
            return SUSPENDED_SECONDS
        executor = self._executor(observed, observed.benchmark.metadata.labels, observed.results)
        decision = await _decide(observed, self._context.kube.now())
        self._reads_earlier, self._reads_records = decision.needs_earlier_runs, decision.reads_records
        self._reads_logs = decision.reads_logs
        self._enqueue(observed, decision)
        changed, counted = status_changes(observed.benchmark.status, decision.status)
        if changed:
            await self._write(observed, decision)
        for action in decision.actions:
            await self._carry_out(executor, action)
        self._logs.acknowledge(observed.logs, decision.recorded)
        self._rejected_create = None
        for event in decision.events:
            await self._recorder.post(event.reason, event.message, warning=event.warning)
        wait = 0.0 if changed else decision.requeue_after
        if counted:
            wait = min(wait, await self._write_count(observed, decision))
        self._context.metrics.observe_reconcile(time.monotonic() - started)
        return wait

    async def _hold(self, raw: Raw) -> float:
        """Writes the condition DefinitionsDiffer, and follows logs. All else waits until definitions match.

        The rest of the status is written back as it was read, so that the served definitions have all of its fields.
        """
        context, owner, started = self._context, self._owner, time.monotonic()
        owned = await collect_objects(context, owner, self._ref_manager, ())
        await self._logs.read(owned.children.client_pods)
        conditions = context.definitions.conditions(raw, context.kube.now())
        if conditions is not None:
            await self._apply_status(raw["metadata"], {**raw.get("status", {}), "conditions": conditions})
        context.metrics.observe_reconcile(time.monotonic() - started)
        return _HOLD_SECONDS

    async def _clean_up(self) -> float | None:
        """Deletes pods and Jobs, waits until they are gone, then releases the nodes. Returns None when that is done."""
        owned = await collect_objects(self._context, self._owner, self._ref_manager, apis_of(self._owner.kind))
        step = cleanup(owned.state, self._context.kube.now())
        if step is None:
            return None
        executor = self._executor(owned.state, {}, {})
        for action in step.actions:
            await executor.carry_out(action)
        return min(step.requeue_after, _CLEANUP_SECONDS)

    async def _carry_out(self, executor: Executor, action: Action) -> None:
        """Carries out one action. Remembers a rejected creation: if it lasts, cases fail."""
        try:
            await executor.carry_out(action)
            if isinstance(action, (SaveResult, SaveRecord)):
                self._retries.succeeded(action.name)
            if isinstance(action, ReleaseLeases):
                self._context.workqueue.add(*self._context.queue.heads())
        except ApiError as error:
            if isinstance(action, (SaveResult, SaveRecord)) and is_permanent(error):
                self._context.definitions.in_doubt.set()
                self._retries.result_failed(action.name, error)
            rejected = error.status in REJECTED or isinstance(error, NameConflictError)
            if isinstance(action, (Create, CreateCredentials)) and rejected:
                since = self._context.kube.now() if self._rejected_create is None else self._rejected_create.since
                self._rejected_create = FailedRequest(since, error.message)
                if not isinstance(error, NameConflictError):
                    await self._recorder.warn_once(reasons.REFUSED, error.message)
            raise

    async def _observe(self, raw: Raw) -> Observed:
        context, owner = self._context, self._owner
        benchmark, workload = self._parse(raw)
        self._retries.set_reset_key((context.definitions.digest, benchmark.metadata.generation))
        run = 0 if benchmark.status.run is None else benchmark.status.run.number
        stored = context.results.of(self._key)
        await self._ref_manager.parse(one for one in stored if one.metadata.run >= run)
        earlier = await read_earlier(context, owner, run) if self._reads_earlier else None
        owned = await collect_objects(context, owner, self._ref_manager, used_apis(benchmark, workload))
        broken = await read_records(context, owner, self._records, self._reads_records, owned.children.results)
        return Observed(
            **vars(owned.state),
            benchmark=benchmark,
            workload=workload,
            quotas=context.settings.quotas,
            policy=context.settings.policy,
            classes=dict(context.cluster.classes),
            results=owned.children.results,
            records=dict(self._records),
            earlier=earlier,
            known_results=owned.children.known_results,
            logs=await self._logs.read(owned.children.client_pods, to_now=self._reads_logs),
            queue=context.queue,
            unowned=owned.children.unowned,
            last_orphaned_run=owned.children.last_orphaned_run,
            stored_bytes=context.results.stored_bytes,
            deletable_runs=context.results.deletable_runs(owner.namespace) if context.storage_full else (),
            rejected_create=self._rejected_create,
            rejected_pods=await rejected_pods(context.kube, owner.namespace, owned.jobs_without_pods),
            rejected_results=dict(self._retries.rejected),
            permanently_rejected=self._retries.permanently_rejected,
            unreadable=owned.children.unreadable | broken,
            isolated=context.settings.isolated,
            collector=context.settings.images.collector,
        )

    def _raw(self) -> Raw:
        raw = self._context.objects[self._resource].get((self._owner.namespace, self._owner.name))
        if raw is None or raw["metadata"]["uid"] != self._owner.uid:
            raise GoneError
        return raw

    def _parse(self, raw: Raw) -> tuple[Benchmark, Workload]:
        """Parses the benchmark. One that runs is parsed once per version; many may be queued, and are not kept."""
        version = raw["metadata"]["resourceVersion"]
        if self._parsed is not None and self._parsed[0] == version:
            return self._parsed[1]
        parsed = parse_benchmark(self._context, self._owner, raw)
        self._parsed = (version, parsed) if is_running(raw) else None
        return parsed

    async def _record_foreign_objects(self, observed: Observed) -> None:
        """Records one event for the objects that have the labels of the benchmark and that it does not own."""
        fresh = [name for name in observed.unowned if name not in self._recorded_foreign]
        if not fresh:
            return
        more = f" and {len(fresh) - _MOST_NAMES} more" if len(fresh) > _MOST_NAMES else ""
        message = (
            f"{', '.join(fresh[:_MOST_NAMES])}{more}: they have the labels of this benchmark, but another owner, or "
            "they were changed. They are ignored: delete them, or remove the labels."
        )
        await self._recorder.warn_once(reasons.FOREIGN_OBJECT, message)
        self._recorded_foreign.update(fresh)

    def _executor(
        self, observed: ClusterState, labels: Mapping[str, str], results: Mapping[str, BenchmarkResult]
    ) -> Executor:
        context = self._context
        caches, leases = context.objects, context.settings.lease_namespace
        kept = (labels, leases, results, self._records)
        inbox = context.inbox
        return Executor(context.kube, caches, self._resource, observed, *kept, inbox.credentials, inbox.sign)

    def _leave_queue(self) -> None:
        """Lets the benchmarks go ahead that wait behind this one."""
        self._context.reconcile_moved(self._context.queue.leave(self._key, {}))

    def _enqueue(self, observed: Observed, decision: Decision) -> None:
        """Updates the admission queue, and adds the benchmarks to the workqueue that it moves there.

        No other benchmark decides between a decision and this, so two never find that both are next.
        """
        context, phase = self._context, decision.status.phase
        if decision.waits_for is not None:
            moved = context.queue.enqueue(self._key, decision.waits_for)
        else:
            held = (lease for lease in observed.leases.values() if lease.holder == observed.holder)
            moved = context.queue.leave(self._key, {lease.node: lease.acquired for lease in held})
        context.reconcile_moved(moved)
        run = decision.status.run
        chosen = frozenset(node for one in run.assignments for node in one.nodes) if run is not None else frozenset()
        context.workqueue.set_nodes(self._key, None if phase is Phase.PENDING else chosen)

    async def _write_count(self, observed: Observed, decision: Decision) -> float:
        """Counts trials two seconds late, as records come first. Returns the seconds until the next reconcile."""
        now = time.monotonic()
        self._count_due = min(self._count_due, now + _COUNT_SECONDS)
        if now >= self._count_due:
            await self._write(observed, decision)
            return decision.requeue_after
        return self._count_due - now

    async def _write(self, observed: Observed, decision: Decision) -> None:
        """Writes the status."""
        metadata = {"resourceVersion": observed.benchmark.metadata.resource_version}
        try:
            await self._apply_status(metadata, decision.status.to_json())
        except ApiError as error:
            if is_permanent(error):
                self._context.definitions.in_doubt.set()
                if self._retries.failed(_STATUS, error):
                    message = f"{error.message}. It is retried every ten minutes."
                    await self._recorder.warn_once(reasons.STATUS_REFUSED, message)
            raise
        self._retries.succeeded(_STATUS)
        self._count_due = math.inf

    async def _apply_status(self, metadata: Raw, status: Raw) -> None:
        """Applies a status. Raises ConflictError if the benchmark has changed since `metadata` was read."""
        owner = self._owner
        applied = {"name": owner.name, "namespace": owner.namespace, "resourceVersion": metadata["resourceVersion"]}
        body = {"apiVersion": API_VERSION, "kind": owner.kind, "metadata": applied, "status": status}
        answer = await self._context.kube.apply_status(self._resource, owner.namespace, body)
        self._context.objects.observe_write(self._resource, answer)
