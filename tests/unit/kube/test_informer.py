"""A watch continues after each error, a list of several pages is one list, and the cache keeps the newest objects."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from tierbench.kube import informer as watching
from tierbench.kube.client import Kube
from tierbench.kube.informer import (
    Informer,
    InformerCache,
    InitialListSynced,
    ListObserver,
    Update,
    WatchEvent,
)
from tierbench.kube.resources import PODS

Raw = dict[str, Any]


class Server:
    """Replaces the client of kubernetes: gives one answer after the other, each a list of lines."""

    def __init__(self, *answers: list[Raw], statuses: Mapping[int, int] | None = None) -> None:
        self.answers = list(answers)
        self.statuses = statuses or {}
        """The HTTP statuses of answers other than 200, by their number from 0."""
        self.queries: list[dict[str, str]] = []
        self.closed = 0

    async def param_serialize(self, method: str, path: str, query_params: Any, **_: Any) -> tuple[Any, ...]:
        self.queries.append(dict(query_params))
        return method, path

    async def call_api(self, *_: Any, **__: Any) -> Any:
        data = b"".join(json.dumps(line).encode() + b"\n" for line in self.answers.pop(0))

        async def read() -> bytes:
            return data

        async def pieces() -> AsyncIterator[bytes]:
            for at in range(0, len(data), 7):
                yield data[at : at + 7]

        content = SimpleNamespace(iter_any=pieces)
        status = self.statuses.get(len(self.queries) - 1, 200)
        response = SimpleNamespace(status=status, headers={}, read=read, content=content, close=self._close)
        return SimpleNamespace(response=response)

    def _close(self) -> None:
        self.closed += 1


def item(name: str, version: int = 1) -> Raw:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


def page(version: int, *names: str, following: str = "") -> list[Raw]:
    return [{"metadata": {"resourceVersion": str(version), "continue": following}, "items": [item(n) for n in names]}]


async def test_what_was_missed_comes_with_the_next_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_BACKOFF_SECONDS", 0)
    gone = {"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}}
    client: Any = Server(
        page(7, "a", following="more"),
        page(7, "b"),
        [{"type": "ADDED", "object": item("c", 5)}, {"type": "BOOKMARK", "object": item("", 8)}],
        [{"type": "DELETED", "object": item("a", 9)}, gone],
        page(12, "c"),
    )
    updates: list[Update] = []
    async with aclosing(watching.list_and_watch(Kube(client), PODS, "default", {"labelSelector": "l=1"})) as feed:
        while len(updates) < 7:
            updates.append(await anext(feed))
    assert updates == [
        WatchEvent(PODS, item("a"), deleted=False),
        WatchEvent(PODS, item("b"), deleted=False),
        InitialListSynced(PODS, frozenset({("", "a"), ("", "b")}), "7"),
        WatchEvent(PODS, item("c", 5), deleted=False),
        WatchEvent(PODS, item("a", 9), deleted=True),
        WatchEvent(PODS, item("c"), deleted=False),
        InitialListSynced(PODS, frozenset({("", "c")}), "12"),
    ]
    assert all(query["labelSelector"] == "l=1" for query in client.queries)
    assert [query.get("continue") for query in islice(client.queries, 2)] == [None, "more"]
    assert [query.get("resourceVersion") for query in client.queries] == [None, None, "7", "8", None]
    assert client.closed == 2


async def test_a_watch_resumes_after_an_error_and_a_list_that_failed_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watching, "_BACKOFF_SECONDS", 0)
    failure = {"code": 500, "reason": "InternalError", "message": "etcd"}
    client: Any = Server(
        page(7, "a", following="more"),
        [{"code": 410, "reason": "Expired", "message": "the list took too long"}],
        page(9, "b"),
        [{"type": "MODIFIED", "object": item("b", 10)}, {"type": "ERROR", "object": failure}],
        [failure],
        [{"type": "MODIFIED", "object": item("b", 11)}],
        statuses={1: 410, 4: 500},
    )
    updates: list[Update] = []
    async with aclosing(watching.list_and_watch(Kube(client), PODS, "default", {})) as feed:
        while len(updates) < 9:
            updates.append(await anext(feed))
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
    assert updates[3] == InitialListSynced(PODS, frozenset({("", "b")}), "9"), "not of the list that failed"
    assert [query.get("resourceVersion") for query in client.queries] == [None, None, None, "9", "10", "10"]


def test_the_pause_after_errors_grows_to_a_limit() -> None:
    pauses = [watching._backoff(errors) for errors in (0, 1, 2, 3, 1000)]
    for pause, longest in zip(pauses, (1, 2, 4, 8, 8), strict=True):
        assert longest / 2 <= pause <= longest


def test_the_lists_of_another_client_are_handled_a_page_at_a_time() -> None:
    known = {("ns", "old"), ("ns", "odd"), ("other", "old")}
    handled: list[tuple[str, bool]] = []

    def handle(raw: Mapping[str, Any], *, deleted: bool) -> None:
        if raw["metadata"]["name"] == "odd":
            raise ZeroDivisionError
        handled.append((raw["metadata"]["name"], deleted))

    lists = ListObserver([Informer(PODS, handle, lambda: known, ("ns", "lab"))], "/proxy/")
    url = URL("https://h/proxy/api/v1/namespaces/ns/pods?limit=2")

    def listed(name: str) -> Raw:
        return {"metadata": {"namespace": "ns", "name": name, "resourceVersion": "5"}}

    lists.observe(url, {"metadata": {"resourceVersion": "7", "continue": "x"}, "items": [listed("a"), listed("odd")]})
    assert handled == [("a", False)]
    assert not lists.is_outdated(PODS, listed("old")), "the list is not complete"
    last = {"metadata": {"resourceVersion": "7", "continue": ""}, "items": [listed("b")]}
    lists.observe(url.update_query({"continue": "x"}), last)
    assert handled == [("a", False), ("b", False), ("old", True)]
    assert [lists.is_outdated(PODS, listed(name)) for name in ("a", "odd", "old")] == [False, False, True]
    assert not lists.is_outdated(PODS, {"metadata": {"namespace": "ns", "name": "new", "resourceVersion": "8"}})
    assert not lists.synced.is_set()
    empty = {"metadata": {"resourceVersion": "8"}, "items": None}
    lists.observe(URL("https://h/proxy/api/v1/namespaces/lab/pods"), empty)
    lists.observe(URL("https://h/proxy/api/v1"), {"resources": []})
    assert lists.synced.is_set()


def test_a_list_that_is_broken_off_does_not_count() -> None:
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
    return {"metadata": {**metadata, "managedFields": [{}]}, **more}


def test_objects_are_found_by_their_index() -> None:
    cache = InformerCache(label)
    assert cache.observe(cached(2, "b"))
    assert cache.observe(cached(1, "a"))
    assert [raw["metadata"]["name"] for raw in cache.by_index("demo")] == ["a", "b"]
    assert "managedFields" not in cache.by_index("demo")[0]["metadata"]
    cache.remove(("ns", "a"))
    cache.remove(("ns", "a"))
    assert cache.names() == (("ns", "b"),)
    assert cache.by_index("other") == ()


def test_a_later_watch_event_does_not_undo_an_own_write() -> None:
    cache = InformerCache(label)
    cache.observe(cached(7, says="written"))
    assert not cache.observe(cached(6, says="before"))
    assert not cache.observe(cached(7, says="written")), "nothing has changed"
    assert not cache.observe(cached(5), deleted=True), "of its predecessor"
    assert cache.by_index("demo")[0]["says"] == "written"
    assert cache.observe(cached(8), deleted=True)
    assert cache.names() == ()


@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), max_size=12), st.randoms())
def test_events_that_arrive_twice_and_late_leave_the_same_objects(history: list[tuple[str, bool]], random: Any) -> None:
    """Answers come before the watch event of the same write. Watch events come in order."""
    versions = [(version, name, gone) for version, (name, gone) in enumerate(history, 1)]
    watched, cache = InformerCache(label), InformerCache(label)
    for version, name, gone in versions:
        watched.observe(cached(version, name), deleted=gone)
    late = iter(versions)
    for version, name, gone in versions:
        if not gone:
            cache.observe(cached(version, name))
        if random.random() < 0.5:
            event = next(late)
            cache.observe(cached(*event[:2]), deleted=event[2])
    for version, name, gone in late:
        cache.observe(cached(version, name), deleted=gone)
    assert cache.by_index("demo") == watched.by_index("demo")
