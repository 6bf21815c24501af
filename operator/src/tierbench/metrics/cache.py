"""Results and benchmarks as watches show them, kept as small as the metrics need."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tierbench.api.benchmark import BenchmarkStatus
from tierbench.api.result import BenchmarkResult, ResultPhase

BenchmarkKey = tuple[str, str, str]
"""Kind, namespace and name of a benchmark."""


@dataclass(frozen=True)
class CachedBenchmark:
    """What metrics say of a benchmark itself."""

    kind: str
    namespace: str
    name: str
    status: BenchmarkStatus

    @property
    def complete_run(self) -> int:
        """The newest run that has ended; 0 if none has."""
        run = self.status.run
        if run is None:
            return 0
        return run.number if run.completion_time is not None else run.number - 1


class ResultCache:
    """Every benchmark, and the ended results of each, without their trials' details beyond what is counted."""

    def __init__(self) -> None:
        self._benchmarks: dict[BenchmarkKey, CachedBenchmark] = {}
        self._results: dict[BenchmarkKey, dict[str, BenchmarkResult]] = {}
        self.filled = False

    def mark_filled(self) -> None:
        """All that there was when the operator started has been seen."""
        self.filled = True

    def see_benchmark(self, raw: Mapping[str, Any], *, deleted: bool) -> None:
        """Takes in a benchmark of any kind."""
        metadata = raw["metadata"]
        key = (raw["kind"], metadata["namespace"], metadata["name"])
        if deleted:
            self._benchmarks.pop(key, None)
            return
        status = BenchmarkStatus.model_validate(raw.get("status", {}))
        self._benchmarks[key] = CachedBenchmark(*key, status.model_copy(update={"conditions": (), "answer": ""}))

    def see(self, raw: Mapping[str, Any], *, deleted: bool) -> None:
        """Takes in a result; one that is still growing says nothing yet."""
        result = BenchmarkResult.model_validate(raw)
        namespace, reference = result.metadata.namespace or "", result.spec.benchmark
        key = (reference.kind, namespace, reference.name)
        results = self._results.setdefault(key, {})
        if deleted or result.status.phase is ResultPhase.RUNNING:
            results.pop(result.metadata.name, None)
        else:
            results[result.metadata.name] = result
        if not results:
            del self._results[key]

    @property
    def benchmarks(self) -> list[CachedBenchmark]:
        """All benchmarks."""
        return list(self._benchmarks.values())

    def newest(self) -> Iterator[tuple[CachedBenchmark, list[BenchmarkResult]]]:
        """Each benchmark that has ended a run, with the results of its newest one."""
        for key, benchmark in list(self._benchmarks.items()):
            run = benchmark.complete_run
            results = [result for result in self._results.get(key, {}).values() if result.spec.run == run]
            if run and results:
                yield benchmark, results
