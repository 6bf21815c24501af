"""What is known and not there is forgotten, and only that."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.controller.api import Api
from tierbench.controller import comparison as module
from tierbench.controller.comparison import Comparison, Watched
from tierbench.kube.client import ADVICES, NODES, ApiError
from tierbench.metrics.operator import OperatorMetrics


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SETTLE_SECONDS", 0)
    monkeypatch.setattr(module, "PERIOD_SECONDS", 0.01)


class Known:
    """What watches have told of, by namespace and name."""

    def __init__(self, *names: tuple[str, str]) -> None:
        self.names = set(names)
        self.changed = asyncio.Event()

    def see(self, raw: Mapping[str, Any], *, deleted: bool) -> None:
        assert deleted
        self.names.remove((raw["metadata"]["namespace"], raw["metadata"]["name"]))
        self.changed.set()


async def test_what_is_gone_is_forgotten_though_another_type_cannot_be_read() -> None:
    api = Api()
    api.put("/api/v1/nodes", {"metadata": {"name": "stays"}})
    advices = ADVICES.path("a")
    api.put(advices, {"metadata": {"name": "stays", "namespace": "a"}})
    api.refuse["GET", "/nodes"] = ApiError(503, "ServiceUnavailable", "away")
    nodes = Known(("", "stays"), ("", "removed"))
    told = Known(("a", "stays"), ("a", "removed"))
    types = (
        Watched(NODES, nodes.see, lambda: nodes.names, of_the_cluster=True),
        Watched(ADVICES, told.see, lambda: told.names),
    )
    comparing = asyncio.create_task(Comparison(api, OperatorMetrics(), ("a",), types).run())
    async with asyncio.timeout(5):
        await told.changed.wait()
        assert nodes.names == {("", "stays"), ("", "removed")}
        api.refuse.clear()
        await nodes.changed.wait()
    comparing.cancel()
    assert (nodes.names, told.names) == ({("", "stays")}, {("a", "stays")})
