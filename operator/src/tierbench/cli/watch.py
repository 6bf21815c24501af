"""`kubectl tierbench watch`: show the progress of a benchmark until it ends."""

import argparse
import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

from tierbench.cli.cluster import Cluster, explain_missing_status
from tierbench.cli.command import ExitCode, UserError, parse_duration, run_with_cluster
from tierbench.cli.objects import Reference, parse_reference
from tierbench.cli.progress import Progress, apply_event, changes, closing_line
from tierbench.kube.informer import Update

_TICK_SECONDS: Final = 0.5
_STATUS_SECONDS: Final = 10
"""The time after which `watch` explains why a benchmark may have no status."""


def add_watch(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `watch`."""
    parser.set_defaults(run=watch)
    parser.add_argument("name", metavar="[KIND/]NAME", help="the benchmark")
    add_timeout(parser)


def add_timeout(parser: argparse.ArgumentParser) -> None:
    """Adds the argument that limits the time of watching."""
    parser.add_argument(
        "--timeout", type=parse_duration, metavar="DURATION", help="stop watching after this time, as in 90s or 1h30m"
    )


def watch(options: argparse.Namespace) -> ExitCode:
    """Shows the progress until the benchmark ends.

    Raises:
        UserError: there is no such benchmark, or it does not end within the timeout.
    """
    deadline = None if options.timeout is None else time.monotonic() + options.timeout
    return run_with_cluster(options, partial(_watch, parse_reference(options.name), deadline))


async def _watch(reference: Reference, deadline: float | None, cluster: Cluster) -> ExitCode:
    benchmark = await cluster.find(reference)
    before, last = None, Progress(benchmark)
    async with aclosing(_follow(cluster, last, deadline)) as updates:
        async for last in updates:
            for line in changes(before, last):
                print(f"{datetime.now().astimezone():%H:%M:%S} {line}", flush=True)
            before = last
    print(closing_line(last), flush=True)
    return ExitCode.UNUSABLE if last.exit_code is None else last.exit_code


async def _follow(cluster: Cluster, progress: Progress, deadline: float | None) -> AsyncGenerator[Progress]:
    """Yields the progress after each watch event and every tick, until the benchmark ends."""
    start = time.monotonic()
    events: asyncio.Queue[Update | Exception] = asyncio.Queue()
    tasks = [asyncio.create_task(_forward(source, events)) for source in cluster.watch(progress.benchmark)]
    try:
        while not _is_complete(progress):
            if deadline is not None and time.monotonic() > deadline:
                name, phase = progress.benchmark.metadata.name, progress.benchmark.status.phase
                raise UserError(
                    f"{name} did not end within the timeout ({phase}): "
                    + (" ".join(progress.remarks) or "it continues; watch it again, or set a longer --timeout")
                )
            if progress.lacks_status and not progress.missing_status and time.monotonic() - start >= _STATUS_SECONDS:
                progress = await _explain_missing_status(cluster, progress)
            yield progress
            try:
                async with asyncio.timeout(_TICK_SECONDS):
                    event = await events.get()
            except TimeoutError:
                if progress.exit_code is not None:
                    break
                continue
            if isinstance(event, Exception):
                raise event
            progress = apply_event(progress, event)
        yield progress
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _explain_missing_status(cluster: Cluster, progress: Progress) -> Progress:
    """Returns the progress with a message why the benchmark may have no status."""
    watched, name = await cluster.watched_namespaces(), progress.benchmark.metadata.name
    message = explain_missing_status(watched, name, cluster.namespace, _STATUS_SECONDS)
    return replace(progress, missing_status=message)


def _is_complete(progress: Progress) -> bool:
    """Returns whether the benchmark has ended, and the events of its last results have arrived."""
    has_results = progress.deleted or len(progress.ended) >= progress.benchmark.status.cases.finished
    return progress.exit_code is not None and has_results


async def _forward(source: AsyncIterator[Update], queue: "asyncio.Queue[Update | Exception]") -> None:
    """Puts watch events into the queue, and the error that ends the watch."""
    try:
        async for event in source:
            queue.put_nowait(event)
    except Exception as error:
        queue.put_nowait(error)
