"""What the connection to the API server tells of its requests."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any

import pytest

from tierbench.kube.client import NODES, ApiError, Kube


class Server:
    """Stands for kubernetes' own client: answers every request with one status."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.headers: dict[str, str] = {}

    async def param_serialize(self, *arguments: Any, **_: Any) -> tuple[Any, ...]:
        return arguments

    async def call_api(self, *_: Any, **__: Any) -> Any:
        async def read() -> bytes:
            return json.dumps({"reason": "So", "message": "So."}).encode()

        return SimpleNamespace(response=SimpleNamespace(status=self.status, read=read, headers=self.headers))


@pytest.mark.parametrize("status", [200, 404, 503])
async def test_every_answer_is_told(status: int) -> None:
    told: list[tuple[str, int]] = []
    client: Any = Server(status)
    kube = Kube(client, lambda method, code: told.append((method, code)))
    try:
        await kube.get(NODES, None, "n")
    except ApiError as error:
        assert error.status == status
    assert told == [("GET", status)]


async def test_the_time_is_the_api_servers() -> None:
    client: Any = Server(200)
    hour = timedelta(hours=1)
    client.headers["Date"] = format_datetime(datetime.now(UTC) + hour, usegmt=True)
    kube = Kube(client)
    await kube.get(NODES, None, "n")
    assert abs(kube.now() - datetime.now(UTC) - hour) < timedelta(seconds=3)
