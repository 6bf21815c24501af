"""One API server in memory for all unit tests: objects by path, resource versions, watches, and a record of requests.

Tests reach it in the process (`client.kube`) or on loopback (`client.serve`). It validates no schema, and collects no
garbage. Only tests/unit/domain has its own model, for speed.
"""

import asyncio
import itertools
import json
import re
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import jsonpatch

from tests.timeouts import TIMEOUT_FACTOR
from tests.unit.apiserver.patches import FieldOwners, merge
from tierbench.api.node_class import NODE_CLASSES
from tierbench.api.placement_advice import ADVICES
from tierbench.api.result import RESULTS
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.client import ApiError, ConflictError, NotFoundError
from tierbench.kube.meta import CLUSTER_ROLES, EVENTS, JOBS, NODES, PODS, SERVICES, ResourceType, format_time

Raw = dict[str, Any]
SERVED = (
    *(NODE_CLASSES, ADVICES, RESULTS, *(model.KIND.resource for model in BENCHMARKS.values())),
    *(NODES, PODS, SERVICES, JOBS, ResourceType("api/v1", "namespaces")),
    ResourceType("apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
)
_KINDS = {model.KIND.plural: name for name, model in BENCHMARKS.items()}
_CLUSTER_SCOPED = {each.plural for each in (NODES, NODE_CLASSES, CLUSTER_ROLES)} | {
    "namespaces",
    "customresourcedefinitions",
}
_PATH = re.compile(r"/(api/v1|apis/[^/]+/[^/]+)(?:/namespaces/([^/]+)(?=/[^/]))?/([^/]+)(?:/([^/]+)(?:/([^/]+))?)?")
_OK, _CREATED = 200, 201
_POLL_SECONDS = 0.01


@dataclass(frozen=True)
class Request:
    """One request. `body` is the parsed JSON."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_watch(self) -> bool:
        return "watch" in self.query

    @property
    def is_list(self) -> bool:
        return "limit" in self.query

    @property
    def content_type(self) -> str:
        return self.headers.get("Content-Type", "")


@dataclass(frozen=True)
class Response:
    """One answer: an object, or the pieces of a stream."""

    status: int
    body: Raw | AsyncGenerator[bytes]


@dataclass(frozen=True)
class _Target:
    """The parts of a path."""

    api: str
    namespace: str
    plural: str
    name: str
    subresource: str

    @property
    def path(self) -> str:
        """The path of the object, without its subresource."""
        return ResourceType(self.api, self.plural).path(self.namespace or None, self.name or None)

    def selects(self, path: str) -> bool:
        """Returns whether this collection has the object at a path."""
        other = _target(path)
        return (
            other is not None
            and (self.api, self.plural) == (other.api, other.plural)
            and self.namespace in {"", other.namespace}
        )


@lru_cache(maxsize=10_000)
def _target(path: str) -> _Target | None:
    found = _PATH.fullmatch(path)
    return None if found is None else _Target(*(part or "" for part in found.groups()))


@dataclass(frozen=True)
class _Event:
    version: int
    type: str
    path: str
    object: Raw


class ApiServer:
    """Stores objects, and answers requests.

    `refuse` has the errors of requests by method and end of the path; either may be empty. A ConnectionError closes the
    connection. `reactor` is called before each request is handled: it may raise such an error, or wait.
    """

    def __init__(self) -> None:
        self.url = ""
        """The address on loopback, while it is served there."""
        self.objects: dict[str, Raw] = {}
        """All objects, and documents such as /openapi/v3, by path. Tests may edit objects in place."""
        self.logs: dict[str, bytes | ApiError] = {}
        """The logs of containers by pod."""
        self.requests: list[Request] = []
        self.deleted: list[str] = []
        """The paths of the objects that requests deleted."""
        self.refuse: dict[tuple[str, str], ApiError | ConnectionError] = {}
        self.reactor: Callable[[Request], Awaitable[None]] = _no_reaction
        self.types: tuple[ResourceType, ...] = SERVED
        self.page = 500
        """The number of objects of the largest page."""
        self.ahead = timedelta(0)
        self.open_streams = 0
        self._started = datetime.now(UTC).replace(microsecond=0)
        self._numbers = itertools.count(1)
        self._version = 1
        self._events: list[_Event] = []
        self._oldest = 0
        self._pages: dict[str, tuple[int, list[Raw]]] = {}
        self._owners: defaultdict[str, FieldOwners] = defaultdict(FieldOwners)
        self._ends: list[tuple[int, ApiError | None]] = []
        self._interrupted = False

    def now(self) -> datetime:
        """Returns the time. Each request takes a microsecond. Otherwise, only a change of `ahead` moves the time."""
        return self._started + self.ahead + timedelta(microseconds=len(self.requests))

    # Actions of other clients.

    def put(self, resource: ResourceType, raw: Raw) -> Raw:
        """Creates or replaces an object, with its status. The default namespace is `default`."""
        metadata = raw["metadata"]
        namespace = None if resource.plural in _CLUSTER_SCOPED else metadata.get("namespace", "default")
        path = resource.path(namespace, metadata["name"])
        if path not in self.objects:
            return self._create(path, raw, namespace)
        found = self.objects[path]["metadata"]
        kept = {key: found[key] for key in ("uid", "creationTimestamp", "generation", "namespace") if key in found}
        return self._store("MODIFIED", path, {**raw, "metadata": {**kept, **metadata}})

    def change(self, resource: ResourceType, name: str, namespace: str = "default", **parts: Any) -> Raw:
        """Merges parts into an object."""
        path = self.path(resource, name, namespace)
        return self._store("MODIFIED", path, merge(self.objects[path], parts))

    def get(self, resource: ResourceType, name: str, namespace: str = "default") -> Raw | None:
        """Returns an object, or None."""
        return self.objects.get(self.path(resource, name, namespace))

    def delete(self, resource: ResourceType, name: str, namespace: str = "default") -> None:
        """Deletes an object, which its finalizers may keep."""
        self._mark_deleted(self.path(resource, name, namespace))

    def force_delete(self, resource: ResourceType, name: str, namespace: str = "default") -> None:
        """Deletes an object despite its finalizers."""
        self._remove(self.path(resource, name, namespace))

    def path(self, resource: ResourceType, name: str, namespace: str = "default") -> str:
        """Returns the path of an object."""
        return resource.path(None if resource.plural in _CLUSTER_SCOPED else namespace, name)

    def names(self, plural: str) -> list[str]:
        """Returns the names of all objects of a type."""
        return [path.rpartition("/")[2] for path in self.objects if path.split("/")[-2] == plural]

    @property
    def writes(self) -> list[Request]:
        """The requests that change something."""
        return [request for request in self.requests if request.method != "GET"]

    @property
    def events(self) -> list[tuple[str, str]]:
        """The reason and the message of each Event."""
        return [(raw["reason"], raw["message"]) for raw in self.matching(EVENTS.path(None))]

    async def until(self, holds: Callable[[], object], seconds: float = 20) -> None:
        """Waits until something holds."""
        async with asyncio.timeout(seconds * TIMEOUT_FACTOR):
            while not holds():  # noqa: ASYNC110 (the code under test sets no event)
                await asyncio.sleep(_POLL_SECONDS / 10)

    def page_of(self, path: str, selector: str = "") -> Raw:
        """Returns a collection as one page."""
        return {"metadata": {"resourceVersion": str(self._version)}, "items": self.matching(path, selector)}

    def fail(self, error: ApiError | ConnectionError | None) -> None:
        """Answers all requests with this error, and ends all watches. None answers them normally again."""
        self.refuse.clear()
        if error is not None:
            self.refuse["", ""] = error
        self.end_watches()

    def wait(self, holds: Callable[["ApiServer"], object], seconds: float = 60) -> None:
        """Blocks until something holds, while another thread serves."""
        end = time.monotonic() + seconds * TIMEOUT_FACTOR
        while not holds(self):
            assert time.monotonic() < end, "the condition does not hold in time"
            time.sleep(_POLL_SECONDS)

    # Watches.

    def end_watches(self, error: ApiError | None = None) -> None:
        """Ends all watches after the events so far, with an error, or as API servers do after some minutes."""
        self._ends.append((self._version, error))

    def interrupt_watches(self) -> None:
        """Ends all watches. No other begins until `resume_watches`."""
        self.end_watches()
        self._interrupted = True

    def resume_watches(self, *, expired: bool = False) -> None:
        """Lets watches begin. With `expired`, those that begin at a version up to now are answered by 410."""
        if expired:
            self._oldest = self._version
            self._pages.clear()
        self._interrupted = False

    def restore(self, *, version: int) -> None:
        """Ends all watches, and has a lower version from now on, as after the restoration of a backup."""
        self.end_watches(ApiError(504, "Timeout", "Too large resource version"))
        self._version = version

    def bookmark(self) -> None:
        """Sends a bookmark of a new version to all watches."""
        self._version += 1
        self._events.append(
            _Event(self._version, "BOOKMARK", "", {"metadata": {"resourceVersion": str(self._version)}})
        )

    async def _watch(self, target: _Target, selector: str, since: int) -> AsyncGenerator[bytes]:
        while self._interrupted:  # noqa: ASYNC110 (the test may run in another thread)
            await asyncio.sleep(_POLL_SECONDS)
        ends, position = len(self._ends), 0
        if since < self._oldest:
            yield _line("ERROR", _status(ApiError(410, "Expired", f"too old resource version: {since}")))
            return
        while True:
            last, error = self._ends[ends] if len(self._ends) > ends else (None, None)
            for event in self._events[position:]:
                position += 1
                is_due = event.version > since and (last is None or event.version <= last)
                if is_due and (not event.path or (target.selects(event.path) and _is_selected(event.object, selector))):
                    yield _line(event.type, event.object)
            if last is not None:
                break
            await asyncio.sleep(_POLL_SECONDS)
        if error is not None:
            yield _line("ERROR", _status(error))

    # Requests.

    async def answer(self, request: Request) -> Response:
        """Handles a request. Raises ConnectionError if its connection is to be closed without an answer."""
        self.requests.append(request)
        try:
            await self.reactor(request)
            for (method, end), error in self.refuse.items():
                if method in {"", request.method} and request.path.endswith(end):
                    raise error
            return self._handle(request)
        except ApiError as error:
            return Response(error.status, _status(error))

    def _handle(self, request: Request) -> Response:
        if request.method == "GET" and (found := self._discover(request.path) or self.objects.get(request.path)):
            return Response(_OK, found)
        target = _target(request.path)
        if target is None:
            raise NotFoundError(404, "NotFound", f"{request.path} not found")
        match request.method:
            case "GET" if target.subresource == "log":
                return Response(_OK, self._log(target.name))
            case "GET" if not target.name and request.is_watch:
                selector, since = request.query.get("labelSelector", ""), int(request.query["resourceVersion"])
                return Response(_OK, self._watch(target, selector, since))
            case "GET" if not target.name:
                return Response(_OK, self._list(request))
            case "POST":
                return Response(_CREATED, self._post(target, request))
            case "PUT" | "PATCH":
                return Response(_OK, self._update(target, request))
            case "DELETE":
                self._check(target.path, (request.body or {}).get("preconditions", {}))
                self.deleted.append(target.path)
                return Response(_OK, self._mark_deleted(target.path))
        raise NotFoundError(404, "NotFound", f"{request.path} not found")

    def _log(self, pod: str) -> AsyncGenerator[bytes]:
        found = self.logs.get(pod, b"")
        if isinstance(found, ApiError):
            raise found
        return _pieces(found)

    def _list(self, request: Request) -> Raw:
        if (token := request.query.get("continue")) is None:
            version, items = self._version, self.matching(request.path, request.query.get("labelSelector", ""))
            items = [item for item in items if _has_fields(item, request.query.get("fieldSelector", ""))]
        elif token in self._pages:
            version, items = self._pages[token]
        else:
            raise ApiError(410, "Expired", "The provided continue parameter is too old")
        end = min(self.page, int(request.query.get("limit", self.page)))
        metadata = {"resourceVersion": str(version)}
        if items[end:]:
            metadata["continue"] = f"page-{next(self._numbers)}"
            self._pages[metadata["continue"]] = (version, items[end:])
        return {"metadata": metadata, "items": items[:end]}

    def matching(self, path: str, selector: str = "") -> list[Raw]:
        """Returns the objects of a collection with these labels, sorted by path."""
        target = _target(path)
        found = sorted(each for each in self.objects if target is not None and target.selects(each))
        return [self.objects[each] for each in found if _is_selected(self.objects[each], selector)]

    def _post(self, target: _Target, request: Request) -> Raw:
        metadata = dict(request.body["metadata"])
        metadata.setdefault("name", f"{metadata.get('generateName', '')}{next(self._numbers)}")
        path = f"{target.path}/{metadata['name']}"
        if path in self.objects:
            raise ConflictError(409, "AlreadyExists", f"{metadata['name']} already exists")
        body = {key: value for key, value in request.body.items() if key != "status"} | {"metadata": metadata}
        return body if request.query.get("dryRun") else self._create(path, body, target.namespace or None)

    def _update(self, target: _Target, request: Request) -> Raw:
        path, body = target.path, request.body
        if request.content_type == "application/json-patch+json":
            found = self._check(path, {})
            try:
                changed = jsonpatch.apply_patch(found, body)
            except jsonpatch.JsonPatchException as error:
                raise ApiError(422, "Invalid", str(error)) from error
        else:
            found = self._check(path, body.get("metadata", {}))
            match request.content_type:
                case "application/merge-patch+json":
                    changed = merge(found, body)
                case "application/apply-patch+yaml":
                    query = request.query
                    owners = self._owners[found["metadata"]["uid"]]
                    changed = owners.apply(found, body, query["fieldManager"], force=query.get("force") == "true")
                case "application/json" if request.method == "PUT":
                    changed = {**body, "metadata": {**found["metadata"], **body["metadata"]}}
                case other:
                    raise ApiError(415, "UnsupportedMediaType", other)
        source, kept = (found, changed) if target.subresource == "status" else (changed, found)
        changed = {key: value for key, value in source.items() if key != "status"}
        changed |= {"status": kept["status"]} if "status" in kept else {}
        return changed if request.query.get("dryRun") else self._commit(path, found, changed)

    def _check(self, path: str, preconditions: Mapping[str, str]) -> Raw:
        """Returns the object. Raises ConflictError if its uid or resourceVersion differs from `preconditions`."""
        if path not in self.objects:
            raise NotFoundError(404, "NotFound", f"{path} not found")
        found = self.objects[path]
        for key in ("uid", "resourceVersion"):
            if preconditions.get(key) not in {None, found["metadata"][key]}:
                raise ConflictError(409, "Conflict", f"the {key} of the object is another one")
        return found

    def _discover(self, path: str) -> Raw | None:
        groups = defaultdict[tuple[str, str], list[ResourceType]](list)
        for each in self.types:
            groups[each.group_and_version].append(each)
        if path == "/api":
            return {"versions": ["v1"]}
        if path == "/apis":
            served = {group: {"groupVersion": f"{group}/{name}", "version": name} for group, name in groups if group}
            return {
                "groups": [{"name": name, "versions": [one], "preferredVersion": one} for name, one in served.items()]
            }
        for types in groups.values():
            if path == f"/{types[0].api}":
                return {"resources": [item for each in types for item in _described(each)]}
        return None

    # Changes.

    def _create(self, path: str, raw: Raw, namespace: str | None) -> Raw:
        metadata = raw["metadata"]
        created = {
            "uid": f"uid-{metadata['name']}-{next(self._numbers)}",
            "creationTimestamp": format_time(self.now()),
            "generation": 1,
        }
        placed = {"namespace": namespace} if namespace else {}
        return self._store("ADDED", path, {**raw, "metadata": {**created, **metadata, **placed}})

    def _commit(self, path: str, found: Raw, changed: Raw) -> Raw:
        """Stores a changed object, or removes it if its last finalizer has gone after it was deleted."""
        metadata = {**changed["metadata"], "resourceVersion": found["metadata"]["resourceVersion"]}
        if {**changed, "metadata": metadata} == found:
            return found
        if changed.get("spec") != found.get("spec"):
            metadata["generation"] = metadata.get("generation", 1) + 1
        stored = self._store("MODIFIED", path, {**changed, "metadata": metadata})
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            self._remove(path)
        return stored

    def _mark_deleted(self, path: str) -> Raw:
        raw = self.objects[path]
        if raw["metadata"].get("finalizers"):
            deleted = {"deletionTimestamp": format_time(self.now()), **raw["metadata"]}
            return self._commit(path, raw, {**raw, "metadata": deleted})
        self._remove(path)
        return {"kind": "Status", "metadata": {}, "status": "Success"}

    def _remove(self, path: str) -> None:
        self._store("DELETED", path, self.objects[path])

    def _store(self, change: str, path: str, raw: Raw) -> Raw:
        self._version += 1
        stored: Raw = {**raw, "metadata": {**raw["metadata"], "resourceVersion": str(self._version)}}
        if change == "DELETED":
            del self.objects[path]
        else:
            self.objects[path] = stored
        self._events.append(_Event(self._version, change, path, stored))
        return stored


async def _no_reaction(_: Request) -> None:
    pass


async def _pieces(data: bytes) -> AsyncGenerator[bytes]:
    yield data


def _has_fields(raw: Raw, selector: str) -> bool:
    for path, _, value in (term.partition("=") for term in selector.split(",") if term):
        found: Any = raw
        for key in path.split("."):
            found = found.get(key, {})
        if found != value:
            return False
    return True


def _is_selected(raw: Raw, selector: str) -> bool:
    labels = raw["metadata"].get("labels", {})
    terms = [term.partition("=") for term in selector.split(",") if term]
    return all(labels.get(key) == value if equal else key in labels for key, equal, value in terms)


def _line(change: str, raw: Raw) -> bytes:
    return json.dumps({"type": change, "object": raw}).encode() + b"\n"


def _status(error: ApiError) -> Raw:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "code": error.status,
        "reason": error.reason,
        "message": error.message,
    }


def _described(resource: ResourceType) -> Iterator[Raw]:
    described = {
        "name": resource.plural,
        "singularName": "",
        "kind": _KINDS.get(resource.plural, resource.plural),
        "namespaced": resource.plural not in _CLUSTER_SCOPED,
        "verbs": ["list", "watch", "patch"],
    }
    yield described
    yield {**described, "name": f"{resource.plural}/status"}
