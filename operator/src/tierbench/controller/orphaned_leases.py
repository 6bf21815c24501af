"""Releases the nodes of benchmarks that are gone: their authors have removed the finalizer."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Final

from tierbench.controller.context import Context, benchmark_of
from tierbench.controller.executor import release_leases
from tierbench.domain.views import PARSE_ERRORS, lease_view
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.client import REQUEST_ERRORS
from tierbench.kube.meta import JOBS, LEASES, PODS, Raw

_PERIOD_SECONDS: Final = 10.0
_logger = logging.getLogger(__name__)


async def run_orphaned_leases(context: Context) -> None:
    """Releases Leases without an owner every ten seconds, without end. It reads caches only."""
    before = frozenset[tuple[str, str]]()
    while True:
        await asyncio.sleep(_PERIOD_SECONDS)
        before = await release_orphans(context, before)


async def release_orphans(context: Context, before: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """Releases the Leases that have no owner now and had none before. Returns node and holder of those without one.

    Two looks are needed because the watches of benchmarks, Jobs and pods may be apart for a moment.
    """
    found = frozenset(_orphans(context))
    with context.metrics.track("Leases of benchmarks that are gone"):
        for node, holder in sorted(found & before):
            extra = {"node": node, "holder": holder}
            try:
                await release_leases(context.kube, context.objects, context.settings.lease_namespace, holder, [node])
                _logger.warning("released a node whose benchmark is gone", extra=extra)
            except REQUEST_ERRORS as error:
                _logger.warning("cannot release a node; retrying", extra={**extra, "error": str(error)})
    return found


def _orphans(context: Context) -> Iterator[tuple[str, str]]:
    """Yields node and holder of each Lease whose benchmark, Jobs and pods are gone, if its namespace is watched."""
    benchmarks = (raw for model in BENCHMARKS.values() for raw in context.objects[model.KIND.resource].list())
    uids = {raw["metadata"]["uid"] for raw in benchmarks}
    watched = context.settings.watch_namespaces
    for raw in context.objects[LEASES].list():
        try:
            lease = lease_view(raw)
            namespace, name, uid = lease.holder.split("/")
        except PARSE_ERRORS:
            continue
        if uid not in uids and (not watched or namespace in watched) and not _has_pods(context, namespace, name, uids):
            yield lease.node, lease.holder


def _has_pods(context: Context, namespace: str, name: str, uids: set[str]) -> bool:
    """Returns whether there are Jobs or pods of a benchmark of this name that is gone."""
    jobs, pods = (
        [raw for raw in context.objects[each].list() if benchmark_of(raw)[1:] == (namespace, name)]
        for each in (JOBS, PODS)
    )
    owners = uids | {raw["metadata"]["uid"] for raw in jobs if _controller(raw) in uids}
    return any(_controller(raw) not in owners for raw in (*jobs, *pods))


def _controller(raw: Raw) -> str:
    """Returns the UID of the controller of an object; empty without one."""
    owners = raw["metadata"].get("ownerReferences", ())
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")
