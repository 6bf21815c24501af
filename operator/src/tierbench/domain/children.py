"""What belongs to a benchmark: by the UID of its owner, since names and labels are anybody's to write. Pure."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from tierbench.api.result import BenchmarkResult
from tierbench.domain.providers import known_apis, makers_of
from tierbench.domain.results import Head
from tierbench.domain.views import JobView, PodView, ProvidedObject, Raw, job_view, pod_view
from tierbench.workloads.names import LABEL_ROLE, Owner

View = TypeVar("View")
UNREADABLE: Final = (KeyError, ValueError, TypeError, AttributeError, RecursionError)
"""What reading an object that somebody else wrote may end with."""

_RESULT: Final = BenchmarkResult.KIND.kind
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Children:
    """The children of one benchmark; `uids` are theirs by kind and name, `provided` by the group of their API.

    `results` are those that were given in full, `kept` the heads of all. `foreign` names objects that bear its labels
    and are not its own, or cannot be understood. `last_orphan` is the newest run that a benchmark of the same name has
    left results of. `unreadable` are results of its own that this version does not understand.
    """

    pods: tuple[PodView, ...] = ()
    jobs: tuple[JobView, ...] = ()
    services: Mapping[str, Raw] = field(default_factory=dict)
    results: Mapping[str, BenchmarkResult] = field(default_factory=dict)
    kept: tuple[Head, ...] = ()
    provided: Mapping[str, tuple[ProvidedObject, ...]] = field(default_factory=dict)
    uids: Mapping[tuple[str, str], str] = field(default_factory=dict)
    foreign: tuple[str, ...] = ()
    last_orphan: int = 0
    unreadable: frozenset[str] = frozenset()


class Family:
    """Tells a benchmark's own children from others. Jobs that it has seen stay its own when they are deleted: their
    pods end after them."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._jobs: set[str] = set()
        self._results: dict[str, tuple[Raw, BenchmarkResult]] = {}

    def sort(self, listed: Mapping[str, Iterable[Raw]], heads: Iterable[Head] = ()) -> Children:
        """The children among objects that bear the benchmark's labels, given by kind, and among the `heads` of all
        results that say they are the benchmark's."""
        sorting = _Sorting(self._owner, self._jobs)
        jobs = sorting.take("Job", listed, job_view)
        self._jobs |= {sorting.uids["Job", job.name] for job in jobs}
        pods = sorting.take("Pod", listed, pod_view)
        services = sorting.take("Service", listed, dict)
        results = sorting.take(_RESULT, listed, self._result)
        self._results = {result.metadata.uid: self._results[result.metadata.uid] for result in results}
        kept = sorting.take_heads(heads)
        provided = {
            api.group: tuple(item for kind in api.kinds for item in sorting.take(kind, listed, partial(api.view, kind)))
            for api in known_apis()
        }
        return Children(
            pods=pods,
            jobs=jobs,
            services={raw["metadata"]["name"]: raw for raw in services},
            results={result.metadata.name: result for result in results},
            kept=kept,
            provided=provided,
            uids=sorting.uids,
            foreign=tuple(sorting.foreign),
            last_orphan=sorting.last_orphan,
            unreadable=frozenset(sorting.unreadable),
        )

    def _result(self, raw: Raw) -> BenchmarkResult:
        """Read once: the same object says the same."""
        uid = raw["metadata"]["uid"]
        known = self._results.get(uid)
        if known is None or known[0] is not raw:
            known = self._results[uid] = (raw, BenchmarkResult.model_validate(raw))
        return known[1]


@dataclass
class _Sorting:
    owner: Owner
    jobs: set[str]
    predecessors: set[str] = field(default_factory=set)
    uids: dict[tuple[str, str], str] = field(default_factory=dict)
    foreign: list[str] = field(default_factory=list)
    last_orphan: int = 0
    unreadable: set[str] = field(default_factory=set)

    def take(self, kind: str, listed: Mapping[str, Iterable[Raw]], view: Callable[[Raw], View]) -> tuple[View, ...]:
        """The benchmark's own objects of a kind."""
        found = []
        for raw in listed.get(kind, ()):
            name, uid = raw["metadata"]["name"], raw["metadata"]["uid"]
            if not self._is_own(kind, raw):
                continue
            self.uids[kind, name] = uid
            try:
                found.append(view(raw))
            except UNREADABLE as error:
                _logger.warning("%s %s/%s cannot be understood: %s", kind, self.owner.namespace, name, error)
                if kind == _RESULT:
                    self.unreadable.add(name)
                else:
                    self.foreign.append(f"{kind} {name}")
        return tuple(found)

    def take_heads(self, heads: Iterable[Head]) -> tuple[Head, ...]:
        """Those of the benchmark's own results."""
        own = []
        for head in heads:
            uid, *of = head.controller
            if uid == self.owner.uid:
                own.append(head)
                self.uids[_RESULT, head.name] = head.uid
            elif uid not in self.predecessors and tuple(of) != (self.owner.kind, self.owner.name):
                self.foreign.append(f"{_RESULT} {head.name}")
                if not uid:
                    self.last_orphan = max(self.last_orphan, head.run)
        return tuple(own)

    def _is_own(self, kind: str, raw: Raw) -> bool:
        owners = raw["metadata"].get("ownerReferences", ())
        by: Raw = next((item for item in owners if item.get("controller")), {})
        uid = by.get("uid")
        # Other operators' pods have the labels that a benchmark asks for, and owners of theirs.
        makers = makers_of(raw["metadata"]["labels"].get(LABEL_ROLE)) if kind == "Pod" else None
        if makers is not None:
            own = any(item["kind"] in makers for item in owners)
        else:
            own = uid == self.owner.uid or (kind == "Pod" and uid in self.jobs)
        if not own and kind != _RESULT and not self._is_of_predecessor(raw, by):
            self.foreign.append(f"{kind} {raw['metadata']['name']}")
        return own

    def _is_of_predecessor(self, raw: Raw, by: Raw) -> bool:
        """Of a benchmark of the same name that was deleted: it will be gone soon."""
        if by.get("uid") in self.predecessors:
            return True
        if (by.get("kind"), by.get("name")) != (self.owner.kind, self.owner.name):
            return False
        self.predecessors.add(raw["metadata"]["uid"])
        return True
