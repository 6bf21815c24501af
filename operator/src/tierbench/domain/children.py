"""The objects that a benchmark owns, found by the UID of their controller: anyone can write names and labels."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from tierbench.api.result import BenchmarkResult
from tierbench.domain.results import ResultMetadata
from tierbench.domain.servers import known_apis, owner_kinds_of
from tierbench.domain.views import JobView, PodView, ProviderObject, job_view, pod_view
from tierbench.kube.meta import Raw
from tierbench.workloads.workload import LABEL_ROLE, Owner

View = TypeVar("View")
PARSE_ERRORS: Final = (KeyError, ValueError, TypeError, AttributeError, RecursionError)
"""The errors that parsing an object of someone else may raise."""

_RESULT: Final = BenchmarkResult.KIND.kind
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Children:
    """The objects that one benchmark owns.

    `uids` maps kind and name to the UID, `provider_objects` the API group of another operator to its objects. `results`
    contains the results that were given in full, `known_results` the metadata of all. `unowned` names objects that have
    the labels of the benchmark and another owner, or that cannot be parsed. `last_orphaned_run` is the newest run of
    which results without an owner exist. `unreadable` names owned results that this version cannot parse.
    """

    pods: tuple[PodView, ...] = ()
    jobs: tuple[JobView, ...] = ()
    services: Mapping[str, Raw] = field(default_factory=dict)
    results: Mapping[str, BenchmarkResult] = field(default_factory=dict)
    known_results: tuple[ResultMetadata, ...] = ()
    provider_objects: Mapping[str, tuple[ProviderObject, ...]] = field(default_factory=dict)
    uids: Mapping[tuple[str, str], str] = field(default_factory=dict)
    unowned: tuple[str, ...] = ()
    last_orphaned_run: int = 0
    unreadable: frozenset[str] = frozenset()


class ControllerRefManager:
    """Claims the objects of one benchmark. It remembers claimed Jobs, because their pods outlive them."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._jobs: set[str] = set()
        self._results: dict[str, tuple[Raw, BenchmarkResult]] = {}

    def claim(self, listed: Mapping[str, Iterable[Raw]], known_results: Iterable[ResultMetadata] = ()) -> Children:
        """Returns the objects that the benchmark owns.

        `listed` has objects with the labels of the benchmark, by kind. `known_results` refer to it by name.
        """
        claim = _Claim(self._owner, self._jobs)
        jobs = claim.views("Job", listed, job_view)
        self._jobs |= {claim.uids["Job", job.name] for job in jobs}
        pods = claim.views("Pod", listed, pod_view)
        services = claim.views("Service", listed, dict)
        results = claim.views(_RESULT, listed, self._parse_result)
        self._results = {result.metadata.uid: self._results[result.metadata.uid] for result in results}
        owned_results = claim.results(known_results)
        provider_objects = {
            api.group: tuple(item for kind in api.kinds for item in claim.views(kind, listed, partial(api.view, kind)))
            for api in known_apis()
        }
        return Children(
            pods=pods,
            jobs=jobs,
            services={raw["metadata"]["name"]: raw for raw in services},
            results={result.metadata.name: result for result in results},
            known_results=owned_results,
            provider_objects=provider_objects,
            uids=claim.uids,
            unowned=tuple(claim.unowned),
            last_orphaned_run=claim.last_orphaned_run,
            unreadable=frozenset(claim.unreadable),
        )

    def _parse_result(self, raw: Raw) -> BenchmarkResult:
        """Parses a result, unless the same object was parsed before."""
        uid = raw["metadata"]["uid"]
        known = self._results.get(uid)
        if known is None or known[0] is not raw:
            known = self._results[uid] = (raw, BenchmarkResult.model_validate(raw))
        return known[1]


@dataclass
class _Claim:
    owner: Owner
    jobs: set[str]
    previous_uids: set[str] = field(default_factory=set)
    uids: dict[tuple[str, str], str] = field(default_factory=dict)
    unowned: list[str] = field(default_factory=list)
    last_orphaned_run: int = 0
    unreadable: set[str] = field(default_factory=set)

    def views(self, kind: str, listed: Mapping[str, Iterable[Raw]], view: Callable[[Raw], View]) -> tuple[View, ...]:
        """Returns the views of the owned objects of a kind."""
        found = []
        for raw in listed.get(kind, ()):
            name, uid = raw["metadata"]["name"], raw["metadata"]["uid"]
            if not self._is_owned(kind, raw):
                continue
            self.uids[kind, name] = uid
            try:
                found.append(view(raw))
            except PARSE_ERRORS as error:
                extra = {"kind": kind, "object": f"{self.owner.namespace}/{name}", "error": str(error)}
                _logger.warning("ignoring invalid object", extra=extra)
                if kind == _RESULT:
                    self.unreadable.add(name)
                else:
                    self.unowned.append(f"{kind} {name}")
        return tuple(found)

    def results(self, known: Iterable[ResultMetadata]) -> tuple[ResultMetadata, ...]:
        """Returns the metadata of the owned results."""
        owned = []
        for result in known:
            uid, *reference = result.controller
            if uid == self.owner.uid:
                owned.append(result)
                self.uids[_RESULT, result.name] = result.uid
            elif uid not in self.previous_uids and tuple(reference) != (self.owner.kind, self.owner.name):
                self.unowned.append(f"{_RESULT} {result.name}")
                if not uid:
                    self.last_orphaned_run = max(self.last_orphaned_run, result.run)
        return tuple(owned)

    def _is_owned(self, kind: str, raw: Raw) -> bool:
        owners = raw["metadata"].get("ownerReferences", ())
        controller: Raw = next((item for item in owners if item.get("controller")), {})
        uid = controller.get("uid")
        # The pods of other operators have the labels that a benchmark asks for, and owners of those operators' kinds.
        owner_kinds = owner_kinds_of(raw["metadata"]["labels"].get(LABEL_ROLE)) if kind == "Pod" else None
        if owner_kinds is not None:
            owned = any(item["kind"] in owner_kinds for item in owners)
        else:
            owned = uid == self.owner.uid or (kind == "Pod" and uid in self.jobs)
        if not owned and kind != _RESULT and not self._is_of_previous(raw, controller):
            self.unowned.append(f"{kind} {raw['metadata']['name']}")
        return owned

    def _is_of_previous(self, raw: Raw, controller: Raw) -> bool:
        """Whether an object belongs to a deleted benchmark of the same name. Garbage collection will delete it."""
        if controller.get("uid") in self.previous_uids:
            return True
        if (controller.get("kind"), controller.get("name")) != (self.owner.kind, self.owner.name):
            return False
        self.previous_uids.add(raw["metadata"]["uid"])
        return True
