"""The store of all results and benchmarks. It keeps of each result what metrics, advices and reconciles read."""

import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, Protocol

from pydantic_core import to_json

from tierbench.api.benchmark import BenchmarkStatus
from tierbench.api.canonical import fingerprint
from tierbench.api.record import BenchmarkReference
from tierbench.api.result import LABEL_SUPERSEDED, BenchmarkResult, ResultPhase
from tierbench.domain import reasons
from tierbench.kube.meta import Name, Raw

BenchmarkKey = tuple[str, str, str]
"""Kind, namespace and name of a benchmark."""

_VERDICTS: Final = frozenset({reasons.PASSED, reasons.REGRESSED})
_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "labels")
_UNREAD_SPEC: Final = ("alternation",)
_UNREAD_NODE: Final = ("osImage", "kubelet", "runtime")
_UNREAD_STATUS: Final = ("display", "storedBytes")
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ResultMetadata:
    """The metadata of a result. `stored_bytes` is the size of the result and its record. `controller` is the UID, kind
    and name of its controller. `ended` says that the result does not change any more, `superseded` that its run was
    superseded."""

    name: str
    uid: str
    version: int
    run: int
    stored_bytes: int
    controller: tuple[str, str, str]
    ended: bool
    superseded: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class StoredResult:
    """What is kept of a result: the JSON of what is read of it, not validated.

    `measured` is the time in seconds since 1970, or None if it was not measured.
    """

    metadata: ResultMetadata
    text: bytes
    measured: float | None = None

    def parse(self) -> BenchmarkResult:
        """Returns the result with the fields that are read. Raises ValidationError."""
        return BenchmarkResult.model_validate_json(self.text)


class Observer(Protocol):
    """Learns of a change of the store. `ended` says that a result has ended, or that an ended result is gone."""

    def __call__(self, raw: Raw, *, deleted: bool, ended: bool) -> None:
        """A result has changed. A deleted one may have nothing but namespace and name."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run of a benchmark with stored results. `size` is the size of its results and records in bytes."""

    kind: str
    benchmark: str
    number: int
    size: int


@dataclass(frozen=True)
class NewestRun:
    """The newest run of a benchmark that has ended. `measured` is the time of the last measured case up to that run."""

    key: BenchmarkKey
    status: BenchmarkStatus
    measured: float | None
    results: tuple[StoredResult, ...]


class ResultStore:
    """All benchmarks and results."""

    def __init__(self) -> None:
        self._benchmarks: dict[BenchmarkKey, BenchmarkStatus] = {}
        self._baselines: dict[BenchmarkKey, int | None] = {}
        self._results: dict[BenchmarkKey, dict[str, StoredResult]] = {}
        self._key_of: dict[Name, BenchmarkKey] = {}
        self.observers: list[Observer] = []
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
        """Returns the number of the newest run that has ended and was not superseded, or 0."""
        run = self._benchmarks.get(key, BenchmarkStatus()).run
        return 0 if run is None else run.newest_ended

    def update_result(self, raw: Raw, *, deleted: bool) -> bool:
        """Handles a watch event of a result, or the answer to an own write. A known or older version changes nothing.
        Returns whether a result has ended, or an ended result is gone."""
        name = (raw["metadata"].get("namespace", ""), raw["metadata"]["name"])
        known = self._get(name)
        if known is not None and _is_late(known.metadata, raw, deleted=deleted):
            return False
        self._forget(name)
        stored = None if deleted else _read(raw)
        if stored is not None:
            self._key_of[name] = key = _benchmark_of(raw)
            self._results.setdefault(key, {})[name[1]] = stored
            self.stored_bytes += stored.metadata.stored_bytes
        ended = _ended_uid(known) != _ended_uid(stored)
        for observer in self.observers:
            observer(raw, deleted=deleted, ended=ended)
        return ended

    def _get(self, name: Name) -> StoredResult | None:
        key = self._key_of.get(name)
        return None if key is None else self._results[key][name[1]]

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

    def of(self, key: BenchmarkKey) -> tuple[StoredResult, ...]:
        """Returns all results that refer to the benchmark, in the order of names."""
        results = self._results.get(key, {})
        return tuple(results[name] for name in sorted(results))

    def deletable_runs(self, namespace: str) -> tuple[StoredRun, ...]:
        """Returns the runs of a namespace that no answer depends on, the largest first. They are neither the newest
        run of their benchmark that has ended, nor its baseline, nor in progress."""
        sizes: Counter[tuple[BenchmarkKey, int]] = Counter()
        for key, results in self._results.items():
            if key[1] == namespace:
                for stored in results.values():
                    if stored.metadata.superseded or self._is_deletable(key, stored.metadata.run):
                        sizes[key, stored.metadata.run] += stored.metadata.stored_bytes
        return tuple(StoredRun(key[0], key[2], number, size) for (key, number), size in sizes.most_common())

    def _is_deletable(self, key: BenchmarkKey, run: int) -> bool:
        """Results without a benchmark are deletable."""
        return key not in self._benchmarks or (run < self.newest_ended_run(key) and run != self._baselines[key])

    def texts(self, namespace: str, benchmarks: Sequence[str] = ()) -> list[bytes]:
        """Returns the JSON of the results of a namespace; with `benchmarks`, only those of benchmarks with these names.
        The run in progress is omitted if its benchmark has an ended run."""
        return [
            stored.text
            for key in sorted(self._results)
            if key[1] == namespace and (not benchmarks or key[2] in benchmarks)
            for stored in self.of(key)
            if not 0 < self.newest_ended_run(key) < stored.metadata.run
        ]

    def known_benchmarks(self, kind: str) -> tuple[Name, ...]:
        """Returns the names of all benchmarks of a kind."""
        return tuple((namespace, name) for known, namespace, name in self._benchmarks if known == kind)

    def newest_runs(self) -> Iterator[NewestRun]:
        """Yields the newest ended run of every benchmark, in the order of their keys."""
        for key, status in sorted(self._benchmarks.items(), key=lambda item: item[0]):
            run = self.newest_ended_run(key)
            ended = [stored for stored in self.of(key) if stored.metadata.run <= run and stored.metadata.ended]
            measured = [stored.measured for stored in ended if stored.measured is not None]
            newest = tuple(stored for stored in ended if stored.metadata.run == run)
            yield NewestRun(key, status, max(measured, default=None), newest)


def _read(raw: Raw) -> StoredResult | None:
    """Returns None if the object has no benchmark or no run."""
    metadata = None
    try:
        _benchmark_of(raw)
        metadata = _metadata(raw)
        BenchmarkReference.model_validate(raw["spec"]["benchmark"])
        return StoredResult(metadata, to_json(_read_fields(raw)), _measured(raw))
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        log_invalid(raw, error)
        return None if metadata is None else StoredResult(metadata, to_json(raw))


def log_invalid(raw: Raw, error: Exception) -> None:
    """Logs that a result is ignored, and why."""
    name = f"{raw['metadata'].get('namespace')}/{raw['metadata']['name']}"
    extra = {"kind": BenchmarkResult.KIND.kind, "object": name, "error": str(error)}
    _logger.warning("ignoring invalid object", extra=extra)


def _read_fields(raw: Raw) -> Raw:
    """Returns what advices, metrics and reconciles read of a result. Each of them reads other statistics."""
    metadata = {name: raw["metadata"][name] for name in _METADATA if name in raw["metadata"]}
    spec = _without(raw["spec"], _UNREAD_SPEC)
    for side in ("server", "client"):
        spec[side] = _without(spec[side], _UNREAD_NODE)
    if "service" in spec:
        spec["service"] = _comparable(spec["service"])
    return {"metadata": metadata, "spec": spec, "status": _without(raw.get("status", {}), _UNREAD_STATUS)}


def _without(fields: Raw, unread: Iterable[str]) -> dict[str, Any]:
    kept = dict(fields)
    for name in unread:
        kept.pop(name, None)
    return kept


def _comparable(service: Raw) -> Raw:
    """Returns the setup of a service with one short setting that represents all: runs are compared by them."""
    settings = service.get("settings", {})
    short = {"serviceSettings": _fingerprint(tuple(settings.items()))} if settings else {}
    return {"name": service["name"], "settings": short}


@lru_cache
def _fingerprint(settings: tuple[tuple[str, str], ...]) -> str:
    return fingerprint(json.dumps(dict(settings), sort_keys=True))


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
        superseded=metadata.get("labels", {}).get(LABEL_SUPERSEDED) == "true",
    )


def stored_bytes(raw: Raw) -> int:
    """Returns the size of a result and its record as JSON. A result without a status has no record."""
    return int(raw.get("status", {}).get("storedBytes", 0)) or len(json.dumps(raw))


def _version(raw: Raw) -> int:
    return int(raw["metadata"].get("resourceVersion", 0))


def _ended_uid(stored: StoredResult | None) -> str | None:
    return stored.metadata.uid if stored is not None and stored.metadata.ended else None


def _is_late(known: ResultMetadata, raw: Raw, *, deleted: bool) -> bool:
    """Whether the store knows this version of the object, or a newer one."""
    version = _version(raw)
    return 0 < version < known.version or (not deleted and 0 < version == known.version)


def _status(raw: Raw) -> BenchmarkStatus:
    """Returns the status of a benchmark, or an empty one if it is invalid."""
    try:
        return BenchmarkStatus.model_validate(raw.get("status", {}))
    except ValueError as error:
        name = f"{raw['metadata']['namespace']}/{raw['metadata']['name']}"
        extra = {"kind": raw["kind"], "benchmark": name, "error": str(error)}
        _logger.warning("ignoring the invalid status of a benchmark", extra=extra)
        return BenchmarkStatus()


def _measured(raw: Raw) -> float | None:
    status = raw.get("status", {})
    time = status.get("completionTime")
    if status.get("phase") != ResultPhase.COMPLETE or time is None:
        return None
    return datetime.fromisoformat(time).timestamp()
