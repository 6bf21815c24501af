"""Who may scrape /metrics, where the API server is asked for it."""

import asyncio
import hashlib
import os
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import web

Review = Callable[[str], Awaitable[bool | None]]
"""Whether whoever holds a token may scrape; None where nobody does. Raises ConnectionError where nobody can tell."""

_REMEMBERED_SECONDS: Final = 60.0
_REMEMBERED: Final = 64
_REVIEWS_AT_ONCE: Final = 2


class ScrapeGuard:
    """Lets in who may scrape. What was permitted is remembered for a while, and of the token a digest alone: strangers
    that try tokens can neither push it out nor take the API server from the benchmarks."""

    def __init__(self, review: Review, clock: Callable[[], float] = time.monotonic) -> None:
        self._review = review
        self._clock = clock
        self._permitted: dict[bytes, float] = {}
        self._turn = asyncio.Semaphore(_REVIEWS_AT_ONCE)

    async def admit(self, request: web.Request) -> None:
        """Raises the answer that somebody gets who may not."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise _unauthorized("Send a bearer token of the cluster's.")
        digest = hashlib.sha256(token.encode()).digest()
        if self._permitted.get(digest, 0) > self._clock():
            return
        try:
            async with self._turn:
                permitted = await self._review(token)
        except ConnectionError as error:
            raise web.HTTPServiceUnavailable(text=f"The API server does not tell who this is: {error}.\n") from error
        if permitted is None:
            raise _unauthorized("The cluster does not know this token, or no longer.")
        if not permitted:
            raise web.HTTPForbidden(text="Bind the ClusterRole of the chart for scrapers to this account.\n")
        self._remember(digest)

    def _remember(self, digest: bytes) -> None:
        now = self._clock()
        fresh = [item for item in self._permitted.items() if item[1] > now][-(_REMEMBERED - 1) :]
        self._permitted = {**dict(fresh), digest: now + _REMEMBERED_SECONDS}


def _unauthorized(text: str) -> web.HTTPUnauthorized:
    return web.HTTPUnauthorized(text=f"{text}\n", headers={"WWW-Authenticate": "Bearer"})


@dataclass(frozen=True)
class Protection:
    """How /metrics is kept from strangers: a token must come encrypted, so the two go together."""

    guard: ScrapeGuard
    context: ssl.SSLContext


def tls_context(certificate: bytes, key: bytes) -> ssl.SSLContext:
    """A server's context. The key never is in a file that lasts."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with os.fdopen(os.memfd_create("tls"), "wb") as file:
        file.write(certificate + key)
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
    return context
