"""Results and benchmarks as watches show them, kept small."""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from tierbench.api.benchmark import BenchmarkStatus
from tierbench.api.result import BenchmarkResult, ResultPhase
from tierbench.domain import reasons
from tierbench.domain.ledger import BenchmarkKey, Ledger

Name = tuple[str, str]
"""Namespace and name."""

Kept = TypeVar("Kept")
_VERDICTS: Final = frozenset({reasons.PASSED, reasons.REGRESSED})
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Ended(Generic[Kept]):
    """An ended result. `measured` is when, in seconds since 1970; None if it failed."""

    uid: str
    run: int
    measured: float | None
    kept: Kept


@dataclass(frozen=True)
class NewestRun(Generic[Kept]):
    """A benchmark, and its newest run that has ended; `measured` is when a case was last measured up to then."""

    key: BenchmarkKey
    status: BenchmarkStatus
    measured: float | None
    results: tuple[Kept, ...]


class ResultStore(Generic[Kept]):
    """Every benchmark, and what `keep` makes of the ended results of each, once and for all."""

    def __init__(self, keep: Callable[[BenchmarkResult], Kept]) -> None:
        self._keep = keep
        self._benchmarks: dict[BenchmarkKey, BenchmarkStatus] = {}
        self._results: dict[BenchmarkKey, dict[str, _Ended[Kept]]] = {}
        self._of: dict[Name, BenchmarkKey] = {}
        self.ledger = Ledger()
        self.filled = False

    def mark_filled(self) -> None:
        """All that there was when the operator started has been seen."""
        self.filled = True

    def see_benchmark(self, raw: Mapping[str, Any], *, deleted: bool) -> bool:
        """Takes in a benchmark of any kind; whether a run of it has ended that had not."""
        self.ledger.see_benchmark(raw, deleted=deleted)
        metadata = raw["metadata"]
        key = (raw["kind"], metadata["namespace"], metadata["name"])
        before = self.newest_ended_run(key)
        if deleted:
            self._benchmarks.pop(key, None)
        else:
            status = _status(raw)
            kept = tuple(condition for condition in status.conditions if condition.type in _VERDICTS)
            self._benchmarks[key] = status.model_copy(update={"conditions": kept, "answer": ""})
        return self.newest_ended_run(key) != before

    def newest_ended_run(self, key: BenchmarkKey) -> int:
        """Its number; 0 if none has ended."""
        run = self._benchmarks.get(key, BenchmarkStatus()).run
        if run is None:
            return 0
        return run.number if run.completion_time is not None else run.number - 1

    def see(self, raw: Mapping[str, Any], *, deleted: bool) -> bool:
        """Takes in a result, and tells whether one more has ended, or is gone.

        One that is still growing, or cannot be understood, says nothing.
        """
        self.ledger.see(raw, deleted=deleted)
        name = (raw["metadata"]["namespace"], raw["metadata"]["name"])
        before, ended = self._forget(name), None if deleted else self._read(raw)
        if ended is not None:
            reference = raw["spec"]["benchmark"]
            self._of[name] = key = (reference["kind"], name[0], reference["name"])
            self._results.setdefault(key, {})[name[1]] = ended
        return (before and before.uid) != (ended and ended.uid)

    def _forget(self, name: Name) -> _Ended[Kept] | None:
        key = self._of.pop(name, None)
        if key is None:
            return None
        results = self._results[key]
        ended = results.pop(name[1])
        if not results:
            del self._results[key]
        return ended

    def known(self) -> tuple[Name, ...]:
        """Of all results that have ended."""
        return tuple(self._of)

    def known_benchmarks(self, kind: str) -> tuple[Name, ...]:
        """Of all benchmarks of a kind."""
        return tuple((namespace, name) for known, namespace, name in self._benchmarks if known == kind)

    def newest_runs(self) -> Iterator[NewestRun[Kept]]:
        """Of every benchmark, in the order of their keys."""
        for key, status in sorted(self._benchmarks.items(), key=lambda item: item[0]):
            run = self.newest_ended_run(key)
            ended = [result for _, result in sorted(self._results.get(key, {}).items(), key=lambda item: item[0])]
            measured = [result.measured for result in ended if result.run <= run and result.measured is not None]
            newest = tuple(result.kept for result in ended if result.run == run)
            yield NewestRun(key, status, max(measured, default=None), newest)

    def _read(self, raw: Mapping[str, Any]) -> _Ended[Kept] | None:
        try:
            result = BenchmarkResult.model_validate(raw)
            if result.status.phase is ResultPhase.RUNNING:
                return None
            return _Ended(result.metadata.uid, result.spec.run, _measured(result), self._keep(result))
        except (KeyError, ValueError) as error:
            name = f"{raw['metadata']['namespace']}/{raw['metadata']['name']}"
            _logger.warning("BenchmarkResult %s cannot be understood and is left out of the metrics: %s", name, error)
            return None


def _status(raw: Mapping[str, Any]) -> BenchmarkStatus:
    """What the benchmark says of itself; nothing if that cannot be understood."""
    try:
        return BenchmarkStatus.model_validate(raw.get("status", {}))
    except ValueError as error:
        name = f"{raw['metadata']['namespace']}/{raw['metadata']['name']}"
        _logger.warning("The status of %s %s cannot be understood: %s", raw["kind"], name, error)
        return BenchmarkStatus()


def _measured(result: BenchmarkResult) -> float | None:
    time = result.status.completion_time
    if result.status.phase is not ResultPhase.MEASURED or time is None:
        return None
    return datetime.fromisoformat(time).timestamp()
