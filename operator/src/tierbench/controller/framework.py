"""How kopf is set up: its settings, its storages, and the session in which it asks the API server."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import aiohttp
import kopf
from aiohttp import ClientHandlerType, ClientMiddlewareType, ClientRequest, ClientResponse
from yarl import URL

from tierbench.api.model import GROUP
from tierbench.kube.client import FIELD_MANAGER, Answered
from tierbench.kube.connect import abortive_socket

FINALIZER: Final = f"{GROUP}/cleanup"
_PAGE: Final = 100
_REQUESTS_AT_ONCE: Final = 16
_WATCH_SECONDS: Final = 30
_WATCHING: Final = "watch"
_BACKOFF_SECONDS: Final = (0.5, 1.0, 2.0)
_LAST_BACKOFF_SECONDS: Final = 5.0
_UNAUTHORIZED: Final = 401
_LOGIN_SECONDS: Final = 1.0

Page = Callable[[URL, Mapping[str, Any]], None]
"""Takes a page of a list, and the URL that it was read from."""


class _NoDiffBase(kopf.DiffBaseStorage):
    """No handler compares an object with an earlier state, so no state is stored in annotations."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def store(self, **_: Any) -> None:
        pass


class _NoProgress(kopf.ProgressStorage):
    """Handlers retry by themselves, so no progress is stored in annotations."""

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        pass

    def purge(self, **_: Any) -> None:
        pass

    def touch(self, **_: Any) -> None:
        pass

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        return essence


class _Backoffs(Iterable[float]):
    """Without an end: kopf gives up what it has tried for as often as there are backoffs, and ends the operator."""

    def __iter__(self) -> Iterator[float]:
        yield from _BACKOFF_SECONDS
        while True:
            yield _LAST_BACKOFF_SECONDS


def kopf_settings(selectors: Mapping[tuple[str, str, str], str]) -> kopf.OperatorSettings:
    """Returns the settings of an operator that stores nothing in objects but its finalizer.

    `selectors` are the label selectors of watched types, by group, version and plural.
    """
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True  # watches neither definitions nor namespaces, which needs further permissions
    settings.posting.enabled = False
    settings.persistence.finalizer = FINALIZER
    settings.persistence.diffbase_storage = _NoDiffBase()
    settings.persistence.progress_storage = _NoProgress()
    settings.watching.chunk_size = _PAGE
    settings.watching.server_timeout = _WATCH_SECONDS
    settings.watching.inactivity_timeout = _WATCH_SECONDS + 15
    settings.watching.connect_timeout = 5
    for resource, selector in selectors.items():
        settings.watching.label_selectors[resource] = selector
    settings.queueing.idle_timeout = 0.5  # each object that changed is kept for as long
    settings.networking.request_timeout = 20
    settings.networking.connect_timeout = 5
    settings.networking.error_backoffs = _Backoffs()
    settings.background.instant_exit_timeout = 5  # of a reconciliation that has begun
    return settings


def open_session(
    ssl_context: ssl.SSLContext | bool,
    authorization: Callable[[], Awaitable[str | None]],
    may_write: Callable[[], None],
    answered: Answered,
    on_page: Page,
) -> aiohttp.ClientSession:
    """Returns a session for kopf.

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
        if response.status == _UNAUTHORIZED:  # kopf opens the next session at once
            await asyncio.sleep(_LOGIN_SECONDS)
        return response

    return authorize


def _report_lists(on_page: Page) -> ClientMiddlewareType:
    """Reports lists, because kopf passes on their objects one by one, and not what is missing from them."""

    async def report(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
        response = await send(request)
        if request.method == "GET" and response.ok and _WATCHING not in request.url.query:
            on_page(request.url, await response.json())  # kopf reads the same bytes from the response again
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
