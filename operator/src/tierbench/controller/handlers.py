"""kopf: the handlers that it calls, its settings, storages and login; and the types that the operator watches.

kopf watches what the operator works on, and what belongs to it. Reflectors watch the types that are too many for it.
The handlers that kopf calls only delegate, return nothing and patch nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from weakref import WeakValueDictionary

import kopf

from tierbench.api.model import Kind
from tierbench.api.node_class import NODE_CLASSES
from tierbench.api.placement_advice import ADVICES
from tierbench.api.result import RESULTS
from tierbench.controller.advisor import Advisor
from tierbench.controller.context import FINALIZER, Context, benchmark_of, needs_reconcile
from tierbench.controller.reconciler import BenchmarkReconciler
from tierbench.domain.fields import project
from tierbench.domain.results import BenchmarkKey as Key
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.connect import open_session
from tierbench.kube.informer import Informer, ListObserver
from tierbench.kube.meta import JOBS, LEASES, NODES, PODS, SERVICES, Name, Raw, ResourceType, name_of
from tierbench.workloads.workload import LABEL_KIND, LABEL_ROLE, ROLE_SERVER, Owner

HANDLERS: Final = kopf.OperatorRegistry()

_WATCH_SECONDS: Final = 30
_BACKOFF_SECONDS: Final = (0.5, 1.0, 2.0)
_LAST_BACKOFF_SECONDS: Final = 5.0


@dataclass(frozen=True)
class Memo:
    """What all handlers share. kopf passes a shallow copy of it to each of them."""

    context: Context
    informers: Mapping[str, Informer]
    """By the plural of the type."""
    lists: ListObserver
    log_in: Callable[[], kopf.AiohttpSession]
    release_leadership: Callable[[], Awaitable[None]]
    locks: WeakValueDictionary[Key, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    """The reconciler of a benchmark holds its lock. It may end after another benchmark of the same name was created."""


@kopf.on.login(registry=HANDLERS)
async def log_in(memo: Memo, **_: Any) -> kopf.AiohttpSession:
    """Opens a session: the first one, and another after the API server has rejected the token."""
    return memo.log_in()


@kopf.on.cleanup(registry=HANDLERS)
async def release_leadership(memo: Memo, **_: Any) -> None:
    """Lets a standby lead, once all daemons have ended."""
    await memo.release_leadership()


async def observe(event: kopf.RawEvent, memo: Memo, resource: kopf.Resource, **_: Any) -> None:
    """Passes an event to the informer of its type."""
    raw, deleted, informer = event["object"], event["type"] == "DELETED", memo.informers[resource.plural]
    if deleted or not memo.lists.is_outdated(informer.resource, raw):
        informer.handler(raw, deleted=deleted)


def needs_operator(body: kopf.Body, **_: Any) -> bool:
    """Returns whether a benchmark has a daemon and the finalizer."""
    return needs_reconcile(body)


async def reconcile(
    stopped: kopf.DaemonStopped,
    memo: Memo,
    resource: kopf.Resource,
    namespace: str | None,
    name: str,
    uid: str,
    **_: Any,
) -> None:
    """Reconciles a benchmark until kopf stops it, or the benchmark is gone.

    It does not end otherwise, because kopf never starts a daemon again that has ended by itself.
    """
    owner = Owner(resource.kind or "", namespace or "", name, uid)
    async with _lock(memo, owner), asyncio.TaskGroup() as group:
        reconciler = BenchmarkReconciler(memo.context, memo.informers[resource.plural].resource, owner)
        stopping = group.create_task(_stop(reconciler, stopped))
        await memo.lists.synced.wait()
        await reconciler.run()
        stopping.cancel()


async def clean_up(memo: Memo, resource: kopf.Resource, namespace: str | None, name: str, uid: str, **_: Any) -> None:
    """Cleans up after a deleted benchmark. kopf removes the finalizer afterwards.

    It retries by itself, because kopf retries only what it has stored in annotations.
    """
    owner = Owner(resource.kind or "", namespace or "", name, uid)
    async with _lock(memo, owner):
        await memo.lists.synced.wait()
        await BenchmarkReconciler(memo.context, memo.informers[resource.plural].resource, owner).clean_up()


def _lock(memo: Memo, owner: Owner) -> asyncio.Lock:
    return memo.locks.setdefault((owner.kind, owner.namespace, owner.name), asyncio.Lock())


async def _stop(reconciler: BenchmarkReconciler, stopped: kopf.DaemonStopped) -> None:
    await stopped.wait()
    reconciler.stop()


_BENCHMARKS: Final = tuple(model.KIND.resource for model in BENCHMARKS.values())
for _type in (*_BENCHMARKS, ADVICES, NODE_CLASSES, PODS, JOBS, SERVICES):
    kopf.on.event(*_type.group_and_version, _type.plural, registry=HANDLERS)(observe)
for _type in _BENCHMARKS:
    _name = (*_type.group_and_version, _type.plural)
    kopf.on.delete(*_name, registry=HANDLERS, when=needs_operator)(clean_up)
    kopf.daemon(*_name, registry=HANDLERS, when=needs_operator, backoff=10, cancellation_timeout=10)(reconcile)


def reflected(context: Context, advisor: Advisor) -> Iterator[Informer]:
    """Yields the informers of reflectors. They run on a standby, too."""
    cluster, objects = context.cluster, context.objects

    def on_node(raw: Raw, *, deleted: bool) -> None:
        if cluster.observe_node(raw, context.kube.now(), deleted=deleted):
            context.workqueue.add_for_nodes([raw["metadata"]["name"]])

    def on_lease(raw: Raw, *, deleted: bool) -> None:
        before = objects[LEASES].get(name_of(raw))
        changed = objects[LEASES].observe(raw, deleted=deleted)
        if changed and (deleted or before is None or _holder(before) != _holder(raw)):
            context.workqueue.add(*context.queue.heads())

    is_full = False

    def on_change(raw: Raw, *, deleted: bool, ended: bool) -> None:
        nonlocal is_full
        if ended and (deleted or not _is_in_progress(context, raw)):
            advisor.add_all(raw["metadata"]["namespace"])
        context.metrics.set_stored_bytes(context.results.stored_bytes)
        was_full, is_full = is_full, context.storage_full
        if was_full and not is_full:
            context.workqueue.add(*context.queue.heads())

    context.results.observers.append(on_change)

    def on_result(raw: Raw, *, deleted: bool) -> None:
        context.results.update_result(raw, deleted=deleted)

    yield Informer(NODES, on_node, lambda: _cluster_scoped(cluster.nodes), (None,))
    leases = (context.settings.lease_namespace,)
    yield Informer(LEASES, on_lease, objects[LEASES].names, leases, admit=partial(project, LEASES))
    yield Informer(RESULTS, on_result, context.results.known, _namespaces(context))


def handled(context: Context, advisor: Advisor) -> Iterator[Informer]:
    """Yields the informers that kopf's events reach. Those of owners come before those of the objects that they own."""
    cluster, objects, namespaces = context.cluster, context.objects, _namespaces(context)

    def on_class(raw: Raw, *, deleted: bool) -> None:
        if cluster.observe_class(raw, deleted=deleted):
            context.workqueue.add_all()
            advisor.add_all()

    def children(resource: ResourceType, labels: str = LABEL_KIND) -> Informer:
        cache = objects[resource]

        def on_child(raw: Raw, *, deleted: bool) -> None:
            before = cache.get(name_of(raw)) or raw
            if cache.observe(raw, deleted=deleted):
                context.workqueue.add(benchmark_of(before))

        return Informer(resource, on_child, cache.names, namespaces, labels, partial(objects.admit, resource))

    classes, admit_class = lambda: _cluster_scoped(cluster.classes), partial(project, NODE_CLASSES)
    yield Informer(NODE_CLASSES, on_class, classes, (None,), admit=admit_class)
    yield Informer(ADVICES, advisor.observe, advisor.known, namespaces, admit=partial(project, ADVICES))
    for model in BENCHMARKS.values():
        yield _benchmarks(context, advisor, model.KIND)
    yield children(JOBS)
    yield children(PODS)
    yield children(SERVICES, f"{LABEL_KIND},{LABEL_ROLE}={ROLE_SERVER}")


def _benchmarks(context: Context, advisor: Advisor, kind: Kind) -> Informer:
    cache = context.objects[kind.resource]

    def on_benchmark(raw: Raw, *, deleted: bool) -> None:
        changed = cache.observe(raw, deleted=deleted)
        namespace, name = raw["metadata"]["namespace"], raw["metadata"]["name"]
        if context.results.update_benchmark({**raw, "kind": kind.kind}, deleted=deleted):
            advisor.add_all(namespace)
        key = kind.kind, namespace, name
        if deleted:
            context.reconcile_moved(context.queue.leave(key, {}))
            context.objects.forget_foreign(key)
        if changed:
            context.workqueue.add(key)

    def known() -> Iterable[Name]:
        """An own write that finds a benchmark deleted removes it from the cache only."""
        return {*cache.names(), *context.results.known_benchmarks(kind.kind)}

    return Informer(kind.resource, on_benchmark, known, _namespaces(context), admit=partial(project, kind.resource))


def _namespaces(context: Context) -> tuple[str | None, ...]:
    return context.settings.watch_namespaces or (None,)


def _is_in_progress(context: Context, result: Raw) -> bool:
    """Returns whether a result is of a run that has not ended. The end of the run adds the advices."""
    spec, namespace = result["spec"], result["metadata"]["namespace"]
    key = (spec["benchmark"]["kind"], namespace, spec["benchmark"]["name"])
    return bool(spec["run"] > context.results.newest_ended_run(key))


def _holder(lease: Raw) -> str | None:
    holder: str | None = lease.get("spec", {}).get("holderIdentity")
    return holder


def _cluster_scoped(names: Iterable[str]) -> list[Name]:
    return [("", name) for name in names]


class _NoDiffBase(kopf.DiffBaseStorage):
    """No handler compares an object with an earlier state, so no state is stored in annotations."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def store(self, **_: Any) -> None:
        pass


class _NoProgress(kopf.ProgressStorage):
    """Handlers retry by themselves, so no progress is stored in annotations."""

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        pass

    def purge(self, **_: Any) -> None:
        pass

    def touch(self, **_: Any) -> None:
        pass

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        return essence


class _Backoffs(Iterable[float]):
    """Without an end: kopf gives up what it has tried for as often as there are backoffs, and ends the operator."""

    def __iter__(self) -> Iterator[float]:
        yield from _BACKOFF_SECONDS
        while True:
            yield _LAST_BACKOFF_SECONDS


async def run_kopf(
    context: Context,
    informers: Sequence[Informer],
    lists: ListObserver,
    release_leadership: Callable[[], Awaitable[None]],
) -> None:
    """Runs the handlers until SIGTERM or SIGINT, once per process. kopf replaces the process's handlers of signals."""

    def log_in() -> kopf.AiohttpSession:
        session = open_session(context.kube, lists)
        return kopf.AiohttpSession(server=context.kube.address, aiohttp_session=session)

    by_plural = {informer.resource.plural: informer for informer in informers}
    await kopf.operator(
        registry=HANDLERS,
        settings=kopf_settings(informers),
        memo=Memo(context, by_plural, lists, log_in, release_leadership),
        standalone=True,
        clusterwide=not context.settings.watch_namespaces,
        namespaces=context.settings.watch_namespaces,
        identity=context.settings.pod,  # type: ignore[arg-type]  # kopf's type of it is not public
    )


def kopf_settings(informers: Iterable[Informer]) -> kopf.OperatorSettings:
    """Returns the settings of an operator that watches these types, and stores nothing in objects but its finalizer."""
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True  # watches neither definitions nor namespaces, which needs further permissions
    settings.posting.enabled = False
    settings.persistence.finalizer = FINALIZER
    settings.persistence.diffbase_storage = _NoDiffBase()
    settings.persistence.progress_storage = _NoProgress()
    settings.watching.chunk_size = 1  # the session asks for as many as a page may have
    settings.watching.server_timeout = _WATCH_SECONDS
    settings.watching.inactivity_timeout = _WATCH_SECONDS + 15
    settings.watching.connect_timeout = 5
    for informer in informers:
        if informer.labels:
            selector = (*informer.resource.group_and_version, informer.resource.plural)
            settings.watching.label_selectors[selector] = informer.labels
    settings.queueing.idle_timeout = 0.5  # each object that changed is kept for as long
    settings.networking.request_timeout = None  # the session limits each step of a request
    settings.networking.connect_timeout = 5
    settings.networking.error_backoffs = _Backoffs()
    settings.background.instant_exit_timeout = 5  # of a reconciliation that has begun
    return settings
