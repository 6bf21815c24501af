"""Objects as watches show them, and as own writes have left them: what a pass reads in place of the API server."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from tierbench.domain.results import BenchmarkKey as Key
from tierbench.domain.results import ResultMetadata
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.client import JOBS, LEASES, PODS, RESULTS, SERVICES, ResourceType
from tierbench.kube.news import Name, Raw, name_of
from tierbench.workloads.names import LABEL_BENCHMARK, LABEL_KIND


def benchmark_of(raw: Raw) -> Key:
    """The benchmark whose labels an object bears."""
    metadata = raw["metadata"]
    labels = metadata.get("labels", {})
    return labels.get(LABEL_KIND, ""), metadata.get("namespace", ""), labels.get(LABEL_BENCHMARK, "")


class Cache:
    """Objects of one type, by name and by benchmark."""

    def __init__(self) -> None:
        self._objects: dict[Name, Raw] = {}
        self._of: defaultdict[Key, dict[Name, Raw]] = defaultdict(dict)

    def see(self, raw: Raw, *, deleted: bool = False) -> bool:
        """Takes in an object, or that it is gone; whether that is news. What is older than what is known is none: a
        watch tells of an own write later than its answer did."""
        name, known = name_of(raw), self._objects.get(name_of(raw))
        if known is not None and (
            _version(raw) < _version(known) or (_version(raw) == _version(known) and not deleted)
        ):
            return False
        self.forget(name)
        if not deleted:
            self._objects[name] = self._of[benchmark_of(raw)][name] = _slim(raw)
        return True

    def forget(self, name: Name) -> None:
        """The object is gone."""
        known = self._objects.pop(name, None)
        if known is not None:
            mine = self._of[key := benchmark_of(known)]
            del mine[name]
            if not mine:
                del self._of[key]

    def get(self, name: Name) -> Raw | None:
        """The object, if there is one."""
        return self._objects.get(name)

    def of(self, benchmark: Key) -> tuple[Raw, ...]:
        """Everything that bears the benchmark's labels, in the order of names."""
        found = self._of.get(benchmark, {})
        return tuple(found[name] for name in sorted(found))

    def all(self) -> Iterable[Raw]:
        """Every object."""
        return self._objects.values()

    def names(self) -> tuple[Name, ...]:
        """Of all objects."""
        return tuple(self._objects)


class RunResults(Cache):
    """Results in full, of the runs that loops follow: of others there are too many."""

    def __init__(self) -> None:
        super().__init__()
        self._runs: dict[Key, int] = {}

    def follow(self, benchmark: Key, run: int, known_results: Iterable[ResultMetadata]) -> bool:
        """From now on results of the benchmark are kept, of this run and later ones. Whether any of `known_results`,
        which are all that there are, has to be read first."""
        self._runs[benchmark] = run
        for raw in self.of(benchmark):
            if raw["spec"]["run"] < run:
                self.forget(name_of(raw))
        namespace = benchmark[1]
        return any(result.run >= run and self.get((namespace, result.name)) is None for result in known_results)

    def leave(self, benchmark: Key) -> None:
        """The loop has ended."""
        self._runs.pop(benchmark, None)
        for raw in self.of(benchmark):
            self.forget(name_of(raw))

    def see(self, raw: Raw, *, deleted: bool = False) -> bool:
        """Takes in a result of a run that is followed, or that any is gone."""
        run = self._runs.get(benchmark_of(raw))
        followed = deleted or (run is not None and raw["spec"]["run"] >= run)
        return followed and super().see(raw, deleted=deleted)


def _version(raw: Raw) -> int:
    """Of objects of one type it tells which is newer: https://www.kubernetes.dev/resources/keps/5504/."""
    return int(raw["metadata"]["resourceVersion"])


def _slim(raw: Raw) -> Raw:
    return {**raw, "metadata": {key: value for key, value in raw["metadata"].items() if key != "managedFields"}}


class Objects:
    """The caches of all types that passes read, kept current by watches and by own writes."""

    def __init__(self) -> None:
        types = (PODS, JOBS, SERVICES, LEASES, *(ResourceType.of(model.KIND) for model in BENCHMARKS.values()))
        self.results = RunResults()
        self._caches: Mapping[ResourceType, Cache] = {RESULTS: self.results, **{each: Cache() for each in types}}

    def __getitem__(self, resource: ResourceType) -> Cache:
        return self._caches[resource]

    def written(self, resource: ResourceType, raw: Mapping[str, Any] | None, name: Name | None = None) -> None:
        """Takes in the answer to a write; None, and the name, of what is gone. Of other types nothing is kept."""
        cache = self._caches.get(resource)
        if cache is None:
            return
        if raw is not None:
            cache.see(raw)
        elif name is not None:
            cache.forget(name)
