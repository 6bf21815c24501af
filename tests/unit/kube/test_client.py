"""The client reports each response, describes errors and streams logs."""

import ssl
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from socket import gaierror
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientConnectorCertificateError, ClientConnectorDNSError, ClientConnectorError, InvalidURL

from tests.unit.apiserver.client import InProcessClient, InProcessKube
from tests.unit.apiserver.server import ApiServer
from tierbench.kube.client import ApiError, Kube, NotFoundError, describe_error
from tierbench.kube.meta import NODES, PODS

CONNECTION: Any = SimpleNamespace(host="h", port=1, is_ssl=True, ssl=True)


@pytest.mark.parametrize("status", [200, 404, 503])
async def test_every_response_is_reported(status: int) -> None:
    api, responses = ApiServer(), list[tuple[str, int]]()
    if status != 404:
        api.put(NODES, {"metadata": {"name": "n"}})
    if status == 503:
        api.refuse["GET", "/n"] = ApiError(503, "ServiceUnavailable", "later")
    try:
        await InProcessKube(api, lambda method, code: responses.append((method, code))).get(NODES, None, "n")
    except ApiError as error:
        assert error.status == status
    assert responses == [("GET", status)]


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
def test_failure_is_described_on_one_line(error: Exception, reason: str) -> None:
    assert reason in describe_error(error)
    assert "\n" not in describe_error(error)


@pytest.mark.parametrize(("status", "follow"), [(200, True), (200, False), (404, True)])
async def test_log_is_streamed_and_its_response_is_closed(status: int, follow: bool) -> None:
    api, log = ApiServer(), b""
    api.logs["pod"] = b"several\npieces\n" if status == 200 else NotFoundError(404, "NotFound", "no")
    try:
        async with aclosing(InProcessKube(api).log("default", "pod", "client", follow=follow)) as pieces:
            async for piece in pieces:
                log += piece
    except ApiError as error:
        assert error.status == status == 404
    assert log == (api.logs["pod"] if status == 200 else b"")
    assert api.open_streams == 0


async def test_logs_and_lists_have_a_read_timeout_but_no_total_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a total timeout, each attempt to read a long log over a slow network fails."""
    timeouts: list[Any] = []
    call = InProcessClient.call_api

    async def record(self: InProcessClient, *request: Any, _request_timeout: Any) -> Any:
        timeouts.append(_request_timeout)
        return await call(self, *request)

    monkeypatch.setattr(InProcessClient, "call_api", record)
    api = ApiServer()
    api.logs["p"] = b"line"
    kube = InProcessKube(api)
    async with aclosing(kube.log("default", "p", "client", follow=False)) as pieces:
        assert b"".join([piece async for piece in pieces]) == b"line"
    assert await kube.list(NODES) == []
    assert [(timeout.total, timeout.sock_read) for timeout in timeouts] == [(None, 30)] * 2


async def test_object_is_found_by_a_list() -> None:
    """The operator may list Jobs and advices, but not get them."""
    api = ApiServer()
    for name in ("a", "b"):
        api.put(PODS, {"metadata": {"name": name}})
    found = await InProcessKube(api).find(PODS, "default", "b")
    assert found is not None
    assert found["metadata"]["name"] == "b"
    assert await InProcessKube(api).find(PODS, "default", "c") is None


async def test_time_follows_the_date_header_of_the_api_server() -> None:
    api = ApiServer()
    api.ahead = timedelta(hours=1)
    client: Any = InProcessClient(api)
    kube = Kube(client)
    await kube.list(NODES)
    assert abs(kube.now() - datetime.now(UTC) - api.ahead) < timedelta(minutes=1)
