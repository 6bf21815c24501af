"""A session in which another client, such as kopf, talks to the API server."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import aiohttp
from aiohttp import ClientHandlerType, ClientMiddlewareType, ClientRequest, ClientResponse
from yarl import URL

from tierbench.kube.client import FIELD_MANAGER, Kube

_REQUESTS_AT_ONCE: Final = 16
_WATCH: Final = "watch"
_UNAUTHORIZED: Final = 401
_LOGIN_SECONDS: Final = 1.0

OnPage = Callable[[URL, Mapping[str, Any]], None]
"""Receives a page of a list, and the URL that it was read from."""


def open_session(kube: Kube, on_page: OnPage) -> aiohttp.ClientSession:
    """Opens a session with the login, the fence and the metrics of `kube`. `on_page` gets each page of a list."""
    return aiohttp.ClientSession(
        **kube.connections,
        headers={"User-Agent": FIELD_MANAGER},  # the API server derives the field manager from it
        middlewares=(_authorize(kube), _report_lists(on_page), _guard(kube)),
    )


def _authorize(kube: Kube) -> ClientMiddlewareType:
    async def authorize(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
        value = await kube.authorization()
        if value is not None:
            request.headers["Authorization"] = value
        response = await send(request)
        if response.status == _UNAUTHORIZED:  # the client logs in again at once
            await asyncio.sleep(_LOGIN_SECONDS)
        return response

    return authorize


def _report_lists(on_page: OnPage) -> ClientMiddlewareType:
    async def report(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
        response = await send(request)
        if request.method == "GET" and response.ok and _WATCH not in request.url.query:
            on_page(request.url, await response.json())  # the client reads the same bytes from the response again
        return response

    return report


def _guard(kube: Kube) -> ClientMiddlewareType:
    # A TLS connection takes 300 KiB, so concurrent requests share a few.
    free = asyncio.Semaphore(_REQUESTS_AT_ONCE)

    async def guard(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
        if _WATCH in request.url.query:
            response = await send(request)
        else:
            async with free:
                if request.method != "GET":
                    kube.check_leader()
                response = await send(request)
        kube.on_response(request.method, response.status)
        return response

    return guard
