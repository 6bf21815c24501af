"""The store of all results and benchmarks, which metrics and advices read: it keeps them compressed."""

import json
import logging
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from tierbench.api.benchmark import BenchmarkStatus
from tierbench.api.result import BenchmarkResult, ResultPhase
from tierbench.domain import reasons
from tierbench.kube.meta import Name, Raw

BenchmarkKey = tuple[str, str, str]
"""Kind, namespace and name of a benchmark."""

Kept = TypeVar("Kept")
_VERDICTS: Final = frozenset({reasons.PASSED, reasons.REGRESSED})
_logger = logging.getLogger(__name__)
_COMPRESSION_LEVEL: Final = 1
_WINDOW: Final = 1 << 15
"""The window size of deflate in bytes."""


@dataclass(frozen=True, slots=True)
class ResultMetadata:
    """The metadata of a result. `stored_bytes` is the size of the result and its record. `controller` is the UID, kind
    and name of its controller. `ended` says that the result does not change any more."""

    name: str
    uid: str
    version: int
    run: int
    stored_bytes: int
    controller: tuple[str, str, str]
    ended: bool


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run of a benchmark with stored results. `size` is the size of its results and records in bytes."""

    kind: str
    benchmark: str
    number: int
    size: int


@dataclass(frozen=True, slots=True)
class _Ended(Generic[Kept]):
    """The converted form of an ended result. `measured` is the time in seconds since 1970, or None if it failed."""

    measured: float | None
    kept: Kept


@dataclass(frozen=True, slots=True)
class _Entry(Generic[Kept]):
    metadata: ResultMetadata
    compressed: bytes
    ended: _Ended[Kept] | None


@dataclass(frozen=True)
class NewestRun(Generic[Kept]):
    """The newest run of a benchmark that has ended. `measured` is the time of the last measured case up to that run."""

    key: BenchmarkKey
    status: BenchmarkStatus
    measured: float | None
    results: tuple[Kept, ...]


class ResultStore(Generic[Kept]):
    """All benchmarks and results. `keep` converts each result once, when it has ended."""

    def __init__(self, keep: Callable[[BenchmarkResult], Kept]) -> None:
        self._keep = keep
        self._benchmarks: dict[BenchmarkKey, BenchmarkStatus] = {}
        self._baselines: dict[BenchmarkKey, int | None] = {}
        self._results: dict[BenchmarkKey, dict[str, _Entry[Kept]]] = {}
        self._key_of: dict[Name, BenchmarkKey] = {}
        self._compressor = Compressor()
        self.decompress = self._compressor.decompress
        self.has_results = False
        """Whether all results have been listed. A standby lists no benchmarks."""
        self.filled = False
        self.stored_bytes = 0
        """The size of all results and records."""

    def mark_filled(self) -> None:
        """Marks the initial lists of results and benchmarks as complete."""
        self.has_results = self.filled = True

    def update_benchmark(self, raw: Raw, *, deleted: bool) -> bool:
        """Handles a watch event of a benchmark. Returns whether its newest ended run has changed."""
        metadata = raw["metadata"]
        key = (raw["kind"], metadata["namespace"], metadata["name"])
        before = self.newest_ended_run(key)
        if deleted:
            self._benchmarks.pop(key, None)
            self._baselines.pop(key, None)
        else:
            self._baselines[key] = raw.get("spec", {}).get("runPolicy", {}).get("baselineRun")
            status = _status(raw)
            kept = tuple(condition for condition in status.conditions if condition.type in _VERDICTS)
            self._benchmarks[key] = status.model_copy(update={"conditions": kept, "answer": ""})
        return self.newest_ended_run(key) != before

    def newest_ended_run(self, key: BenchmarkKey) -> int:
        """Returns the number of the newest run that has ended, or 0."""
        run = self._benchmarks.get(key, BenchmarkStatus()).run
        if run is None:
            return 0
        return run.number if run.completion_time is not None else run.number - 1

    def update_result(self, raw: Raw, *, deleted: bool) -> bool:
        """Handles a watch event of a result. Returns whether a result has ended, or an ended result is gone."""
        name = (raw["metadata"].get("namespace", ""), raw["metadata"]["name"])
        known = self._metadata(name)
        if known is not None and not deleted and _is_current(known, raw):
            return False
        self._forget(name)
        entry = None if deleted else self._read(raw)
        if entry is not None:
            self._key_of[name] = key = _benchmark_of(raw)
            self._results.setdefault(key, {})[name[1]] = entry
            self.stored_bytes += entry.metadata.stored_bytes
        return _ended_uid(known) != _ended_uid(None if entry is None else entry.metadata)

    def _compress(self, raw: Raw) -> bytes:
        metadata = {name: part for name, part in raw["metadata"].items() if name != "managedFields"}
        return self._compressor.compress({**raw, "metadata": metadata})

    def _metadata(self, name: Name) -> ResultMetadata | None:
        key = self._key_of.get(name)
        return None if key is None else self._results[key][name[1]].metadata

    def _forget(self, name: Name) -> None:
        key = self._key_of.pop(name, None)
        if key is None:
            return
        results = self._results[key]
        self.stored_bytes -= results.pop(name[1]).metadata.stored_bytes
        if not results:
            del self._results[key]

    def known(self) -> tuple[Name, ...]:
        """Returns the names of all results."""
        return tuple(self._key_of)

    def metadata_of(self, key: BenchmarkKey) -> tuple[ResultMetadata, ...]:
        """Returns the metadata of all results that refer to the benchmark, in the order of names."""
        return tuple(
            entry.metadata for _, entry in sorted(self._results.get(key, {}).items(), key=lambda item: item[0])
        )

    def deletable_runs(self, namespace: str) -> tuple[StoredRun, ...]:
        """Returns the runs of a namespace that no answer depends on, the largest first. They are neither the newest
        run of their benchmark that has ended, nor its baseline, nor in progress."""
        sizes: Counter[tuple[BenchmarkKey, int]] = Counter()
        for key, results in self._results.items():
            if key[1] == namespace:
                for entry in results.values():
                    if self._is_deletable(key, entry.metadata.run):
                        sizes[key, entry.metadata.run] += entry.metadata.stored_bytes
        return tuple(StoredRun(key[0], key[2], number, size) for (key, number), size in sizes.most_common())

    def _is_deletable(self, key: BenchmarkKey, run: int) -> bool:
        """Results without a benchmark are deletable."""
        return key not in self._benchmarks or (run < self.newest_ended_run(key) and run != self._baselines[key])

    def compressed(self, namespace: str, benchmarks: Sequence[str] = ()) -> list[bytes]:
        """Returns the results of a namespace in the order of names, each for `decompress`; with `benchmarks`, only
        those of benchmarks with these names. The run in progress is omitted if its benchmark has an ended run."""
        return [
            entry.compressed
            for key in sorted(self._results)
            if key[1] == namespace and (not benchmarks or key[2] in benchmarks)
            for _, entry in sorted(self._results[key].items(), key=lambda item: item[0])
            if not 0 < self.newest_ended_run(key) < entry.metadata.run
        ]

    def known_benchmarks(self, kind: str) -> tuple[Name, ...]:
        """Returns the names of all benchmarks of a kind."""
        return tuple((namespace, name) for known, namespace, name in self._benchmarks if known == kind)

    def newest_runs(self) -> Iterator[NewestRun[Kept]]:
        """Yields the newest ended run of every benchmark, in the order of their keys."""
        for key, status in sorted(self._benchmarks.items(), key=lambda item: item[0]):
            run = self.newest_ended_run(key)
            entries = [entry for _, entry in sorted(self._results.get(key, {}).items(), key=lambda item: item[0])]
            ended = [(entry.metadata.run, entry.ended) for entry in entries if entry.ended is not None]
            measured = [one.measured for number, one in ended if number <= run and one.measured is not None]
            newest = tuple(one.kept for number, one in ended if number == run)
            yield NewestRun(key, status, max(measured, default=None), newest)

    def _read(self, raw: Raw) -> _Entry[Kept] | None:
        metadata = None
        try:
            _benchmark_of(raw)
            metadata = _metadata(raw)
            if not metadata.ended:
                return _Entry(metadata, self._compress(raw), None)
            result = BenchmarkResult.model_validate(raw)
            return _Entry(metadata, self._compress(raw), _Ended(_measured(result), self._keep(result)))
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            name = f"{raw['metadata'].get('namespace')}/{raw['metadata']['name']}"
            extra = {"kind": BenchmarkResult.KIND.kind, "object": name, "error": str(error)}
            _logger.warning("ignoring invalid object", extra=extra)
            return None if metadata is None else _Entry(metadata, self._compress(raw), None)


def _benchmark_of(raw: Raw) -> BenchmarkKey:
    reference = raw["spec"]["benchmark"]
    return reference["kind"], raw["metadata"]["namespace"], reference["name"]


def _metadata(raw: Raw) -> ResultMetadata:
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
        stored_bytes=stored_bytes(raw),
        controller=(controller.get("uid", ""), controller.get("kind", ""), controller.get("name", "")),
        ended=phase != ResultPhase.RUNNING,
    )


def stored_bytes(raw: Raw) -> int:
    """Returns the size of a result and its record as JSON. A result without a status has no record."""
    return int(raw.get("status", {}).get("storedBytes", 0)) or len(json.dumps(raw))


def _version(raw: Raw) -> int:
    return int(raw["metadata"].get("resourceVersion", 0))


def _ended_uid(known: ResultMetadata | None) -> str | None:
    return known.uid if known is not None and known.ended else None


def _is_current(known: ResultMetadata, raw: Raw) -> bool:
    """Whether the metadata is that of this object in this version."""
    return (known.uid, known.version) == (raw["metadata"].get("uid", ""), _version(raw)) and known.version > 0


def _status(raw: Raw) -> BenchmarkStatus:
    """Returns the status of a benchmark, or an empty one if it is invalid."""
    try:
        return BenchmarkStatus.model_validate(raw.get("status", {}))
    except ValueError as error:
        name = f"{raw['metadata']['namespace']}/{raw['metadata']['name']}"
        extra = {"kind": raw["kind"], "benchmark": name, "error": str(error)}
        _logger.warning("ignoring the invalid status of a benchmark", extra=extra)
        return BenchmarkStatus()


def _measured(result: BenchmarkResult) -> float | None:
    time = result.status.completion_time
    if result.status.phase is not ResultPhase.MEASURED or time is None:
        return None
    return datetime.fromisoformat(time).timestamp()


class Compressor:
    """Compresses JSON objects with the first one as a dictionary. Similar results take a tenth of their size alone."""

    def __init__(self) -> None:
        self._dictionary = b""

    def compress(self, raw: Raw) -> bytes:
        """Returns a JSON object in compressed form."""
        text = json.dumps(raw, separators=(",", ":")).encode()
        if not self._dictionary:
            self._dictionary = text[-_WINDOW:]
        deflate = zlib.compressobj(_COMPRESSION_LEVEL, zdict=self._dictionary)
        return deflate.compress(text) + deflate.flush()

    def decompress(self, compressed: bytes) -> dict[str, Any]:
        """Returns the object that this compressor has compressed."""
        raw: dict[str, Any] = json.loads(zlib.decompressobj(zdict=self._dictionary).decompress(compressed))
        return raw
