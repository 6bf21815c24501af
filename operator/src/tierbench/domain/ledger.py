"""What results and traces take in etcd, as watches show them, kept small."""

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from tierbench.api.benchmark import BenchmarkStatus, Eviction
from tierbench.domain.results import BenchmarkKey

RunKey = tuple[BenchmarkKey, int]
"""A benchmark, and the number of a run."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class KnownBenchmark:
    """What tells which runs of a benchmark may go. `ended` is the newest that has ended, 0 if none has."""

    version: int
    ended: int
    baseline: int | None
    evictions: tuple[Eviction, ...]


@dataclass(frozen=True)
class SealedRun:
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


class Ledger:
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

    def see(self, raw: Mapping[str, Any], *, deleted: bool) -> None:
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

    def see_benchmark(self, raw: Mapping[str, Any], *, deleted: bool) -> None:
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

    def sealed_runs(self) -> Iterator[SealedRun]:
        """All runs that their benchmarks have ended."""
        for (key, number), run in self._runs.items():
            benchmark = self.benchmarks.get(key)
            if benchmark is not None and number <= benchmark.ended:
                yield SealedRun(run.key, number in {benchmark.ended, benchmark.baseline}, run.size, run.last)

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
