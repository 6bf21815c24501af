"""tierbench-operator: the program in the operator's pod."""

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final

import aiohttp
import kopf

from tierbench.api.benchmark_kinds import BENCHMARKS
from tierbench.api.model import GROUP
from tierbench.controller.advisor import Advisor
from tierbench.controller.comparison import Comparison
from tierbench.controller.context import Context
from tierbench.controller.handlers import register
from tierbench.controller.leadership import Leadership, end_process
from tierbench.controller.logs import log_to_stderr
from tierbench.controller.node_classes import keep_node_classes
from tierbench.controller.settings import Settings, SettingsError
from tierbench.controller.watching import watched
from tierbench.kube.claims import Candidate, Claim
from tierbench.kube.client import RESULTS, UNANSWERED, Kube, ResourceType
from tierbench.kube.connect import connect
from tierbench.kube.credentials import certificates
from tierbench.kube.fence import Fence
from tierbench.kube.reviews import may_scrape
from tierbench.metrics.authorization import Protection, ScrapeGuard, tls_context
from tierbench.metrics.operator import OperatorMetrics
from tierbench.metrics.server import serve
from tierbench.workloads.names import LABEL_KIND

_RETRY_SECONDS: Final = 5
_HURRY: Final = aiohttp.ClientTimeout(total=3)
_logger = logging.getLogger(__name__)


class NoDiffBase(kopf.DiffBaseStorage):
    """No handler looks at differences, so kopf need not keep the last configuration in an annotation."""

    def fetch(self, *, body: kopf.Body) -> None:
        """Nothing is kept."""

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Keeps nothing."""


def kopf_settings() -> kopf.OperatorSettings:
    """kopf keeps nothing in the objects but its finalizer, posts no events, and watches only what is ours."""
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.persistence.finalizer = f"{GROUP}/cleanup"
    settings.persistence.diffbase_storage = NoDiffBase()
    settings.watching.label_selectors["pods"] = LABEL_KIND
    settings.watching.label_selectors["batch", "jobs"] = LABEL_KIND
    settings.background.cancellation_polling = 2
    settings.background.instant_exit_timeout = 0.5
    # After an outage of the API server a stream may hang without an end: none lasts for longer than this.
    settings.watching.server_timeout = 45
    settings.watching.client_timeout = 60
    settings.watching.connect_timeout = 5
    settings.networking.error_backoffs = [1, 1, 2, 3, 5, 5, 5, 5, 5]
    return settings


async def operate(settings: Settings, end: Callable[[], None] = end_process) -> None:
    """Runs the operator until SIGTERM or SIGINT. `end` ends it when it leads no more."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    metrics, fence = OperatorMetrics(), Fence()
    claim = Claim(settings.release, settings.watch_namespaces, settings.pod)
    # The Lease is not renewed behind other requests, nor in connections that they take.
    async with connect(metrics.api_answered, fence.check) as kube, connect(metrics.api_answered, timeout=_HURRY) as own:
        context = Context(kube, settings, metrics=metrics)
        leadership = Leadership(Candidate(own, settings.lease_namespace, claim, fence), metrics, end)
        protection = _protection(own) if settings.metrics_authorization else None
        async with serve(settings.http_port, context.results, context.metrics, protection):
            await until(_work(context, leadership, stop), leadership.run())
            await leadership.leave()


async def _work(context: Context, leadership: Leadership, stop: asyncio.Event) -> None:
    """Runs benchmarks once this operator leads. It reads all that there is before, to go on at once."""
    await _read(stop, partial(_load, context))
    if not await leadership.won(stop):
        return
    await _read(stop, partial(context.cluster.load, context.kube))
    settings = context.settings
    registry = kopf.OperatorRegistry()
    advisor = Advisor(context)
    types = tuple(watched(context, advisor))
    comparison = Comparison(context.kube, context.metrics, settings.watch_namespaces, types)
    register(registry, context, types, comparison)
    await until(
        kopf.operator(
            registry=registry,
            settings=kopf_settings(),
            standalone=True,
            clusterwide=not settings.watch_namespaces,
            namespaces=settings.watch_namespaces,
            stop_flag=stop,
        ),
        keep_node_classes(context),
        advisor.run(),
        comparison.run(),
    )


def _protection(kube: Kube) -> Protection:
    """Scrapers take any certificate, as those of other operators: a new one is made at every start."""
    made = certificates("tierbench-operator")
    return Protection(ScrapeGuard(partial(may_scrape, kube)), tls_context(made["tls.crt"], made["tls.key"]))


async def until(main: Coroutine[Any, Any, None], *besides: Coroutine[Any, Any, None]) -> None:
    """Runs `main` to its end, with tasks beside it that have none: what one of them ends with ends the process."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_for_ever(task)) for task in besides]
        await main
        for task in tasks:
            task.cancel()


async def _for_ever(task: Coroutine[Any, Any, None]) -> None:
    await task
    raise RuntimeError(f"{task} has ended")


async def _read(stop: asyncio.Event, read: Callable[[], Awaitable[None]]) -> None:
    """Reads until the API server answers, or the operator is told to stop."""
    while not stop.is_set():
        try:
            await read()
        except UNANSWERED as error:
            _logger.warning("What there is cannot be read yet: %s", error)
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            return


async def _load(context: Context) -> None:
    """Fills the shared views before any benchmark is looked at: a node not seen yet must not pass for one gone."""
    await context.cluster.load(context.kube)
    for namespace in context.settings.watch_namespaces or (None,):
        await _load_results(context, namespace)
    context.results.mark_filled()
    context.classes_changed.set()


async def _load_results(context: Context, namespace: str | None) -> None:
    for model in BENCHMARKS.values():
        async for raw in context.kube.each(ResourceType.of(model.KIND), namespace):
            context.results.see_benchmark({**raw, "kind": model.KIND.kind}, deleted=False)
    async for raw in context.kube.each(RESULTS, namespace):
        context.results.see(raw, deleted=False)


def main() -> None:
    """Reads the settings, then runs."""
    try:
        settings = Settings.from_environment()
    except SettingsError as error:
        sys.exit(f"tierbench-operator: {error}")
    log_to_stderr(settings.log_level, settings.log_format)
    try:
        asyncio.run(operate(settings))
    except Exception:
        _logger.exception("The operator ends")
        sys.exit(1)
