"""Which runs are evicted when stored results reach their limit: the oldest ones, each announced in advance."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from pydantic import ValidationError

from tierbench.api.benchmark import BenchmarkStatus, Eviction
from tierbench.api.policy import Quotas
from tierbench.domain import reasons
from tierbench.domain.actions import Event
from tierbench.domain.results import BenchmarkKey
from tierbench.domain.status import ConditionUpdate
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.clock import format_time, parse_time
from tierbench.kube.resources import Raw

RunKey = tuple[BenchmarkKey, int]
"""A benchmark, and the number of a run."""

WATERMARK_PERCENT: Final = 80
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class KnownBenchmark:
    """A benchmark, as far as evictions depend on it. `ended` is the newest run that has ended, or 0."""

    version: int
    ended: int
    baseline: int | None
    evictions: tuple[Eviction, ...]


@dataclass(frozen=True)
class FinishedRun:
    """A run that has ended. `size` is the size of its results and traces in bytes, `last` the creation time of its
    newest result. `needed` says that it is the newest run or the baseline, which answers refer to."""

    key: RunKey
    needed: bool
    size: int
    last: str


@dataclass(slots=True)
class _StoredRun:
    """The stored results of a run: UID and size of each, by name."""

    key: RunKey
    size: int = 0
    last: str = ""
    results: dict[str, tuple[str, int]] = field(default_factory=dict)


class StorageUsage:
    """The sizes of all results with their traces in etcd, and all benchmarks, as watch events report them."""

    def __init__(self) -> None:
        self._runs: dict[RunKey, _StoredRun] = {}
        self._run_of: dict[tuple[str, str], _StoredRun] = {}
        self._total = 0
        self.benchmarks: dict[BenchmarkKey, KnownBenchmark] = {}

    @property
    def total(self) -> int:
        """The size of all results and traces in bytes."""
        return self._total

    def update_result(self, raw: Raw, *, deleted: bool) -> None:
        """Handles a watch event of a result."""
        metadata = raw["metadata"]
        name = (metadata.get("namespace", ""), metadata["name"])
        self._forget(name)
        if deleted:
            return
        reference, size = raw["spec"]["benchmark"], size_of(raw)
        key = ((reference["kind"], name[0], reference["name"]), raw["spec"]["run"])
        self._run_of[name] = run = self._runs.setdefault(key, _StoredRun(key))
        run.results[name[1]] = (metadata.get("uid", ""), size)
        run.last = max(run.last, metadata.get("creationTimestamp") or "")
        run.size += size
        self._total += size

    def _forget(self, name: tuple[str, str]) -> None:
        run = self._run_of.pop(name, None)
        if run is None:
            return
        _, size = run.results.pop(name[1])
        run.size -= size
        self._total -= size
        if not run.results:
            del self._runs[run.key]

    def update_benchmark(self, raw: Raw, *, deleted: bool) -> None:
        """Handles a watch event of a benchmark. The runs of a benchmark with an invalid status are never evicted."""
        metadata = raw["metadata"]
        key = (raw["kind"], metadata["namespace"], metadata["name"])
        version, known = int(metadata.get("resourceVersion") or 0), self.benchmarks.get(key)
        if known is not None and not deleted and version < known.version:
            return  # the event is older than a write of this operator
        self.benchmarks.pop(key, None)
        if deleted:
            return
        try:
            status = BenchmarkStatus.model_validate(raw.get("status", {}))
        except ValidationError as error:
            extra = {"kind": key[0], "benchmark": f"{key[1]}/{key[2]}", "error": str(error)}
            _logger.debug("cannot evict runs of a benchmark with an invalid status", extra=extra)
            return
        baseline = raw.get("spec", {}).get("runPolicy", {}).get("baselineRun")
        self.benchmarks[key] = KnownBenchmark(version, _newest_ended_run(status), baseline, status.evictions)

    def finished_runs(self) -> Iterator[FinishedRun]:
        """Yields all runs that have ended."""
        for (key, number), run in self._runs.items():
            benchmark = self.benchmarks.get(key)
            if benchmark is not None and number <= benchmark.ended:
                yield FinishedRun(run.key, number in {benchmark.ended, benchmark.baseline}, run.size, run.last)

    def results_of(self, key: RunKey) -> dict[str, str]:
        """Returns the UIDs of the results of a run, by name."""
        run = self._runs.get(key)
        return {} if run is None else {name: uid for name, (uid, _) in sorted(run.results.items())}


def _newest_ended_run(status: BenchmarkStatus) -> int:
    if status.run is None:
        return 0
    return status.run.number if status.run.completion_time is not None else status.run.number - 1


def size_of(raw: Raw) -> int:
    """Returns the size of a result and its trace as JSON, in bytes. `status.storedBytes` is the size of both
    statuses."""
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
    """Returns the size in bytes above which runs are announced, and down to which they are evicted."""
    return quotas.most_stored_bytes * WATERMARK_PERCENT // 100


def plan_evictions(usage: StorageUsage, quotas: Quotas, now: datetime) -> tuple[EvictionChange, ...]:
    """Returns what to do now, by benchmark. The statuses of the benchmarks contain all state."""
    current = {
        (key, eviction.run): eviction for key, benchmark in usage.benchmarks.items() for eviction in benchmark.evictions
    }
    if not current and usage.total <= watermark(quotas):
        return ()
    runs = sorted(usage.finished_runs(), key=lambda run: (run.needed, run.last, run.key))
    desired = _desired(usage.total, runs, current, quotas, now)
    changes = [_change(key, runs, current, desired) for key in sorted({key for key, _ in (*current, *desired)})]
    return tuple(
        change
        for change in changes
        if change.evicting or change.evictions != usage.benchmarks[change.benchmark].evictions
    )


def _desired(
    total: int, runs: Sequence[FinishedRun], current: Mapping[RunKey, Eviction], quotas: Quotas, now: datetime
) -> dict[RunKey, Eviction]:
    """Returns the desired evictions, for runs in the order of eviction. An eviction that has begun is completed."""
    limit, low = quotas.most_stored_bytes, watermark(quotas)
    desired = {run.key: current[run.key] for run in runs if run.key in current}
    left = total - sum(run.size for run in runs if run.key in current and current[run.key].begun)
    if left <= low:
        return {key: eviction for key, eviction in desired.items() if eviction.begun}
    notice, excess = timedelta(seconds=quotas.eviction_notice_seconds), max(left, limit) - low
    full = left >= limit
    for run in runs:
        eviction = desired.get(run.key)
        if eviction is not None and eviction.begun:
            continue
        if eviction is None and excess > 0:
            desired[run.key] = Eviction(run=run.key[1], notice_time=format_time(now))
        elif eviction is not None and full and left > low and now - parse_time(eviction.notice_time) >= notice:
            desired[run.key] = eviction.model_copy(update={"begun": True})
            left -= run.size
        excess -= run.size
    return desired


def _change(
    key: BenchmarkKey,
    runs: Sequence[FinishedRun],
    current: Mapping[RunKey, Eviction],
    desired: Mapping[RunKey, Eviction],
) -> EvictionChange:
    of_benchmark = [run for run in runs if run.key[0] == key and run.key in desired]
    evicting = tuple(run for run in of_benchmark if desired[run.key].begun)
    return EvictionChange(
        benchmark=key,
        evictions=tuple(sorted((desired[run.key] for run in of_benchmark), key=lambda eviction: eviction.run)),
        announced=tuple(run for run in of_benchmark if run.key not in current),
        begun=tuple(run for run in evicting if not current[run.key].begun),
        evicting=evicting,
    )


def eviction_events(change: EvictionChange, total: int, quotas: Quotas, now: datetime) -> Iterator[Event]:
    """Yields a warning for runs that are announced, and one for runs that are evicted."""
    if change.announced:
        text = _announcement(change.benchmark, [run.key[1] for run in change.announced], format_time(now), quotas)
        size = sum(run.size for run in change.announced)
        message = f"{_usage(total, quotas)} {text} This frees {size} bytes."
        yield Event(reasons.EVICTION_PENDING, message, warning=True)
    if change.begun:
        runs, size = _runs([run.key[1] for run in change.begun]), sum(run.size for run in change.begun)
        message = f"{_usage(total, quotas)} The results and traces of {runs} are deleted, as announced: {size} bytes."
        yield Event(reasons.EVICTED, message, warning=True)


def eviction_condition(change: EvictionChange, total: int, quotas: Quotas) -> ConditionUpdate:
    """Returns the condition EvictionPending: True while announced runs wait for their eviction."""
    pending = [eviction for eviction in change.evictions if not eviction.begun]
    if not pending:
        message = f"{_usage(total, quotas)} No eviction of a run of this benchmark is pending."
        return ConditionUpdate(reasons.EVICTION_PENDING, False, reasons.STORAGE_FREE, message)
    first = min(eviction.notice_time for eviction in pending)
    text = _announcement(change.benchmark, [eviction.run for eviction in pending], first, quotas)
    message = f"{_usage(total, quotas)} {text}"
    return ConditionUpdate(reasons.EVICTION_PENDING, True, reasons.STORAGE_NEARLY_FULL, message)


def _usage(total: int, quotas: Quotas) -> str:
    return (
        f"The results and traces of all benchmarks take {total} bytes; limits.storedBytes in the chart is "
        f"{quotas.stored_bytes}."
    )


def _announcement(benchmark: BenchmarkKey, runs: Sequence[int], notice_time: str, quotas: Quotas) -> str:
    kind, namespace, name = benchmark
    when = format_time(parse_time(notice_time) + timedelta(seconds=quotas.eviction_notice_seconds))
    export = (
        f"kubectl tierbench export {BENCHMARKS[kind].KIND.singular}/{name} --namespace {namespace} --run {runs[0]} "
        f"--format json --output {name}-run-{runs[0]}.json"
    )
    others = " Do the same for the other runs." if len(runs) > 1 else ""
    return (
        f"At the limit, {_runs(runs)} of this benchmark may be deleted from {when} on. To keep the results, run "
        f"`{export}`.{others}"
    )


def _runs(numbers: Sequence[int]) -> str:
    return f"run{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
