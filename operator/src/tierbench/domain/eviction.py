"""Which runs go for want of room, and when: the oldest that have ended, each announced in time. Pure."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from pydantic import ValidationError

from tierbench.api.benchmark import BenchmarkStatus, Eviction
from tierbench.api.policy import Quotas
from tierbench.domain import reasons
from tierbench.domain.actions import Event
from tierbench.domain.results import BenchmarkKey
from tierbench.domain.status import ConditionUpdate
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.clock import format_time, parse_time

RunKey = tuple[BenchmarkKey, int]
"""A benchmark, and the number of a run."""

_logger = logging.getLogger(__name__)
WATERMARK_PERCENT: Final = 80


@dataclass(frozen=True)
class KnownBenchmark:
    """What tells which runs of a benchmark may go. `ended` is the newest that has ended, 0 if none has."""

    version: int
    ended: int
    baseline: int | None
    evictions: tuple[Eviction, ...]


@dataclass(frozen=True)
class FinishedRun:
    """A run that has ended: what its results and traces take, and when the last of them was created.

    `needed` says that its benchmark's answer rests on it: it is the newest, or the one that others are compared with.
    """

    key: RunKey
    needed: bool
    size: int
    last: str


@dataclass(slots=True)
class _Run:
    """Results by name: their UIDs, and what each takes with its trace."""

    key: RunKey
    size: int = 0
    last: str = ""
    results: dict[str, tuple[str, int]] = field(default_factory=dict)


class StorageUsage:
    """Every result by its size, and every benchmark."""

    def __init__(self) -> None:
        self._runs: dict[RunKey, _Run] = {}
        self._of: dict[tuple[str, str], _Run] = {}
        self._total = 0
        self.benchmarks: dict[BenchmarkKey, KnownBenchmark] = {}

    @property
    def total(self) -> int:
        """What all results and traces take, in bytes."""
        return self._total

    def update_result(self, raw: Mapping[str, Any], *, deleted: bool) -> None:
        """Takes in a result, growing or sealed."""
        metadata = raw["metadata"]
        name = (metadata.get("namespace", ""), metadata["name"])
        self._forget(name)
        if deleted:
            return
        reference, size = raw["spec"]["benchmark"], size_of(raw)
        key = ((reference["kind"], name[0], reference["name"]), raw["spec"]["run"])
        self._of[name] = run = self._runs.setdefault(key, _Run(key))
        run.results[name[1]] = (metadata.get("uid", ""), size)
        run.last = max(run.last, metadata.get("creationTimestamp") or "")
        run.size += size
        self._total += size

    def _forget(self, name: tuple[str, str]) -> None:
        run = self._of.pop(name, None)
        if run is None:
            return
        _, size = run.results.pop(name[1])
        run.size -= size
        self._total -= size
        if not run.results:
            del self._runs[run.key]

    def update_benchmark(self, raw: Mapping[str, Any], *, deleted: bool) -> None:
        """Takes in a benchmark of any kind. One whose status cannot be understood has no runs that may go."""
        metadata = raw["metadata"]
        key = (raw["kind"], metadata["namespace"], metadata["name"])
        version, known = int(metadata.get("resourceVersion") or 0), self.benchmarks.get(key)
        if known is not None and not deleted and version < known.version:
            return  # a watch tells of what was before an own write
        self.benchmarks.pop(key, None)
        if deleted:
            return
        try:
            status = BenchmarkStatus.model_validate(raw.get("status", {}))
        except ValidationError as error:
            _logger.debug("No run of %s %s/%s may go, as its status cannot be understood: %s", *key, error)
            return
        baseline = raw.get("spec", {}).get("runPolicy", {}).get("baselineRun")
        self.benchmarks[key] = KnownBenchmark(version, _ended(status), baseline, status.evictions)

    def finished_runs(self) -> Iterator[FinishedRun]:
        """All runs that their benchmarks have ended."""
        for (key, number), run in self._runs.items():
            benchmark = self.benchmarks.get(key)
            if benchmark is not None and number <= benchmark.ended:
                yield FinishedRun(run.key, number in {benchmark.ended, benchmark.baseline}, run.size, run.last)

    def results_of(self, key: RunKey) -> dict[str, str]:
        """The UIDs of a run's results, by name."""
        run = self._runs.get(key)
        return {} if run is None else {name: uid for name, (uid, _) in sorted(run.results.items())}


def _ended(status: BenchmarkStatus) -> int:
    if status.run is None:
        return 0
    return status.run.number if status.run.completion_time is not None else status.run.number - 1


def size_of(raw: Mapping[str, Any]) -> int:
    """What a result and its trace take as JSON; `status.storedBytes` says it of all that was measured."""
    envelope = sum(len(json.dumps(raw.get(part, {}), separators=(",", ":"))) for part in ("metadata", "spec"))
    stored: int = raw.get("status", {}).get("storedBytes", 0)
    return envelope + stored


@dataclass(frozen=True)
class EvictionChange:
    """The change of one benchmark's evictions: its status has to list `evictions`, of which some are newly `announced`
    or newly `begun`. The results of all runs in `evicting` have to be deleted."""

    benchmark: BenchmarkKey
    evictions: tuple[Eviction, ...]
    announced: tuple[FinishedRun, ...]
    begun: tuple[FinishedRun, ...]
    evicting: tuple[FinishedRun, ...]


def watermark(quotas: Quotas) -> int:
    """From how many bytes on runs are announced, and down to how many they go."""
    return quotas.most_stored_bytes * WATERMARK_PERCENT // 100


def plan_evictions(storage_usage: StorageUsage, quotas: Quotas, now: datetime) -> tuple[EvictionChange, ...]:
    """What is to be done now, by benchmark. All that is remembered is in the statuses."""
    said = {
        (key, eviction.run): eviction
        for key, benchmark in storage_usage.benchmarks.items()
        for eviction in benchmark.evictions
    }
    if not said and storage_usage.total <= watermark(quotas):
        return ()
    runs = sorted(storage_usage.finished_runs(), key=lambda run: (run.needed, run.last, run.key))
    wanted = _wanted(storage_usage.total, runs, said, quotas, now)
    changes = [_change(key, runs, said, wanted) for key in sorted({key for key, _ in (*said, *wanted)})]
    return tuple(
        change
        for change in changes
        if change.evicting or change.evictions != storage_usage.benchmarks[change.benchmark].evictions
    )


def _wanted(
    total: int, runs: Sequence[FinishedRun], said: Mapping[RunKey, Eviction], quotas: Quotas, now: datetime
) -> dict[RunKey, Eviction]:
    """What is to be said, of runs in the order in which they go. What has begun is brought to its end."""
    limit, low = quotas.most_stored_bytes, watermark(quotas)
    wanted = {run.key: said[run.key] for run in runs if run.key in said}
    left = total - sum(run.size for run in runs if run.key in said and said[run.key].begun)
    if left <= low:
        return {key: eviction for key, eviction in wanted.items() if eviction.begun}
    notice, room = timedelta(seconds=quotas.eviction_notice_seconds), max(left, limit) - low
    full = left >= limit
    for run in runs:
        eviction = wanted.get(run.key)
        if eviction is not None and eviction.begun:
            continue
        if eviction is None and room > 0:
            wanted[run.key] = Eviction(run=run.key[1], notice_time=format_time(now))
        elif eviction is not None and full and left > low and now - parse_time(eviction.notice_time) >= notice:
            wanted[run.key] = eviction.model_copy(update={"begun": True})
            left -= run.size
        room -= run.size
    return wanted


def _change(
    key: BenchmarkKey, runs: Sequence[FinishedRun], said: Mapping[RunKey, Eviction], wanted: Mapping[RunKey, Eviction]
) -> EvictionChange:
    mine = [run for run in runs if run.key[0] == key and run.key in wanted]
    going = tuple(run for run in mine if wanted[run.key].begun)
    return EvictionChange(
        benchmark=key,
        evictions=tuple(sorted((wanted[run.key] for run in mine), key=lambda eviction: eviction.run)),
        announced=tuple(run for run in mine if run.key not in said),
        begun=tuple(run for run in going if not said[run.key].begun),
        evicting=going,
    )


def eviction_events(change: EvictionChange, total: int, quotas: Quotas, now: datetime) -> Iterator[Event]:
    """A warning for runs that are announced, and one for those that go."""
    if change.announced:
        words = _announcement(change.benchmark, [run.key[1] for run in change.announced], format_time(now), quotas)
        size = sum(run.size for run in change.announced)
        message = f"{_taken(total, quotas)}. {words} They take {size} bytes."
        yield Event(reasons.EVICTION_PENDING, message, warning=True)
    if change.begun:
        runs, size = _named([run.key[1] for run in change.begun]), sum(run.size for run in change.begun)
        message = f"{_taken(total, quotas)}. Results and traces of {runs} are deleted, as announced: {size} bytes."
        yield Event(reasons.EVICTED, message, warning=True)


def eviction_condition(change: EvictionChange, total: int, quotas: Quotas) -> ConditionUpdate:
    """What is pending, as long as it is."""
    pending = [eviction for eviction in change.evictions if not eviction.begun]
    if not pending:
        message = f"{_taken(total, quotas)}. No run of this benchmark is about to go."
        return ConditionUpdate(reasons.EVICTION_PENDING, False, reasons.STORAGE_FREE, message)
    first = min(eviction.notice_time for eviction in pending)
    words = _announcement(change.benchmark, [eviction.run for eviction in pending], first, quotas)
    return ConditionUpdate(
        reasons.EVICTION_PENDING, True, reasons.STORAGE_NEARLY_FULL, f"{_taken(total, quotas)}. {words}"
    )


def _taken(total: int, quotas: Quotas) -> str:
    return (
        f"The results and traces of all benchmarks take {total} bytes, and limits.storedBytes, a value of the chart, "
        f"is {quotas.stored_bytes}"
    )


def _announcement(benchmark: BenchmarkKey, runs: Sequence[int], notice_time: str, quotas: Quotas) -> str:
    """That runs go, when, and how they are kept."""
    kind, namespace, name = benchmark
    when = format_time(parse_time(notice_time) + timedelta(seconds=quotas.eviction_notice_seconds))
    export = (
        f"kubectl tierbench export {BENCHMARKS[kind].KIND.singular}/{name} --namespace {namespace} --run {runs[0]} "
        f"--format json --output {name}-run-{runs[0]}.json"
    )
    each = ", and each of the others likewise" if len(runs) > 1 else ""
    return (
        f"When that is reached, {_named(runs)} of this benchmark may be deleted from {when} on. Keep what you need: "
        f"{export}{each}."
    )


def _named(runs: Sequence[int]) -> str:
    return f"run{'s' if len(runs) > 1 else ''} {', '.join(map(str, runs))}"
