"""A watch goes on after every fault, and a list of many pages is one list."""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest

from tierbench.api.file_transfer import FileTransferBenchmark
from tierbench.kube import watch as watching
from tierbench.kube.client import ApiError, Kube
from tierbench.kube.news import Changed, Listed, News, Trouble

Raw = dict[str, Any]
KIND = FileTransferBenchmark.KIND


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
        lines = [json.dumps(line).encode() for line in self.answers.pop(0)]

        async def read() -> bytes:
            return b"".join(lines)

        async def content() -> AsyncIterator[bytes]:
            for line in lines:
                yield line

        response = SimpleNamespace(status=200, headers={}, read=read, content=content(), close=self._close)
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
        [{"type": "ADDED", "object": item("c", 8)}],
        [{"type": "DELETED", "object": item("a", 9)}, gone],
        page(12, "c"),
    )
    heard: list[News] = []
    async with aclosing(watching.watch(Kube(client), KIND, "default", {"labelSelector": "l=1"})) as news:
        while len(heard) < 5:
            heard.append(await anext(news))
    listed, added, deleted, trouble, again = heard
    assert listed == Listed(KIND.kind, (item("a"), item("b")))
    assert added == Changed(KIND.kind, item("c", 8), deleted=False)
    assert deleted == Changed(KIND.kind, item("a", 9), deleted=True)
    assert isinstance(trouble, Trouble)
    assert isinstance(trouble.error, ApiError)
    assert (trouble.error.status, trouble.error.reason) == (410, "Expired")
    assert again == Listed(KIND.kind, (item("c"),))
    assert all(query["labelSelector"] == "l=1" for query in client.queries)
    assert [query.get("continue") for query in islice(client.queries, 2)] == [None, "more"]
    assert [query.get("resourceVersion") for query in client.queries] == [None, None, "7", "8", None]
    assert client.closed == 2
