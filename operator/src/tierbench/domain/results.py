"""Results and benchmarks as watches show them, kept small."""

import json
import logging
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from tierbench.api.benchmark import BenchmarkStatus
from tierbench.api.result import BenchmarkResult, ResultPhase
from tierbench.domain import reasons

BenchmarkKey = tuple[str, str, str]
"""Kind, namespace and name of a benchmark."""

Name = tuple[str, str]
"""Namespace and name."""

Kept = TypeVar("Kept")
_VERDICTS: Final = frozenset({reasons.PASSED, reasons.REGRESSED})
_logger = logging.getLogger(__name__)
_QUICK: Final = 1
_WINDOW: Final = 1 << 15
"""Bytes that deflate looks back at."""


@dataclass(frozen=True, slots=True)
class ResultMetadata:
    """What is known of every result. `controller` is UID, kind and name of whose it is; `ended` once it is sealed."""

    name: str
    uid: str
    version: int
    run: int
    stored_bytes: int
    controller: tuple[str, str, str]
    ended: bool


@dataclass(frozen=True, slots=True)
class _Ended(Generic[Kept]):
    """Of an ended result what is kept. `measured` is when, in seconds since 1970; None if it failed."""

    measured: float | None
    kept: Kept


@dataclass(frozen=True, slots=True)
class _Entry(Generic[Kept]):
    head: ResultMetadata
    compressed: bytes
    ended: _Ended[Kept] | None


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
        self._results: dict[BenchmarkKey, dict[str, _Entry[Kept]]] = {}
        self._of: dict[Name, BenchmarkKey] = {}
        self._compressor = Compressor()
        self.decompress = self._compressor.decompress
        self.filled = False

    def mark_filled(self) -> None:
        """All that there was when the operator started has been seen."""
        self.filled = True

    def update_benchmark(self, raw: Mapping[str, Any], *, deleted: bool) -> bool:
        """Takes in a benchmark of any kind; whether a run of it has ended that had not."""
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

    def update_result(self, raw: Mapping[str, Any], *, deleted: bool) -> bool:
        """Takes in a result, and tells whether one more has ended, or is gone.

        One that is still growing says nothing yet; one that cannot be understood is not even known.
        """
        name = (raw["metadata"].get("namespace", ""), raw["metadata"]["name"])
        known = self._head(name)
        if known is not None and not deleted and _is_of(known, raw):
            return False
        self._forget(name)
        entry = None if deleted else self._read(raw)
        if entry is not None:
            self._of[name] = key = _benchmark_of(raw)
            self._results.setdefault(key, {})[name[1]] = entry
        return _ended_uid(known) != _ended_uid(None if entry is None else entry.head)

    def _compress(self, raw: Mapping[str, Any]) -> bytes:
        return self._compressor.compress(_slim(raw))

    def _head(self, name: Name) -> ResultMetadata | None:
        key = self._of.get(name)
        return None if key is None else self._results[key][name[1]].head

    def _forget(self, name: Name) -> None:
        key = self._of.pop(name, None)
        if key is None:
            return
        results = self._results[key]
        del results[name[1]]
        if not results:
            del self._results[key]

    def known(self) -> tuple[Name, ...]:
        """Of all results."""
        return tuple(self._of)

    def metadata_of(self, key: BenchmarkKey) -> tuple[ResultMetadata, ...]:
        """Of all results that say they are of the benchmark, in the order of names."""
        return tuple(entry.head for _, entry in sorted(self._results.get(key, {}).items(), key=lambda item: item[0]))

    def compressed(self, namespace: str, benchmarks: Sequence[str] = ()) -> list[bytes]:
        """The results of a namespace, of the benchmarks of these names if there are any, in the order of names: each
        for `decompress`. A run under way is left out where an older one can speak for its benchmark."""
        return [
            entry.compressed
            for key in sorted(self._results)
            if key[1] == namespace and (not benchmarks or key[2] in benchmarks)
            for _, entry in sorted(self._results[key].items(), key=lambda item: item[0])
            if not 0 < self.newest_ended_run(key) < entry.head.run
        ]

    def known_benchmarks(self, kind: str) -> tuple[Name, ...]:
        """Of all benchmarks of a kind."""
        return tuple((namespace, name) for known, namespace, name in self._benchmarks if known == kind)

    def newest_runs(self) -> Iterator[NewestRun[Kept]]:
        """Of every benchmark, in the order of their keys."""
        for key, status in sorted(self._benchmarks.items(), key=lambda item: item[0]):
            run = self.newest_ended_run(key)
            entries = [entry for _, entry in sorted(self._results.get(key, {}).items(), key=lambda item: item[0])]
            ended = [(entry.head.run, entry.ended) for entry in entries if entry.ended is not None]
            measured = [one.measured for number, one in ended if number <= run and one.measured is not None]
            newest = tuple(one.kept for number, one in ended if number == run)
            yield NewestRun(key, status, max(measured, default=None), newest)

    def _read(self, raw: Mapping[str, Any]) -> _Entry[Kept] | None:
        head = None
        try:
            _benchmark_of(raw)
            head = _head(raw)
            if not head.ended:
                return _Entry(head, self._compress(raw), None)
            result = BenchmarkResult.model_validate(raw)
            return _Entry(head, self._compress(raw), _Ended(_measured(result), self._keep(result)))
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            name = f"{raw['metadata'].get('namespace')}/{raw['metadata']['name']}"
            _logger.warning("BenchmarkResult %s cannot be understood and is left out of the metrics: %s", name, error)
            return None if head is None else _Entry(head, self._compress(raw), None)


def _slim(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**raw, "metadata": {name: part for name, part in raw["metadata"].items() if name != "managedFields"}}


def _benchmark_of(raw: Mapping[str, Any]) -> BenchmarkKey:
    reference = raw["spec"]["benchmark"]
    return reference["kind"], raw["metadata"]["namespace"], reference["name"]


def _head(raw: Mapping[str, Any]) -> ResultMetadata:
    metadata, status = raw["metadata"], raw.get("status", {})
    controller: Mapping[str, Any] = next(
        (item for item in metadata.get("ownerReferences", ()) if item.get("controller")), {}
    )
    phase = status.get("phase", ResultPhase.RUNNING)
    return ResultMetadata(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        version=_version(raw),
        run=int(raw["spec"]["run"]),
        stored_bytes=int(status.get("storedBytes", 0)),
        controller=(controller.get("uid", ""), controller.get("kind", ""), controller.get("name", "")),
        ended=phase != ResultPhase.RUNNING,
    )


def _ended_uid(head: ResultMetadata | None) -> str | None:
    return head.uid if head is not None and head.ended else None


def _version(raw: Mapping[str, Any]) -> int:
    return int(raw["metadata"].get("resourceVersion", 0))


def _is_of(head: ResultMetadata, raw: Mapping[str, Any]) -> bool:
    """Whether that is all known of it already."""
    return (head.uid, head.version) == (raw["metadata"].get("uid", ""), _version(raw)) and head.version > 0


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


class Compressor:
    """Deflates objects by what they share with the first: similar results take a tenth of what each takes alone."""

    def __init__(self) -> None:
        self._pattern = b""

    def compress(self, raw: Mapping[str, Any]) -> bytes:
        """A JSON object, compressed."""
        text = json.dumps(raw, separators=(",", ":")).encode()
        if not self._pattern:
            self._pattern = text[-_WINDOW:]
        deflating = zlib.compressobj(_QUICK, zdict=self._pattern)
        return deflating.compress(text) + deflating.flush()

    def decompress(self, compressed: bytes) -> dict[str, Any]:
        """The object, as this compressor was given it."""
        raw: dict[str, Any] = json.loads(zlib.decompressobj(zdict=self._pattern).decompress(compressed))
        return raw
