"""The handlers that kopf calls. They only delegate, return nothing and patch nothing."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakValueDictionary

import kopf

from tierbench.api.node_class import NODE_CLASSES
from tierbench.api.placement_advice import ADVICES
from tierbench.controller.context import Context
from tierbench.controller.reconciler import BenchmarkReconciler, needs_reconcile
from tierbench.domain.results import BenchmarkKey as Key
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.informer import Informer, ListObserver
from tierbench.kube.meta import JOBS, PODS, SERVICES
from tierbench.workloads.workload import Owner

HANDLERS: Final = kopf.OperatorRegistry()


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
