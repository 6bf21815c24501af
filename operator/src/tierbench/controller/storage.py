"""Keeps what results and traces take in etcd under its limit."""

import asyncio
import logging
from typing import Final

from tierbench.api.benchmark_kinds import BENCHMARKS
from tierbench.api.model import API_VERSION
from tierbench.controller.context import Context
from tierbench.domain.conditions import conditions
from tierbench.domain.eviction import Change, plan
from tierbench.domain.notices import condition, events
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
        stored, limit = context.results.ledger.total, context.settings.quotas.most_stored_bytes
        context.metrics.stored(stored, limit)
        if was_full and stored < limit:
            context.wakeups.ring_all()
        was_full = stored >= limit
        if context.results.filled:  # else what is there would pass for gone, and its notices for void
            await _evict(context)
        await asyncio.sleep(_LOOK_SECONDS)


async def _evict(context: Context) -> None:
    for change in plan(context.results.ledger, context.settings.quotas, context.kube.now()):
        try:
            await _carry_out(context, change)
        except NotFoundError:
            _logger.info("%s %s/%s is gone", *change.benchmark)
        except UNANSWERED as error:
            _logger.warning("Old runs of %s %s/%s: %s; trying again", *change.benchmark, error)
        except Exception:
            _logger.exception("Old runs of %s %s/%s stay", *change.benchmark)


async def _carry_out(context: Context, change: Change) -> None:
    """Events, then the status, then deletions: killed in between, it says a thing twice and never too little."""
    kind, namespace, name = change.benchmark
    if change.evictions != context.results.ledger.benchmarks[change.benchmark].evictions:
        with context.metrics.working(_TASK):
            await _say(context, change)
    for run in change.going:
        with context.metrics.working(_TASK):
            for result, uid in context.results.ledger.results_of(run.key).items():
                await context.kube.delete(RESULTS, namespace, result, {"uid": uid})
        _logger.info("Run %d of %s %s/%s has gone for want of room", run.key[1], kind, namespace, name)


async def _say(context: Context, change: Change) -> None:
    """In its status, which its loop writes, too: whole, and refused if the other has written since it was read."""
    ledger, quotas, now = context.results.ledger, context.settings.quotas, context.kube.now()
    kind, namespace, name = change.benchmark
    resource = ResourceType.of(BENCHMARKS[kind].KIND)
    benchmark = BENCHMARKS[kind].model_validate(await context.kube.get(resource, namespace, name))
    owner = Owner(kind, namespace, name, benchmark.metadata.uid)
    for event in events(change, ledger.total, quotas, now):
        await post(context.kube, owner, event)
    said = conditions(benchmark, [condition(change, ledger.total, quotas)], now)
    status = benchmark.status.model_copy(update={"evictions": change.evictions, "conditions": said})
    head = {"name": name, "namespace": namespace, "resourceVersion": benchmark.metadata.resource_version}
    body = {"apiVersion": API_VERSION, "kind": kind, "metadata": head, "status": status.to_json()}
    written = await context.kube.apply_status(resource, namespace, body)
    ledger.see_benchmark({**written, "kind": kind}, deleted=False)
