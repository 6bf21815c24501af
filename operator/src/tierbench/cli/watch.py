"""`kubectl tierbench watch`: show the progress of a benchmark until it ends."""

import argparse
import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Final

from tierbench.api.benchmark import Benchmark, Phase
from tierbench.api.model import Condition
from tierbench.api.result import RESULTS, BenchmarkResult, ResultPhase
from tierbench.cli.cluster import Cluster, explain_missing_status
from tierbench.cli.command import ExitCode, UserError, duration, parse_duration, run_with_cluster
from tierbench.cli.objects import Reference, parse_object, parse_reference
from tierbench.kube.informer import InitialListSynced, Update, WatchError, WatchEvent, WatchResumed
from tierbench.kube.meta import Raw

_FAILED: Final = ("Failed", "True")
_NOT_PASSED: Final = frozenset({("Passed", "ConstraintsBroken"), ("Passed", "ConstraintsUnknown")})
_WAITING: Final = {
    "Queued": "True",
    "Suspended": "True",
    "Scheduled": "False",
    "NetworkMeasured": "False",
    "ServerReady": "False",
}
_TICK_SECONDS: Final = 0.5
_STATUS_SECONDS: Final = 10
"""The time after which `watch` explains why a benchmark may have no status."""


@dataclass(frozen=True)
class Progress:
    """A benchmark and its results at the last watch event.

    `watch_error` says why there are no newer events, `missing_status` why the benchmark may have no status.
    """

    benchmark: Benchmark
    results: Mapping[str, BenchmarkResult] = field(default_factory=dict)
    watch_error: str = ""
    missing_status: str = ""
    deleted: bool = False

    @property
    def run(self) -> int:
        """The number of the current or last run, 0 before the first run."""
        return self.benchmark.status.run.number if self.benchmark.status.run else 0

    @property
    def ended(self) -> tuple[BenchmarkResult, ...]:
        """The results that this run has completed, oldest first."""
        ours = [result for result in self.results.values() if result.spec.run == self.run]
        done = [result for result in ours if result.status.phase is not ResultPhase.RUNNING]
        return tuple(sorted(done, key=lambda result: (result.status.completion_time or "", result.spec.case)))

    @property
    def exit_code(self) -> ExitCode | None:
        """The exit code, or None while the benchmark runs."""
        if self.deleted:
            return ExitCode.UNUSABLE
        status, wanted = self.benchmark.status, self.benchmark.spec.run_policy.rerun
        if status.observed_generation != self.benchmark.metadata.generation:
            return None
        if status.run is not None and wanted is not None and wanted != status.run.rerun:
            return None
        if status.phase is Phase.COMPLETE and not self.broken:
            return ExitCode.ANSWER
        return ExitCode.NO if status.phase in {Phase.COMPLETE, Phase.FAILED} else None

    @property
    def broken(self) -> tuple[Condition, ...]:
        """The conditions of constraints that the last run broke, or for which this is unknown."""
        conditions = self.benchmark.status.conditions
        return tuple(item for item in conditions if (item.type, item.reason) in _NOT_PASSED)

    @property
    def lacks_status(self) -> bool:
        """Whether the status is still empty."""
        return not self.deleted and self.benchmark.status.observed_generation == 0

    @property
    def remarks(self) -> tuple[str, ...]:
        """Messages why the benchmark waits, or why it failed."""
        if self.missing_status and self.lacks_status:
            return (self.missing_status,)
        if self.exit_code is ExitCode.ANSWER:
            return ()
        if self.exit_code is ExitCode.NO:
            failed = (item for item in self.benchmark.status.conditions if (item.type, item.status) == _FAILED)
            return tuple(_describe(item) for item in (*failed, *self.broken))
        conditions = self.benchmark.status.conditions
        return tuple(_describe(item) for item in conditions if _WAITING.get(item.type) == item.status)


def _describe(condition: Condition) -> str:
    return f"{condition.type} is {condition.status} ({condition.reason}): {condition.message}"


def apply_event(progress: Progress, event: Update) -> Progress:
    """Returns the progress after one watch event."""
    match event:
        case WatchError(error):
            return replace(progress, watch_error=str(error))
        case WatchResumed():
            return replace(progress, watch_error="")
        case InitialListSynced(resource, names, _) if resource == RESULTS:
            there = {name for _, name in names}
            known = {name: result for name, result in progress.results.items() if name in there}
            return replace(progress, watch_error="", results=known)
        case InitialListSynced(_, names, _):
            return replace(progress, watch_error="", deleted=progress.deleted or not names)
        case WatchEvent(resource, item, deleted) if resource == RESULTS:
            name, result = _result(item)
            others = {key: value for key, value in progress.results.items() if key != name}
            return replace(progress, results=others if deleted else others | {name: result})
        case WatchEvent(_, item, deleted):
            return replace(progress, deleted=True) if deleted else _with_benchmark(progress, item)


def _result(item: Raw) -> tuple[str, BenchmarkResult]:
    result = parse_object(BenchmarkResult, item)
    return result.metadata.name, result


def _with_benchmark(progress: Progress, item: Raw) -> Progress:
    benchmark = parse_object(type(progress.benchmark), item)
    # A benchmark that was deleted and created again has the same name and another uid.
    recreated = benchmark.metadata.uid != progress.benchmark.metadata.uid
    return replace(progress, benchmark=benchmark, deleted=progress.deleted or recreated)


def changes(before: Progress | None, after: Progress) -> Iterator[str]:
    """Returns one line for each change."""
    if after.watch_error and (before is None or not before.watch_error):
        yield f"watch failed: {after.watch_error}; retrying"
    if before is not None and before.watch_error and not after.watch_error:
        yield "the API server answers again"
    if before is not None and after.run > before.run > 0:
        yield f"run {after.run} started"
    known = {result.metadata.name for result in before.ended} if before is not None else set()
    yield from (_result_line(result) for result in after.ended if result.metadata.name not in known)
    if before is None or _now_line(before) != _now_line(after):
        yield _now_line(after)
    old = before.remarks if before is not None else ()
    yield from (remark for remark in after.remarks if remark not in old)
    if after.deleted and not (before is not None and before.deleted):
        yield f"{after.benchmark.metadata.name} was deleted"


def _now_line(progress: Progress) -> str:
    """Returns the phase, the number of cases, the current trial and the time left."""
    status = progress.benchmark.status
    parts = [status.phase.value]
    if status.cases.total:
        parts.append(f"{status.cases.finished}/{status.cases.total} cases")
    if status.current is not None:
        trial = min(status.current.finished_trials + 1, status.current.total_trials)
        parts.append(f"{status.current.name}, trial {trial} of {status.current.total_trials}")
    if status.remaining_seconds is not None:
        parts.append(f"{duration(status.remaining_seconds)} left")
    return " · ".join(parts)


def _result_line(result: BenchmarkResult) -> str:
    """Returns a line for a case that has ended."""
    status, spec = result.status, result.spec
    place = f"{status.display.case} on {spec.server.node_class}".strip()
    if status.phase is ResultPhase.FAILED:
        return f"failed: {place}: {status.reason}: {status.message}"
    counts = status.counts
    parts = [status.display.mean, status.display.throughput, f"{counts.retries} retries"]
    if counts.failed:
        parts.append(f"{counts.failed} trials failed")
    if status.valid is False:
        parts.append(f"not valid: {', '.join(note.reason for note in status.invalid)}")
    return f"measured: {place}: {', '.join(part for part in parts if part)}"


def closing_line(progress: Progress) -> str:
    """Returns a line with the outcome and what to do next."""
    metadata, cases = progress.benchmark.metadata, progress.benchmark.status.cases
    if progress.deleted:
        return f"{metadata.name} was deleted before it ended: create it again to measure"
    measured = f"{cases.total - cases.failed} of {cases.total} cases measured"
    if progress.broken:
        return f"Not passed: {measured}; {' '.join(item.message for item in progress.broken)}"
    if progress.exit_code is ExitCode.NO:
        return f"Failed: {measured}; see `kubectl describe {progress.benchmark.KIND.singular} {metadata.name}`"
    hint = f"see `kubectl tierbench results {metadata.name} -n {metadata.namespace or 'default'}`"
    answer = f" {progress.benchmark.status.answer}" if progress.benchmark.status.answer else ""
    return f"Complete: {measured}.{answer} For the numbers, {hint}"


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
