"""A watch goes on after every fault, and a list of many pages is one list."""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest

from tierbench.kube import watch as watching
from tierbench.kube.client import PODS, Kube
from tierbench.kube.news import Changed, Listed, News

Raw = dict[str, Any]


class Server:
    """Stands for kubernetes' own client: gives one answer after the other, each a list of lines."""

    def __init__(self, *answers: list[Raw]) -> None:
        self.answers = list(answers)
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
        response = SimpleNamespace(status=200, headers={}, read=read, content=content, close=self._close)
        return SimpleNamespace(response=response)

    def _close(self) -> None:
        self.closed += 1


def item(name: str, version: int = 1) -> Raw:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


def page(version: int, *names: str, following: str = "") -> list[Raw]:
    return [{"metadata": {"resourceVersion": str(version), "continue": following}, "items": [item(n) for n in names]}]


async def test_what_was_missed_comes_with_the_next_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_PAUSE_SECONDS", 0)
    gone = {"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}}
    client: Any = Server(
        page(7, "a", following="more"),
        page(7, "b"),
        [{"type": "ADDED", "object": item("c", 5)}, {"type": "BOOKMARK", "object": item("", 8)}],
        [{"type": "DELETED", "object": item("a", 9)}, gone],
        page(12, "c"),
    )
    heard: list[News] = []
    async with aclosing(watching.watch(Kube(client), PODS, "default", {"labelSelector": "l=1"})) as news:
        while len(heard) < 7:
            heard.append(await anext(news))
    assert heard == [
        Changed(PODS, item("a"), deleted=False),
        Changed(PODS, item("b"), deleted=False),
        Listed(PODS, frozenset({("", "a"), ("", "b")}), "7"),
        Changed(PODS, item("c", 5), deleted=False),
        Changed(PODS, item("a", 9), deleted=True),
        Changed(PODS, item("c"), deleted=False),
        Listed(PODS, frozenset({("", "c")}), "12"),
    ]
    assert all(query["labelSelector"] == "l=1" for query in client.queries)
    assert [query.get("continue") for query in islice(client.queries, 2)] == [None, "more"]
    assert [query.get("resourceVersion") for query in client.queries] == [None, None, "7", "8", None]
    assert client.closed == 2
