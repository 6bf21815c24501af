"""A watch continues after each error, a list of several pages is one list, and the cache keeps the newest objects."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from tests.unit.apiserver.client import InProcessKube
from tests.unit.apiserver.server import ApiServer, Request
from tierbench.kube import informer as watching
from tierbench.kube.client import ApiError
from tierbench.kube.informer import (
    HistoryLostError,
    Informer,
    InformerCache,
    InitialListSynced,
    ListObserver,
    Update,
    WatchEvent,
)
from tierbench.kube.meta import JOBS, PODS, ResourceType

Raw = dict[str, Any]


def put(api: ApiServer, name: str) -> Raw:
    return api.put(PODS, {"metadata": {"name": name, "labels": {"l": "1"}}})


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> ApiServer:
    """An API server with pods a and b, whose pages have one object."""
    monkeypatch.setattr(watching, "_BACKOFF_SECONDS", 0)
    api = ApiServer()
    api.page = 1
    put(api, "a")
    put(api, "b")
    return api


def versions(api: ApiServer) -> list[str | None]:
    """Returns the resourceVersion of each request."""
    return [request.query.get("resourceVersion") for request in api.requests]


async def test_events_that_a_watch_missed_follow_from_the_next_list(api: ApiServer) -> None:
    a, b = api.matching(PODS.path("default"))
    feed = watching.list_and_watch(InProcessKube(api), PODS, "default", {"labelSelector": "l=1"})
    async with asyncio.timeout(60), aclosing(feed) as updates:
        assert [await anext(updates) for _ in range(3)] == [
            WatchEvent(PODS, a, deleted=False),
            WatchEvent(PODS, b, deleted=False),
            InitialListSynced(PODS, frozenset({("default", "a"), ("default", "b")}), "3"),
        ]
        added = asyncio.create_task(anext(updates))
        await api.until(lambda: api.requests[-1].is_watch)
        c = put(api, "c")
        assert await added == WatchEvent(PODS, c, deleted=False)
        api.bookmark()
        api.end_watches()
        api.delete(PODS, "a")
        deleted = await anext(updates)
        assert isinstance(deleted, WatchEvent)
        assert (deleted.item["metadata"]["name"], deleted.deleted) == ("a", True)
        api.interrupt_watches()
        api.delete(PODS, "b")
        api.resume_watches(expired=True)
        assert [await anext(updates) for _ in range(2)] == [
            WatchEvent(PODS, c, deleted=False),
            InitialListSynced(PODS, frozenset({("default", "c")}), "7"),
        ]
    assert all(request.query["labelSelector"] == "l=1" for request in api.requests)
    assert ["continue" in request.query for request in api.requests][:2] == [False, True]
    assert versions(api) == [None, None, "3", "5", "6", None], "the second watch starts at the bookmark"
    assert api.open_streams == 0


async def test_watch_resumes_after_an_error_and_a_failed_list_is_repeated(api: ApiServer) -> None:
    errors = {2: ApiError(410, "Expired", "the list took too long"), 5: ApiError(500, "InternalError", "etcd")}

    async def fail(_: Request) -> None:
        if error := errors.get(len(api.requests)):
            api.objects.pop(PODS.path("default", "a"), None)
            raise error

    api.reactor = fail
    updates: list[Update] = []
    async with (
        asyncio.timeout(60),
        aclosing(watching.list_and_watch(InProcessKube(api), PODS, "default", {})) as feed,
    ):
        updates += [await anext(feed) for _ in range(4)]
        changed = asyncio.create_task(anext(feed))
        await api.until(lambda: api.requests[-1].is_watch)
        api.change(PODS, "b", spec={"nodeName": "n"})
        api.end_watches(ApiError(500, "InternalError", "etcd"))
        updates.append(await changed)
        updates += [await anext(feed) for _ in range(2)]
        changed = asyncio.create_task(anext(feed))
        api.change(PODS, "b", spec={"nodeName": "m"})
        updates += [await changed, await anext(feed)]
    assert [type(update).__name__ for update in updates] == [
        "WatchEvent",
        "WatchError",
        "WatchEvent",
        "InitialListSynced",
        "WatchEvent",
        "WatchError",
        "WatchError",
        "WatchResumed",
        "WatchEvent",
    ]
    assert updates[3] == InitialListSynced(PODS, frozenset({("default", "b")}), "3"), "the failed list does not count"
    assert versions(api) == [None, None, None, "3", "4", "4"]


async def test_lists_whose_watches_fail_at_once_are_repeated_after_growing_pauses(
    api: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An overloaded API server must not list all objects after each watch that it cannot serve."""
    pauses: list[int] = []

    def backoff(errors: int) -> float:
        pauses.append(errors)
        return 0

    async def fail(request: Request) -> None:
        if request.is_watch:
            raise ApiError(504, "Timeout", "overloaded")

    monkeypatch.setattr(watching, "_backoff", backoff)
    api.reactor = fail
    names: list[str] = []
    async with (
        asyncio.timeout(60),
        aclosing(watching.list_and_watch(InProcessKube(api), PODS, "default", {})) as feed,
    ):
        while names.count("InitialListSynced") < 4:
            names.append(type(await anext(feed)).__name__)
    lists = [name for name in names if name != "WatchEvent"]
    assert lists == ["InitialListSynced", "InitialListSynced", *["WatchError", "InitialListSynced"] * 2]
    assert pauses == [1, 2]


async def test_watches_that_end_as_soon_as_they_are_open_are_repeated_after_growing_pauses(
    api: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[int] = []

    def backoff(errors: int) -> float:
        pauses.append(errors)
        return 0

    async def end(_: Request) -> None:
        if len(api.requests) < 6:
            asyncio.get_running_loop().call_soon(api.end_watches)

    monkeypatch.setattr(watching, "_backoff", backoff)
    api.reactor = end
    async with (
        asyncio.timeout(60),
        aclosing(watching.list_and_watch(InProcessKube(api), PODS, "default", {})) as feed,
    ):
        assert [type(await anext(feed)).__name__ for _ in range(3)][-1] == "InitialListSynced"
        changed = asyncio.create_task(anext(feed))
        await api.until(lambda: len(api.requests) == 6)
        api.change(PODS, "b", spec={"nodeName": "n"})
        assert isinstance(await changed, WatchEvent)
    assert pauses == [0, 1, 2]


def test_backoff_grows_to_a_limit() -> None:
    pauses = [watching._backoff(errors) for errors in (0, 1, 2, 3, 1000)]
    for pause, longest in zip(pauses, (1, 2, 4, 8, 8), strict=True):
        assert longest / 2 <= pause <= longest


def test_lists_of_another_client_are_handled_page_by_page() -> None:
    known = {("ns", "old"), ("ns", "invalid"), ("other", "old")}
    handled: list[tuple[str, bool]] = []

    def handle(raw: Mapping[str, Any], *, deleted: bool) -> None:
        if raw["metadata"]["name"] == "invalid":
            raise ZeroDivisionError
        handled.append((raw["metadata"]["name"], deleted))

    lists = ListObserver([Informer(PODS, handle, lambda: known, ("ns", "lab"))], "/proxy/")
    url = URL("https://h/proxy/api/v1/namespaces/ns/pods?limit=2")

    def listed(name: str) -> Raw:
        return {"metadata": {"namespace": "ns", "name": name, "resourceVersion": "5"}}

    lists.observe(
        url, {"metadata": {"resourceVersion": "7", "continue": "x"}, "items": [listed("a"), listed("invalid")]}
    )
    assert handled == [("a", False)]
    assert not lists.is_outdated(PODS, listed("old")), "the list is not complete"
    last = {"metadata": {"resourceVersion": "7", "continue": ""}, "items": [listed("b")]}
    lists.observe(url.update_query({"continue": "x"}), last)
    assert handled == [("a", False), ("b", False), ("old", True)]
    assert [lists.is_outdated(PODS, listed(name)) for name in ("a", "invalid", "old")] == [False, False, True]
    assert not lists.is_outdated(PODS, {"metadata": {"namespace": "ns", "name": "new", "resourceVersion": "8"}})
    assert not lists.synced.is_set()
    empty = {"metadata": {"resourceVersion": "8"}, "items": None}
    lists.observe(URL("https://h/proxy/api/v1/namespaces/lab/pods"), empty)
    assert lists.synced.is_set()
    assert not lists.observes(URL("https://h/proxy/api/v1"))


def observer(admit: Callable[[Mapping[str, Any]], Any], *resources: ResourceType) -> tuple[ListObserver, list[str]]:
    """Returns an observer of these types, and the names of the objects that it handles."""
    handled: list[str] = []

    def handle(raw: Mapping[str, Any], *, deleted: bool) -> None:
        handled.append(raw["metadata"]["name"])

    return ListObserver([Informer(one, handle, tuple, (None,), admit=admit) for one in resources], ""), handled


def test_other_client_gets_only_the_version_of_an_object_that_is_not_admitted() -> None:
    """The client needs the version, because it resumes there."""

    def admit(raw: Mapping[str, Any]) -> Any:
        return None if raw["metadata"]["name"] == "foreign" else {"metadata": raw["metadata"]}

    lists, handled = observer(admit, PODS)
    url = URL("https://h/api/v1/pods")
    page = lists.observe(
        url, {"metadata": {"resourceVersion": "3"}, "items": [cached(1, "foreign"), cached(2, spec=1)]}
    )
    assert [sorted(item) for item in page["items"]] == [["metadata"]]
    assert handled == ["one"]
    assert lists.is_outdated(PODS, cached(1, "foreign"))
    event = lists.reduce(url, {"type": "MODIFIED", "object": cached(5, "foreign")})
    assert event == {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "5"}}}
    assert sorted(lists.reduce(url, {"type": "ADDED", "object": cached(6, spec=1)})["object"]) == ["metadata"]
    error = {"type": "ERROR", "object": {"code": 410}}
    assert lists.reduce(url, error) == error


def test_invalid_object_is_not_kept() -> None:
    def admit(raw: Mapping[str, Any]) -> Any:
        raise KeyError("labels")

    lists, handled = observer(admit, PODS)
    url = URL("https://h/api/v1/pods")
    assert lists.observe(url, {"metadata": {"resourceVersion": "3"}, "items": [cached(1)]})["items"] == []
    assert lists.reduce(url, {"type": "ADDED", "object": cached(6)})["type"] == "BOOKMARK"
    assert handled == []


async def test_types_are_listed_in_the_order_of_the_informers() -> None:
    """An object is admitted only if its owner is known."""
    lists, _ = observer(lambda raw: raw, JOBS, PODS)
    jobs, pods = URL("https://h/apis/batch/v1/jobs"), URL("https://h/api/v1/pods")
    waiting = asyncio.create_task(lists.wait_for_turn(pods))
    await lists.wait_for_turn(jobs)
    assert not waiting.done()
    lists.observe(jobs, {"metadata": {"resourceVersion": "3", "continue": "x"}, "items": []})
    await asyncio.sleep(0)
    assert not waiting.done(), "the list is not complete"
    lists.observe(jobs.update_query({"continue": "x"}), {"metadata": {"resourceVersion": "3"}, "items": []})
    await waiting


def test_list_of_an_earlier_state_ends_the_process() -> None:
    """A restored backup has lower versions, so each cached object would count as newer."""
    lists, _ = observer(lambda raw: raw, PODS)
    url = URL("https://h/api/v1/pods")
    lists.observe(url, {"metadata": {"resourceVersion": "3"}, "items": []})
    lists.reduce(url, {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}})
    with pytest.raises(HistoryLostError, match="pods are at version 8, and were at 9"):
        lists.observe(url, {"metadata": {"resourceVersion": "8"}, "items": []})


async def test_reflector_that_lists_an_earlier_state_ends(api: ApiServer) -> None:
    feed = watching.list_and_watch(InProcessKube(api), PODS, "default", {})
    async with asyncio.timeout(60), aclosing(feed) as updates:
        for _ in range(3):
            await anext(updates)
        ended = asyncio.create_task(anext(updates))
        await api.until(lambda: api.requests[-1].is_watch)
        api.restore(version=1)
        with pytest.raises(HistoryLostError):
            await ended


def test_incomplete_list_deletes_nothing() -> None:
    known, gone = {("ns", "a"), ("ns", "b")}, list[str]()

    def handle(raw: Mapping[str, Any], *, deleted: bool) -> None:
        if deleted:
            gone.append(raw["metadata"]["name"])

    lists = ListObserver([Informer(PODS, handle, lambda: known, (None,))], "")
    url = URL("https://h/api/v1/pods?limit=1")
    first = {"metadata": {"resourceVersion": "7", "continue": "x"}, "items": [cached(1, "a")]}
    lists.observe(url, first)
    lists.observe(url, {"metadata": {"resourceVersion": "9"}, "items": [cached(1, "b")]})
    assert gone == ["a"]


def label(raw: Mapping[str, Any]) -> str:
    found: str = raw["metadata"]["labels"]["benchmark"]
    return found


def cached(version: int, name: str = "one", **more: Any) -> Raw:
    metadata = {"namespace": "ns", "name": name, "resourceVersion": str(version), "labels": {"benchmark": "demo"}}
    return {"metadata": metadata, **more}


def test_objects_are_found_by_their_index() -> None:
    cache = InformerCache(label)
    assert cache.observe(cached(2, "b"))
    assert cache.observe(cached(1, "a"))
    assert [raw["metadata"]["name"] for raw in cache.by_index("demo")] == ["a", "b"]
    cache.remove(("ns", "a"))
    cache.remove(("ns", "a"))
    assert cache.names() == (("ns", "b"),)
    assert cache.by_index("other") == ()


def test_older_watch_event_does_not_replace_an_own_write() -> None:
    cache = InformerCache(label)
    cache.observe(cached(7, says="written"))
    assert not cache.observe(cached(6, says="before"))
    assert not cache.observe(cached(7, says="written")), "nothing has changed"
    assert not cache.observe(cached(5), deleted=True), "the deletion of an earlier object"
    assert cache.by_index("demo")[0]["says"] == "written"
    assert cache.observe(cached(8), deleted=True)
    assert cache.names() == ()


def test_late_answer_does_not_restore_a_deleted_object() -> None:
    """The answer to a delete is an object that a finalizer or a grace period still keeps."""
    cache = InformerCache(label)
    cache.observe(cached(6))
    cache.observe(cached(8), deleted=True)
    assert not cache.observe(cached(7, says="terminating"))
    assert cache.names() == ()
    assert cache.observe(cached(9, says="created again"))


def test_cache_remembers_a_bounded_number_of_deletions() -> None:
    cache = InformerCache(label)
    for version in range(1, 3000):
        cache.observe(cached(version, f"object-{version}"), deleted=True)
    assert len(vars(cache)["_deleted"]) == 1000


@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), max_size=12), st.randoms())
def test_repeated_and_late_events_result_in_the_same_objects(history: list[tuple[str, bool]], random: Any) -> None:
    """An answer may precede or follow the watch event of its write. Watch events arrive in order."""
    versions = [(version, name, gone) for version, (name, gone) in enumerate(history, 1)]
    watched, cache = InformerCache(label), InformerCache(label)
    for version, name, gone in versions:
        watched.observe(cached(version, name), deleted=gone)
    late, unanswered = list(versions), list(versions)
    while late or unanswered:
        if random.random() < 0.5 and late:
            version, name, gone = late.pop(0)
            cache.observe(cached(version, name), deleted=gone)
        elif unanswered:
            version, name, gone = unanswered.pop(0)
            if not gone:
                cache.observe(cached(version, name))
    assert cache.by_index("demo") == watched.by_index("demo")
