"""The client reports each answer, describes errors and streams logs."""

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from socket import gaierror
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientConnectorCertificateError, ClientConnectorDNSError, ClientConnectorError, InvalidURL

from tierbench.kube.client import Kube
from tierbench.kube.errors import ApiError, describe_error
from tierbench.kube.resources import NODES

CONNECTION: Any = SimpleNamespace(host="h", port=1, is_ssl=True, ssl=True)


class Server:
    """Replaces the client of kubernetes: answers every request with one status."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.headers: dict[str, str] = {}

    async def param_serialize(self, *arguments: Any, **_: Any) -> tuple[Any, ...]:
        return arguments

    async def call_api(self, *_: Any, **__: Any) -> Any:
        async def read() -> bytes:
            return json.dumps({"reason": "So", "message": "So."}).encode()

        return SimpleNamespace(response=SimpleNamespace(status=self.status, read=read, headers=self.headers))


class Log(Server):
    """The same for a log of these pieces."""

    def __init__(self, status: int, pieces: list[bytes]) -> None:
        super().__init__(status)
        self.pieces = pieces
        self.closed = False

    async def call_api(self, *_: Any, **__: Any) -> Any:
        answer = await super().call_api()
        answer.response.content = SimpleNamespace(iter_any=self._iterate)
        answer.response.close = self._close
        return answer

    async def _iterate(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece

    def _close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("status", [200, 404, 503])
async def test_every_answer_is_counted(status: int) -> None:
    answers: list[tuple[str, int]] = []
    client: Any = Server(status)
    kube = Kube(client, lambda method, code: answers.append((method, code)))
    try:
        await kube.get(NODES, None, "n")
    except ApiError as error:
        assert error.status == status
    assert answers == [("GET", status)]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ApiError(503, "ServiceUnavailable", "later"), "503 Service Unavailable"),
        (ApiError(799, "Odd", ""), "799 Odd"),
        (ConnectionResetError(104, "text of Python"), "Connection reset by peer"),
        (ClientConnectorError(CONNECTION, OSError(111, "Connect call failed ('::1', 1)")), "Connection refused"),
        (ClientConnectorDNSError(CONNECTION, gaierror(-2, "Name not known")), "[Errno -2] Name not known"),
        (ClientConnectorCertificateError(CONNECTION, ssl.SSLError(1, "self-signed")), "self-signed"),
        (InvalidURL("nonsense/apis"), "this is no URL"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_a_failure_is_described_in_a_few_words(error: Exception, reason: str) -> None:
    assert reason in describe_error(error)
    assert "\n" not in describe_error(error)


@pytest.mark.parametrize(("status", "follow"), [(200, True), (200, False), (404, True)])
async def test_a_log_comes_in_pieces_and_its_answer_is_closed(status: int, follow: bool) -> None:
    client: Any = Log(status, [b"a", b"b\n"])
    pieces = []
    try:
        async with aclosing(Kube(client).log("default", "pod", "client", follow=follow)) as log:
            async for piece in log:
                pieces.append(piece)
    except ApiError as error:
        assert error.status == status == 404
    assert pieces == ([b"a", b"b\n"] if status == 200 else [])
    assert client.closed


async def test_the_time_is_the_api_servers() -> None:
    client: Any = Server(200)
    hour = timedelta(hours=1)
    client.headers["Date"] = format_datetime(datetime.now(UTC) + hour, usegmt=True)
    kube = Kube(client)
    await kube.get(NODES, None, "n")
    assert abs(kube.now() - datetime.now(UTC) - hour) < timedelta(minutes=1)
