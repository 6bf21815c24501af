"""tierbench-operator: the program in the operator's pod."""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

import aiohttp

from tierbench.controller.advisor import Advisor
from tierbench.controller.benchmarks import Benchmarks
from tierbench.controller.context import Context
from tierbench.controller.definitions import DefinitionsReader
from tierbench.controller.leadership import Leadership, end_process
from tierbench.controller.logs import log_to_stderr
from tierbench.controller.node_classes import keep_node_classes
from tierbench.controller.settings import Settings, SettingsError
from tierbench.controller.storage import keep_storage
from tierbench.controller.watching import Watched, everything, follow
from tierbench.kube.claims import Candidate, Claim
from tierbench.kube.client import Kube
from tierbench.kube.connect import connect
from tierbench.kube.credentials import certificates
from tierbench.kube.fence import Fence
from tierbench.kube.reviews import may_scrape
from tierbench.metrics.authorization import Protection, ScrapeGuard, tls_context
from tierbench.metrics.operator import OperatorMetrics
from tierbench.metrics.server import serve

_HURRY: Final = aiohttp.ClientTimeout(total=3)
_logger = logging.getLogger(__name__)


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
            await until(stop.wait(), leadership.run(), _run(context, leadership))
            await leadership.leave()


def _protection(kube: Kube) -> Protection:
    """Scrapers take any certificate, as those of other operators: a new one is made at every start."""
    made = certificates("tierbench-operator")
    return Protection(ScrapeGuard(partial(may_scrape, kube)), tls_context(made["tls.crt"], made["tls.key"]))


async def _run(context: Context, leadership: Leadership) -> None:
    """Sees everything first, so that whoever stands by goes on at once."""
    advisor, benchmarks, definitions = Advisor(context), Benchmarks(context), DefinitionsReader(context)
    await definitions.read_or_leave()
    async with asyncio.TaskGroup() as group:
        for watched in everything(context, advisor, benchmarks):
            await _begin_to_follow(context, watched, group)
        context.results.mark_filled()
        await leadership.won.wait()
        tasks = (keep_node_classes(context), keep_storage(context), definitions.run(advisor))
        for task in (benchmarks.run(), advisor.run(), *tasks):
            group.create_task(_for_ever(task))


async def _begin_to_follow(context: Context, watched: Watched, group: asyncio.TaskGroup) -> None:
    """Watches one type, and waits until all that there is of it was told of: a node not seen yet must not pass for one
    that is gone, and two lists at once would need the memory of both."""
    for namespace in watched.namespaces:
        listed = asyncio.Event()
        group.create_task(_for_ever(follow(context.kube, watched, namespace, listed)))
        await listed.wait()


async def until(main: Coroutine[Any, Any, Any], *besides: Coroutine[Any, Any, None]) -> None:
    """Runs `main` to its end, with tasks beside it that have none: what one of them ends with ends the process."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_for_ever(task)) for task in besides]
        await main
        for task in tasks:
            task.cancel()


async def _for_ever(task: Coroutine[Any, Any, None]) -> None:
    await task
    raise RuntimeError(f"{task} has ended")


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
