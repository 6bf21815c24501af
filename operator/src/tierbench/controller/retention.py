"""Evicts the results of old runs when results and traces exceed their limit in etcd."""

import asyncio
import logging
from typing import Final

from tierbench.api.benchmark import Benchmark
from tierbench.api.model import API_VERSION
from tierbench.api.result import RESULTS
from tierbench.controller.context import Context, recorder_of
from tierbench.domain.eviction import EvictionChange, eviction_condition, eviction_events, plan_evictions
from tierbench.domain.status import set_conditions
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.errors import REQUEST_ERRORS, NotFoundError
from tierbench.workloads.names import Owner

_PERIOD_SECONDS: Final = 5.0
_TASK: Final = "limit of what is stored"
_logger = logging.getLogger(__name__)


async def run_retention(context: Context) -> None:
    """Checks the stored bytes, without end. It sends no request while they are below the limit."""
    was_full = False
    while True:
        stored, limit = context.storage_usage.total, context.settings.quotas.most_stored_bytes
        context.metrics.set_stored_bytes(stored, limit)
        if was_full and stored < limit:
            context.workqueue.add(*context.queue.heads())
        was_full = stored >= limit
        if not context.definitions.missing:
            await _evict(context)
        await asyncio.sleep(_PERIOD_SECONDS)


async def _evict(context: Context) -> None:
    for change in plan_evictions(context.storage_usage, context.settings.quotas, context.kube.now()):
        try:
            await _carry_out(context, change)
        except NotFoundError:
            _logger.info("benchmark is gone", extra=_fields(change))
        except REQUEST_ERRORS as error:
            _logger.warning("cannot evict runs; retrying", extra={**_fields(change), "error": str(error)})
        except Exception:
            _logger.exception("cannot evict runs", extra=_fields(change))


async def _carry_out(context: Context, change: EvictionChange) -> None:
    """Writes events, then the status, then deletes. A restart in between repeats steps and omits none."""
    kind, namespace, name = change.benchmark
    raw = context.objects[BENCHMARKS[kind].KIND.resource].get((namespace, name))
    if raw is None:
        return  # its results go with it
    if change.evictions != context.storage_usage.benchmarks[change.benchmark].evictions:
        with context.metrics.track(_TASK):
            await _announce(context, change, BENCHMARKS[kind].model_validate(raw))
    for run in change.evicting:
        with context.metrics.track(_TASK):
            for result, uid in context.storage_usage.results_of(run.key).items():
                left = await context.kube.delete(RESULTS, namespace, result, {"uid": uid})
                context.objects.observe_write(RESULTS, left, (namespace, result))
        _logger.info("evicted run: storage limit", extra={**_fields(change), "run": run.key[1]})


def _fields(change: EvictionChange) -> dict[str, str]:
    kind, namespace, name = change.benchmark
    return {"kind": kind, "benchmark": f"{namespace}/{name}"}


async def _announce(context: Context, change: EvictionChange, benchmark: Benchmark) -> None:
    """Writes the status as a whole. It is rejected if the reconciler has written since it was read."""
    storage_usage, quotas, now = context.storage_usage, context.settings.quotas, context.kube.now()
    kind, namespace, name = change.benchmark
    recorder = recorder_of(context.kube, Owner(kind, namespace, name, benchmark.metadata.uid))
    for event in eviction_events(change, storage_usage.total, quotas, now):
        await recorder.event(event.reason, event.message, warning=event.warning)
    conditions = set_conditions(benchmark, [eviction_condition(change, storage_usage.total, quotas)], now)
    status = benchmark.status.model_copy(update={"evictions": change.evictions, "conditions": conditions})
    head = {"name": name, "namespace": namespace, "resourceVersion": benchmark.metadata.resource_version}
    body = {"apiVersion": API_VERSION, "kind": kind, "metadata": head, "status": status.to_json()}
    resource = BENCHMARKS[kind].KIND.resource
    written = await context.kube.apply_status(resource, namespace, body)
    context.objects.observe_write(resource, written)
    storage_usage.update_benchmark({**written, "kind": kind}, deleted=False)
