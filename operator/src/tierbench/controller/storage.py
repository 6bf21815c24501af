"""Keeps what results and traces take in etcd under its limit."""

import asyncio
import logging
from typing import Final

from tierbench.api.benchmark import Benchmark
from tierbench.api.model import API_VERSION
from tierbench.controller.context import Context
from tierbench.domain.eviction import EvictionChange, eviction_condition, eviction_events, plan_evictions
from tierbench.domain.status import set_conditions
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.client import RESULTS, UNANSWERED, NotFoundError, ResourceType
from tierbench.kube.events import post
from tierbench.workloads.names import Owner

_LOOK_SECONDS: Final = 5.0
_TASK: Final = "limit of what is stored"
_logger = logging.getLogger(__name__)


async def keep_storage(context: Context) -> None:
    """Looks at its own memory again and again, for ever: nothing is asked or written while there is room."""
    was_full = False
    while True:
        stored, limit = context.storage_usage.total, context.settings.quotas.most_stored_bytes
        context.metrics.stored(stored, limit)
        if was_full and stored < limit:
            context.wakeups.ring(*context.queue.first())
        was_full = stored >= limit
        await _evict(context)
        await asyncio.sleep(_LOOK_SECONDS)


async def _evict(context: Context) -> None:
    for change in plan_evictions(context.storage_usage, context.settings.quotas, context.kube.now()):
        try:
            await _carry_out(context, change)
        except NotFoundError:
            _logger.info("%s %s/%s is gone", *change.benchmark)
        except UNANSWERED as error:
            _logger.warning("Old runs of %s %s/%s: %s; trying again", *change.benchmark, error)
        except Exception:
            _logger.exception("Old runs of %s %s/%s stay", *change.benchmark)


async def _carry_out(context: Context, change: EvictionChange) -> None:
    """Events, then the status, then deletions: killed in between, it says a thing twice and never too little."""
    kind, namespace, name = change.benchmark
    raw = context.objects[ResourceType.of(BENCHMARKS[kind].KIND)].get((namespace, name))
    if raw is None:
        return  # its results go with it
    if change.evictions != context.storage_usage.benchmarks[change.benchmark].evictions:
        with context.metrics.working(_TASK):
            await _say(context, change, BENCHMARKS[kind].model_validate(raw))
    for run in change.evicting:
        with context.metrics.working(_TASK):
            for result, uid in context.storage_usage.results_of(run.key).items():
                left = await context.kube.delete(RESULTS, namespace, result, {"uid": uid})
                context.objects.written(RESULTS, left, (namespace, result))
        _logger.info("Run %d of %s %s/%s has gone for want of room", run.key[1], kind, namespace, name)


async def _say(context: Context, change: EvictionChange, benchmark: Benchmark) -> None:
    """In its status, which its loop writes, too: whole, and refused if the other has written since it was read."""
    storage_usage, quotas, now = context.storage_usage, context.settings.quotas, context.kube.now()
    kind, namespace, name = change.benchmark
    for event in eviction_events(change, storage_usage.total, quotas, now):
        await post(context.kube, Owner(kind, namespace, name, benchmark.metadata.uid), event)
    said = set_conditions(benchmark, [eviction_condition(change, storage_usage.total, quotas)], now)
    status = benchmark.status.model_copy(update={"evictions": change.evictions, "conditions": said})
    head = {"name": name, "namespace": namespace, "resourceVersion": benchmark.metadata.resource_version}
    body = {"apiVersion": API_VERSION, "kind": kind, "metadata": head, "status": status.to_json()}
    resource = ResourceType.of(BENCHMARKS[kind].KIND)
    written = await context.kube.apply_status(resource, namespace, body)
    context.objects.written(resource, written)
    storage_usage.update_benchmark({**written, "kind": kind}, deleted=False)
