"""Informers: list and watch of one type, a handler of its events, and a cache of its objects."""

import asyncio
import itertools
import logging
import random
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Hashable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from yarl import URL

from tierbench.kube.client import REQUEST_ERRORS, ApiError, Kube, describe_error
from tierbench.kube.meta import Name, Raw, ResourceType, name_of
from tierbench.kube.pages import read_ahead

_BACKOFF_SECONDS: Final = 1.0
_MOST_BACKOFF_SECONDS: Final = 8.0
_REMEMBERED_DELETIONS: Final = 1000  # an answer is late by seconds
# The version is too old, or newer than any of an API server that was restored from a backup.
_UNUSABLE_VERSION: Final = {410, 504}
_CHANGES: Final = {"ADDED", "MODIFIED", "DELETED"}
_WITHOUT_YIELDING: Final = 16  # objects of a page, which has many
_Key = TypeVar("_Key", bound=Hashable)
_logger = logging.getLogger(__name__)


class HistoryLostError(Exception):
    """The API server has an earlier state than it had, as after the restoration of a backup.

    What this process knows is not comparable with it, so the process has to start again.
    """

    def __init__(self, resource: ResourceType, version: str, known: str) -> None:
        super().__init__(
            f"the API server was restored from a backup: {resource.plural} are at version {version}, and were at "
            f"{known}. The operator starts again"
        )


@dataclass(frozen=True)
class WatchEvent:
    """One object was listed, added, modified or deleted."""

    resource: ResourceType
    item: Raw
    deleted: bool


@dataclass(frozen=True)
class InitialListSynced:
    """A list is complete: at this resourceVersion there were the objects with these names, and no others."""

    resource: ResourceType
    names: frozenset[Name]
    version: str


@dataclass(frozen=True)
class WatchError:
    """A request failed. It is repeated after a pause."""

    error: Exception


@dataclass(frozen=True)
class WatchResumed:
    """A watch continues after an error, at the version where it ended."""


Update = WatchEvent | InitialListSynced | WatchError | WatchResumed


async def list_and_watch(
    kube: Kube, resource: ResourceType, namespace: str | None, query: Mapping[str, str]
) -> AsyncGenerator[Update]:
    """Yields every object of one type, then InitialListSynced, then each change, without end.

    After a failed request it yields WatchError, waits, and continues where it was. It lists again only if the API
    server cannot continue from there. The first time it does so at once, and then after pauses, until a watch works.
    No more than two pages of a list are in memory. `query` holds the selectors. Raises HistoryLostError.
    """
    version, last, errors, is_interrupted = "", "0", 0, False
    while True:
        try:
            if not version:
                names, listed = set[Name](), ""
                async with aclosing(read_ahead(kube.pages(resource, namespace, query))) as pages:
                    async for page in pages:
                        listed = str(page["metadata"]["resourceVersion"])
                        if int(listed) < int(last):
                            raise HistoryLostError(resource, listed, last)
                        for item in page["items"] or ():
                            names.add(name_of(item))
                            yield WatchEvent(resource, item, deleted=False)
                yield InitialListSynced(resource, frozenset(names), listed)
                version, is_interrupted = listed, False
            async with aclosing(kube.watch(resource, namespace, {**query, "resourceVersion": version})) as events:
                await anext(events)  # the bookmark of a watch that is open
                has_events = False
                if is_interrupted:
                    yield WatchResumed()
                    is_interrupted = False
                async for event in events:
                    version, errors, has_events = event["object"]["metadata"]["resourceVersion"], 0, True
                    if event["type"] != "BOOKMARK":
                        yield WatchEvent(resource, event["object"], deleted=event["type"] == "DELETED")
            if not has_events:
                # A proxy may end each watch as soon as it is open.
                await asyncio.sleep(_backoff(errors))
                errors += 1
        except REQUEST_ERRORS as error:
            is_unusable = bool(version) and isinstance(error, ApiError) and error.status in _UNUSABLE_VERSION
            if is_unusable:
                version, last = "", version
            if errors or not is_unusable:
                yield WatchError(error)
                is_interrupted = True
                await asyncio.sleep(_backoff(errors))
            errors += 1


def _backoff(errors: int) -> float:
    """Returns seconds that double with each error in a row, up to a limit. Clients that failed at once return apart."""
    seconds: float = min(_BACKOFF_SECONDS * 2 ** min(errors, 10), _MOST_BACKOFF_SECONDS)
    return random.uniform(0.5, 1) * seconds  # noqa: S311 (a delay, not a secret)


class ResourceEventHandler(Protocol):
    """Handles the events of one type. A deleted object may have nothing but namespace, name and resourceVersion."""

    def __call__(self, raw: Raw, *, deleted: bool) -> None:
        """The object was listed, added, modified or deleted."""


@dataclass(frozen=True)
class Informer:
    """A type that is watched in these namespaces; None means all namespaces, or a cluster-scoped type.

    `known` returns the names of the objects that the handler keeps, so that missing ones are found after a list.
    `admit` returns what is kept of an object, or None if nothing is.
    """

    resource: ResourceType
    handler: ResourceEventHandler
    known: Callable[[], Iterable[Name]]
    namespaces: tuple[str | None, ...]
    labels: str = ""
    admit: Callable[[Raw], Raw | None] = lambda raw: raw


async def run_informer(kube: Kube, informer: Informer, namespace: str | None, synced: asyncio.Event) -> None:
    """Handles the events of one type in one namespace, without end. Sets `synced` after the first complete list."""
    query = {"labelSelector": informer.labels} if informer.labels else {}
    handled = itertools.count(1)
    async with aclosing(list_and_watch(kube, informer.resource, namespace, query)) as updates:
        async for update in updates:
            match update:
                case WatchEvent(_, item, deleted):
                    if (kept := _admit(informer, item)) is not None:
                        _handle(informer, kept, deleted=deleted)
                    if next(handled) % _WITHOUT_YIELDING == 0:
                        await asyncio.sleep(0)
                case InitialListSynced(_, names, version):
                    _delete_missing(informer, namespace, names, version)
                    synced.set()
                case WatchError(error):
                    _logger.warning(
                        "cannot watch; retrying",
                        extra={"resource": informer.resource.plural, "error": describe_error(error)},
                    )


def _admit(informer: Informer, item: Raw) -> Raw | None:
    try:
        return informer.admit(item)
    except Exception:
        _report_invalid(informer, item)
        return None


def _handle(informer: Informer, item: Raw, *, deleted: bool) -> None:
    try:
        informer.handler(item, deleted=deleted)
    except Exception:
        _report_invalid(informer, item)


def _report_invalid(informer: Informer, item: Raw) -> None:
    name = item.get("metadata", {}).get("name")
    _logger.exception("ignoring invalid object", extra={"resource": informer.resource.plural, "object": name})


def _delete_missing(informer: Informer, namespace: str | None, names: frozenset[Name], version: str) -> None:
    """Handles the deletion of the objects that were deleted while no watch was open."""
    for name in {name for name in informer.known() if namespace in {None, name[0]}} - names:
        metadata = {"namespace": name[0], "name": name[1], "resourceVersion": version}
        _handle(informer, {"metadata": metadata}, deleted=True)


@dataclass
class _List:
    """The names of the kept objects of a list, and its resourceVersion once it is complete."""

    names: set[Name]
    version: str = ""


class ListObserver:
    """Feeds informers with the lists that another client reads, and reduces what that client gets.

    A client such as kopf passes on what a list has, object by object. What a list has no more is found here. The types
    are listed for the first time in the order of the informers, because `admit` may depend on earlier ones.
    """

    def __init__(self, informers: Iterable[Informer], base_path: str) -> None:
        """`base_path` is the path of the API server's URL."""
        self._base_path = base_path.rstrip("/")
        self._informers = {
            one.resource.path(namespace): (one, namespace) for one in informers for namespace in one.namespaces
        }
        self._lists: dict[str, _List] = {}
        self._versions: dict[str, str] = {}
        self._listed = {path: asyncio.Event() for path in self._informers}
        self.one_page = asyncio.Lock()
        """Is held while a page is read, so that no more than one is in memory."""
        self.synced = asyncio.Event()
        """Set once every type has been listed."""

    def observes(self, url: URL) -> bool:
        """Returns whether there is an informer of the collection at this URL."""
        return self._path(url) in self._informers

    def _path(self, url: URL) -> str:
        return url.path.removeprefix(self._base_path)

    async def wait_for_turn(self, url: URL) -> None:
        """Waits until all types before that of this list have been listed."""
        informer, _ = self._informers[self._path(url)]
        for path, (other, _) in self._informers.items():
            if other.resource == informer.resource:
                return
            await self._listed[path].wait()

    def observe(self, url: URL, page: Raw) -> Raw:
        """Handles the objects of a page and, after the last page, the deletion of those that the list lacks.

        Returns the page with what is kept. Raises HistoryLostError.
        """
        path, version = self._path(url), str(page["metadata"]["resourceVersion"])
        informer, namespace = self._informers[path]
        if int(version) < int(known := self._versions.get(path, "0")):
            raise HistoryLostError(informer.resource, version, known)
        self._versions[path] = version
        if "continue" not in url.query:
            self._lists[path] = _List(set())
        listed = self._lists[path]
        kept = [item for each in page["items"] or () if (item := _admit(informer, each)) is not None]
        for item in kept:
            listed.names.add(name_of(item))
            _handle(informer, item, deleted=False)
        if not page["metadata"].get("continue"):
            listed.version = version
            _delete_missing(informer, namespace, frozenset(listed.names), listed.version)
            self._listed[path].set()
            if all(event.is_set() for event in self._listed.values()):
                self.synced.set()
        return {**page, "items": kept}

    def reduce(self, url: URL, event: Raw) -> Raw:
        """Returns what the other client gets of a watch event: a bookmark if nothing is kept of its object."""
        path = self._path(url)
        if event["type"] == "ERROR":
            return event
        version = self._versions[path] = event["object"]["metadata"]["resourceVersion"]
        if event["type"] not in _CHANGES:
            return event
        kept = _admit(self._informers[path][0], event["object"])
        if kept is None:
            return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version}}}
        return {"type": event["type"], "object": kept}

    def is_outdated(self, resource: ResourceType, raw: Raw) -> bool:
        """Returns whether the object was deleted before its type was listed last, so that its event comes too late."""
        namespace, name = name_of(raw)
        listed = self._lists.get(resource.path(namespace)) or self._lists.get(resource.path(None))
        if listed is None or not listed.version or (namespace, name) in listed.names:
            return False
        return _version(raw) <= int(listed.version)


class InformerCache(Generic[_Key]):
    """The objects of one type by name and by an index, which `key_of` computes from an object."""

    def __init__(self, key_of: Callable[[Raw], _Key]) -> None:
        self._key_of = key_of
        self._objects: dict[Name, Raw] = {}
        self._index: defaultdict[_Key, dict[Name, Raw]] = defaultdict(dict)
        self._deleted: dict[Name, int] = {}
        """The versions of the last deletions, oldest first."""

    def observe(self, raw: Raw, *, deleted: bool = False) -> bool:
        """Stores an object or its deletion. Returns whether that changed the cache.

        An older version than the one in the cache, or than the deletion, changes nothing. The watch event of an own
        write may come before the answer or after it.
        """
        name = name_of(raw)
        known = self._objects.get(name)
        if known is not None and _version(raw) < _version(known):
            return False
        if not deleted and _version(raw) <= self._deleted.get(name, 0):
            return False
        self.remove(name)
        if deleted:
            self._remember_deletion(name, _version(raw))
        else:
            # An object of the same version is replaced, too: kopf keeps it, and one copy is enough.
            self._objects[name] = self._index[self._key_of(raw)][name] = raw
        return deleted or known is None or _version(raw) > _version(known)

    def _remember_deletion(self, name: Name, version: int) -> None:
        self._deleted.pop(name, None)
        self._deleted[name] = version
        if len(self._deleted) > _REMEMBERED_DELETIONS:
            del self._deleted[next(iter(self._deleted))]

    def remove(self, name: Name) -> None:
        """Removes an object, if it is in the cache."""
        known = self._objects.pop(name, None)
        if known is not None:
            indexed = self._index[key := self._key_of(known)]
            del indexed[name]
            if not indexed:
                del self._index[key]

    def get(self, name: Name) -> Raw | None:
        """Returns an object, or None."""
        return self._objects.get(name)

    def by_index(self, key: _Key) -> tuple[Raw, ...]:
        """Returns the objects of one key of the index, sorted by name."""
        found = self._index.get(key, {})
        return tuple(found[name] for name in sorted(found))

    def list(self) -> Iterable[Raw]:
        """Returns all objects."""
        return self._objects.values()

    def names(self) -> tuple[Name, ...]:
        """Returns the names of all objects."""
        return tuple(self._objects)


def _version(raw: Raw) -> int:
    """Resource versions of one type are ordered: https://www.kubernetes.dev/resources/keps/5504/."""
    return int(raw["metadata"]["resourceVersion"])
