"""A session in which another client talks to the API server."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import aiohttp
from aiohttp import ClientHandlerType, ClientMiddlewareType, ClientRequest, ClientResponse
from yarl import URL

from tierbench.kube.client import FIELD_MANAGER, Answered
from tierbench.kube.connect import abortive_socket

_REQUESTS_AT_ONCE: Final = 16
_WATCHING: Final = "watch"
_UNAUTHORIZED: Final = 401
_LOGIN_SECONDS: Final = 1.0

OnPage = Callable[[URL, Mapping[str, Any]], None]
"""Receives a page of a list, and the URL that it was read from."""


def open_session(
    ssl_context: ssl.SSLContext | bool,
    authorization: Callable[[], Awaitable[str | None]],
    may_write: Callable[[], None],
    answered: Answered,
    on_page: OnPage,
) -> aiohttp.ClientSession:
    """Returns a session of a client that watches types and writes objects.

    Each request carries what `authorization` returns. `may_write` raises LeadershipLostError while nothing may be
    written. `answered` is called with the method and status of each answer, `on_page` with each page of a list.
    """
    return aiohttp.ClientSession(
        # A connection that is closed drops what it has not sent yet: it may be a write.
        connector=aiohttp.TCPConnector(limit=0, ssl=ssl_context, socket_factory=abortive_socket),
        headers={"User-Agent": FIELD_MANAGER},  # the API server takes the field manager from it
        middlewares=(_authorize(authorization), _report_lists(on_page), _guard(may_write, answered)),
    )


def _authorize(authorization: Callable[[], Awaitable[str | None]]) -> ClientMiddlewareType:
    async def authorize(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
        value = await authorization()
        if value is not None:
            request.headers["Authorization"] = value
        response = await send(request)
        if response.status == _UNAUTHORIZED:  # the client logs in again at once
            await asyncio.sleep(_LOGIN_SECONDS)
        return response

    return authorize


def _report_lists(on_page: OnPage) -> ClientMiddlewareType:
    """Reports lists, because a client may pass on what a list has, and not what it has no more."""

    async def report(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
        response = await send(request)
        if request.method == "GET" and response.ok and _WATCHING not in request.url.query:
            on_page(request.url, await response.json())  # the client reads the same bytes from the response again
        return response

    return report


def _guard(may_write: Callable[[], None], answered: Answered) -> ClientMiddlewareType:
    # A TLS connection needs 300 KiB: a thousand finalizers that are written at once must share a few.
    free = asyncio.Semaphore(_REQUESTS_AT_ONCE)

    async def guard(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
        if _WATCHING in request.url.query:
            response = await send(request)
        else:
            async with free:
                if request.method != "GET":
                    may_write()
                response = await send(request)
        answered(request.method, response.status)
        return response

    return guard
