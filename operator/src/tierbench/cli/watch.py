"""`kubectl tierbench watch`: live progress until the benchmark ends."""

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.live import Live

from tierbench.cli.arguments import Subparsers, command
from tierbench.cli.ask import ask
from tierbench.cli.cluster import Cluster
from tierbench.cli.errors import ExitCode, UserError
from tierbench.cli.live import picture
from tierbench.cli.objects import Reference, parse_reference
from tierbench.cli.progress import Progress, changes, closing_line, heard
from tierbench.cli.watched import no_status
from tierbench.kube.news import News

if TYPE_CHECKING:
    from tierbench.cli.cluster import Cluster

_TICK_SECONDS: Final = 0.5
_SILENT_SECONDS: Final = 10
_LINES_BESIDE_RESULTS: Final = 10
_LEAST_ROWS: Final = 3


def register(commands: Subparsers) -> None:
    """Adds the command."""
    text = "Show how a benchmark goes on until it ends. Exit code 0: measured, 1: failed, 2: not known."
    parser = command(commands, "watch", run, text)
    parser.add_argument("name", metavar="[KIND/]NAME", help="the benchmark")
    parser.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="give up after so long; 90, 90s, 10m or 2h")


def _seconds(text: str) -> float:
    factor = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    number = text[:-1] if factor else text
    if not number.isdigit() or int(number) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time: write 90, 90s, 10m or 2h")
    return float(number) * (factor or 1)


def run(options: argparse.Namespace) -> ExitCode:
    """Watches until the benchmark ends.

    Raises:
        UserError: there is no such benchmark, or the time is over.
    """
    deadline = None if options.timeout is None else time.monotonic() + options.timeout
    return ask(options, partial(_watch, parse_reference(options.name), deadline))


async def _watch(reference: Reference, deadline: float | None, cluster: "Cluster") -> ExitCode:
    benchmark = await cluster.find(reference)
    console = Console(highlight=False)
    async with aclosing(_news(cluster, Progress(benchmark), deadline)) as news:
        last = await (_draw(console, news) if console.is_terminal else _tell(news))
    print(closing_line(last), flush=True)
    return ExitCode.UNUSABLE if last.exit_code is None else last.exit_code


async def _news(cluster: "Cluster", progress: Progress, deadline: float | None) -> AsyncGenerator[Progress]:
    """The progress whenever something is heard, and every tick; ends with the benchmark."""
    began = time.monotonic()
    heard_of: asyncio.Queue[News | Exception] = asyncio.Queue()
    tasks = [asyncio.create_task(_pass_on(feed, heard_of)) for feed in cluster.watch(progress.benchmark)]
    try:
        while not _all_told(progress):
            if deadline is not None and time.monotonic() > deadline:
                raise UserError(
                    f"{progress.benchmark.metadata.name} did not end in time ({progress.benchmark.status.phase}): "
                    + (" ".join(progress.remarks) or "it continues; watch again, or give a longer --timeout")
                )
            if progress.unanswered and not progress.silence and time.monotonic() - began >= _SILENT_SECONDS:
                progress = await _explained(cluster, progress)
            yield progress
            try:
                async with asyncio.timeout(_TICK_SECONDS):
                    news = await heard_of.get()
            except TimeoutError:
                if progress.exit_code is not None:
                    break
                continue
            if isinstance(news, Exception):
                raise news
            progress = heard(progress, news)
        yield progress
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _explained(cluster: "Cluster", progress: Progress) -> Progress:
    """The progress with the reason why the benchmark may have no status."""
    found, name = await cluster.watched(), progress.benchmark.metadata.name
    return replace(progress, silence=no_status(found, name, cluster.namespace, _SILENT_SECONDS))


def _all_told(progress: Progress) -> bool:
    """Whether the benchmark has ended and its last results were heard of, too."""
    told = progress.deleted or len(progress.ended) >= progress.benchmark.status.cases.ended
    return progress.exit_code is not None and told


async def _pass_on(feed: AsyncIterator[News], to: "asyncio.Queue[News | Exception]") -> None:
    """Puts news in the queue, and what ends it, so that nobody waits for a feed that is no more."""
    try:
        async for news in feed:
            to.put_nowait(news)
    except Exception as error:
        to.put_nowait(error)


async def _tell(news: AsyncIterator[Progress]) -> Progress:
    """A line a change."""
    before: Progress | None = None
    async for progress in news:
        if progress is not before:
            for line in changes(before, progress):
                print(f"{datetime.now().astimezone():%H:%M:%S} {line}", flush=True)
        before = progress
    return _last(before)


async def _draw(console: Console, news: AsyncIterator[Progress]) -> Progress:
    """A picture that is drawn again and again in its place."""
    last: Progress | None = None
    status_since = time.monotonic()
    with Live(console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
        async for progress in news:
            if last is None or progress.benchmark.status != last.benchmark.status:
                status_since = time.monotonic()
            last = progress
            rows = max(_LEAST_ROWS, console.height - _LINES_BESIDE_RESULTS)
            live.update(picture(progress, time.monotonic() - status_since, rows), refresh=True)
    return _last(last)


def _last(progress: Progress | None) -> Progress:
    if progress is None:
        sys.exit(ExitCode.UNUSABLE)
    return progress
