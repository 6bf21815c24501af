"""The handlers that kopf calls. They only delegate, return nothing and patch nothing."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakValueDictionary

import kopf

from tierbench.controller.context import Context
from tierbench.controller.due import is_due
from tierbench.controller.loop import Loop
from tierbench.controller.watching import Lists, Watched
from tierbench.domain.results import BenchmarkKey as Key
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.client import ADVICES, JOBS, NODE_CLASSES, PODS, SERVICES, ResourceType
from tierbench.workloads.names import Owner

HANDLERS: Final = kopf.OperatorRegistry()


@dataclass(frozen=True)
class Memo:
    """What all handlers share: kopf calls them with a copy of it."""

    context: Context
    watched: Mapping[str, Watched]
    """By the plural of the type."""
    lists: Lists
    log_in: Callable[[], kopf.AiohttpSession]
    release_leadership: Callable[[], Awaitable[None]]
    locks: WeakValueDictionary[Key, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    """Held by what reconciles a benchmark: another benchmark of its name may be there before it has ended."""


@kopf.on.login(registry=HANDLERS)
async def login(memo: Memo, **_: Any) -> kopf.AiohttpSession:
    """Opens a session, at the start and when the API server no longer accepts the last one."""
    return memo.log_in()


@kopf.on.cleanup(registry=HANDLERS)
async def clean_up_operator(memo: Memo, **_: Any) -> None:
    """Lets a standby take over."""
    await memo.release_leadership()


async def observe(event: kopf.RawEvent, memo: Memo, resource: kopf.Resource, **_: Any) -> None:
    """Takes an event of any type into the caches, and wakes up those whom it concerns."""
    raw, deleted, watched = event["object"], event["type"] == "DELETED", memo.watched[resource.plural]
    if deleted or not memo.lists.is_outdated(watched.resource, raw):
        watched.see(raw, deleted=deleted)


def needs_operator(body: kopf.Body, **_: Any) -> bool:
    """Whether there is anything to do for a benchmark, or for what it leaves: then it has the finalizer."""
    return is_due(body)


async def reconcile(
    stopped: kopf.DaemonStopped,
    memo: Memo,
    resource: kopf.Resource,
    namespace: str | None,
    name: str,
    uid: str,
    **_: Any,
) -> None:
    """Reconciles a benchmark until kopf stops it, or the benchmark is gone: kopf starts no daemon that ended by itself
    a second time."""
    loop = _loop(memo, resource, namespace, name, uid)
    async with _turn(memo, loop), asyncio.TaskGroup() as group:
        stopping = group.create_task(_stop(loop, stopped))
        await memo.lists.complete.wait()
        await loop.run()
        stopping.cancel()


async def clean_up(memo: Memo, resource: kopf.Resource, namespace: str | None, name: str, uid: str, **_: Any) -> None:
    """Cleans up after a deleted benchmark. It never raises, because kopf tries again only what it keeps account of in
    annotations."""
    loop = _loop(memo, resource, namespace, name, uid)
    async with _turn(memo, loop):
        await memo.lists.complete.wait()
        await loop.clean_up()


def _loop(memo: Memo, resource: kopf.Resource, namespace: str | None, name: str, uid: str) -> Loop:
    owner = Owner(resource.kind or "", namespace or "", name, uid)
    return Loop(memo.context, memo.watched[resource.plural].resource, owner)


def _turn(memo: Memo, loop: Loop) -> asyncio.Lock:
    return memo.locks.setdefault(loop.key, asyncio.Lock())


async def _stop(loop: Loop, stopped: kopf.DaemonStopped) -> None:
    await stopped.wait()
    loop.stop()


_BENCHMARKS: Final = tuple(ResourceType.of(model.KIND) for model in BENCHMARKS.values())
for _type in (*_BENCHMARKS, ADVICES, NODE_CLASSES, PODS, JOBS, SERVICES):
    kopf.on.event(*_type.group_and_version, _type.plural, registry=HANDLERS)(observe)
for _type in _BENCHMARKS:
    _name = (*_type.group_and_version, _type.plural)
    kopf.on.delete(*_name, registry=HANDLERS, when=needs_operator)(clean_up)
    kopf.daemon(*_name, registry=HANDLERS, when=needs_operator, backoff=10, cancellation_timeout=10)(reconcile)
