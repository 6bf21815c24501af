"""tierbench-operator: the program of the operator's pod."""

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final

import aiohttp
from yarl import URL

from tierbench.api.model import API_VERSION, GROUP
from tierbench.controller.advisor import Advisor
from tierbench.controller.collector import run_collector
from tierbench.controller.context import Context, restore_queue
from tierbench.controller.credentials import certificates
from tierbench.controller.definitions import check_definitions, run_definition_check
from tierbench.controller.executor import run_orphaned_leases
from tierbench.controller.handlers import handled, reflected, run_kopf
from tierbench.controller.logs import log_to_stderr
from tierbench.controller.node_classes import run_node_classes
from tierbench.controller.outside import routes
from tierbench.controller.settings import Settings, SettingsError
from tierbench.kube.client import REQUEST_ERRORS, Kube, describe_error
from tierbench.kube.connect import connect
from tierbench.kube.informer import Informer, ListObserver, run_informer
from tierbench.kube.leader_election import ElectionRecord, Fence, LeaderElector, LeaseLock, start_again
from tierbench.metrics.operator import OperatorMetrics
from tierbench.metrics.server import Protection, ScrapeGuard, application, may_get, probes, serve, tls_context

_LEASE_TIMEOUT: Final = aiohttp.ClientTimeout(total=3)
_RETRY_SECONDS: Final = 2.0
_GARBAGE_THRESHOLDS: Final = (10_000, 20, 20)
"""Allocations between two garbage collections, which visit all caches. Python collects more often by default."""
_logger = logging.getLogger(__name__)


async def operate(settings: Settings, on_stopped_leading: Callable[[], None] = start_again) -> None:
    """Runs the operator until SIGTERM or SIGINT. `on_stopped_leading` does not return."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    metrics, fence = OperatorMetrics(), Fence()
    metrics.set_stored_limit(settings.quotas.most_stored_bytes)
    record = ElectionRecord(settings.release, settings.watch_namespaces, settings.pod)
    # The Lease is renewed over connections of its own, so that no other request delays it.
    async with (
        connect(metrics.count_request, fence.check) as kube,
        connect(metrics.count_request, timeout=_LEASE_TIMEOUT) as own,
    ):
        context = Context(kube, settings, metrics=metrics)
        lock = LeaseLock(own, settings.lease_namespace, GROUP, record, fence)
        elector = LeaderElector(lock, metrics, on_stopped_leading)
        protection = _protection(own) if settings.metrics_authorization else None
        tls = None if protection is None else protection.context
        app = application(context.results, metrics, protection)
        async with AsyncExitStack() as ports:
            await ports.enter_async_context(serve(settings.http_port, app, tls))
            if settings.probe_port is not None:
                await ports.enter_async_context(serve(settings.probe_port, probes(context.results, metrics)))
            await until(stop.wait(), elector.run(), _run(context, elector, stop))
            await elector.release()


def _protection(kube: Kube) -> Protection:
    """Serves /metrics over TLS with a new certificate at each start. Scrapers do not verify it."""
    made = certificates("tierbench-operator")
    return Protection(ScrapeGuard(partial(may_get, kube, "/metrics")), tls_context(made["tls.crt"], made["tls.key"]))


async def _run(context: Context, elector: LeaderElector, stop: asyncio.Event) -> None:
    """Is on standby with synced reflectors, then leads until a signal ends kopf."""
    advisor = Advisor(context)
    async with asyncio.TaskGroup() as group:
        checked = group.create_task(check_definitions(context.kube, context.definitions, context.metrics))
        for informer in reflected(context, advisor):
            await _start_informer(context, informer, group)
        await checked
        context.results.has_results = True
        await elector.is_leader.wait()

        def reconcile_all() -> None:
            context.cluster.retry_rejected()
            context.workqueue.add_all()
            advisor.add_all()

        kube, metrics = context.kube, context.metrics
        informers = tuple(handled(context, advisor))
        lists = ListObserver(informers, URL(kube.address).path)
        # At its end kopf waits for every task that began after it, so these begin before it.
        group.create_task(_mark_filled(context, lists))
        for run in (
            advisor.run,
            partial(run_node_classes, kube, context.cluster, metrics, context.definitions),
            partial(run_orphaned_leases, context),
            partial(run_definition_check, kube, context.definitions, metrics, reconcile_all),
        ):
            group.create_task(_endless(_after(lists.synced, run)))
        if secret := context.settings.collector_secret:
            name, port = (context.settings.release.partition("/")[0], secret), context.settings.collector_port
            address = context.settings.images.collector
            context.cluster.waits_for_collector = True
            further = partial(routes, context.inbox, context.cluster, kube.now, lists.synced.is_set, address)
            group.create_task(_endless(run_collector(context.inbox, kube, name, port, further)))
        await _wait_until_served(kube, informers)
        await run_kopf(context, informers, lists, elector.release)
        stop.set()
        await asyncio.Event().wait()


async def _after(event: asyncio.Event, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
    await event.wait()
    await run()


async def _mark_filled(context: Context, lists: ListObserver) -> None:
    """Has waited for longer than any reconciler, so it continues before them."""
    await lists.synced.wait()
    context.results.mark_filled()
    restore_queue(context)
    gc.freeze()  # caches are no garbage


async def _wait_until_served(kube: Kube, informers: Iterable[Informer]) -> None:
    """Waits for the CRDs: kopf watches no type that is not served when it starts."""
    types = {informer.resource for informer in informers if GROUP in informer.resource.api}
    while True:
        try:
            served = await kube.request("GET", f"/apis/{API_VERSION}")
            missing = {one.plural for one in types} - {resource["name"] for resource in served["resources"]}
            if not missing:
                return
            reason = f"the API server does not serve {', '.join(sorted(missing))}"
        except REQUEST_ERRORS as error:
            reason = describe_error(error)
        _logger.warning("cannot start; retrying", extra={"error": reason})
        await asyncio.sleep(_RETRY_SECONDS)


async def _start_informer(context: Context, informer: Informer, group: asyncio.TaskGroup) -> None:
    """Starts an informer and waits until it has synced.

    A node that is not listed yet must not count as deleted, and two lists at a time would need the memory of both.
    """
    for namespace in informer.namespaces:
        synced = asyncio.Event()
        group.create_task(_endless(run_informer(context.kube, informer, namespace, synced)))
        await synced.wait()


async def until(main: Coroutine[Any, Any, Any], *background: Coroutine[Any, Any, None]) -> None:
    """Runs `main` to its end, and endless tasks in the background. The end of any of these is an error."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_endless(task)) for task in background]
        await main
        for task in tasks:
            task.cancel()


async def _endless(task: Coroutine[Any, Any, None]) -> None:
    await task
    raise RuntimeError(f"{task} has ended")


def main() -> None:
    """Reads the settings and runs the operator."""
    try:
        settings = Settings.from_environment()
    except SettingsError as error:
        sys.exit(f"tierbench-operator: {error}")
    log_to_stderr(settings.log_level, settings.log_format)
    gc.set_threshold(*_GARBAGE_THRESHOLDS)
    try:
        asyncio.run(operate(settings))
    except Exception:
        _logger.exception("the operator failed")
        sys.exit(1)
