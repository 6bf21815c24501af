"""The HTTP server of /metrics, /healthz and /readyz, and the access control of /metrics."""

import asyncio
import hashlib
import os
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, cast

from aiohttp import web
from prometheus_client.exposition import choose_encoder

from tierbench.domain.results import ResultStore
from tierbench.metrics.listener import accept, bind
from tierbench.metrics.operator import OperatorMetrics
from tierbench.metrics.results import Samples, render, samples

Review = Callable[[str], Awaitable[bool | None]]
"""Returns whether the account of a token may scrape; None if the token is not valid.

It raises ConnectionError if the API server does not answer.
"""

_CACHE_SECONDS: Final = 60.0
_MAXIMUM_CACHED: Final = 64
_MAXIMUM_REVIEWS: Final = 2


class ScrapeGuard:
    """Admits accounts that may scrape.

    It caches positive reviews by the digest of the token. Clients without permission can neither evict a cached token
    nor keep the API server busy, because they share two concurrent reviews. A token that was permitted before does not
    wait for theirs.
    """

    def __init__(self, review: Review, clock: Callable[[], float] = time.monotonic) -> None:
        self._review = review
        self._clock = clock
        self._permitted: dict[bytes, float] = {}
        self._reviews = {is_known: asyncio.Semaphore(_MAXIMUM_REVIEWS) for is_known in (True, False)}

    async def admit(self, request: web.Request) -> None:
        """Returns if the sender of the request may scrape.

        Raises:
            HTTPUnauthorized: there is no valid token.
            HTTPForbidden: the account may not scrape.
            HTTPServiceUnavailable: the API server does not answer.
        """
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise _unauthorized("Send a bearer token of this cluster.")
        digest = hashlib.sha256(token.encode()).digest()
        if self._permitted.get(digest, 0) > self._clock():
            return
        try:
            async with self._reviews[digest in self._permitted]:
                permitted = await self._review(token)
        except ConnectionError as error:
            message = f"The API server did not review the token: {error}.\n"
            raise web.HTTPServiceUnavailable(text=message) from error
        if not permitted:
            self._permitted.pop(digest, None)
        if permitted is None:
            raise _unauthorized("The token is not valid in this cluster, or has expired.")
        if not permitted:
            raise web.HTTPForbidden(text="Bind the chart's ClusterRole for scrapers to this account.\n")
        self._cache(digest)

    def _cache(self, digest: bytes) -> None:
        self._permitted.pop(digest, None)
        newest = list(self._permitted.items())[-(_MAXIMUM_CACHED - 1) :]
        self._permitted = {**dict(newest), digest: self._clock() + _CACHE_SECONDS}


def _unauthorized(text: str) -> web.HTTPUnauthorized:
    return web.HTTPUnauthorized(text=f"{text}\n", headers={"WWW-Authenticate": "Bearer"})


@dataclass(frozen=True)
class Protection:
    """The access control of /metrics. It includes TLS, because a token must be encrypted."""

    guard: ScrapeGuard
    context: ssl.SSLContext


def tls_context(certificate: bytes, key: bytes) -> ssl.SSLContext:
    """Returns the context of a TLS server. The key is never in a file on disk."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with os.fdopen(os.memfd_create("tls"), "wb") as file:
        file.write(certificate + key)
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
    return context


def application(
    store: ResultStore[Samples], metrics: OperatorMetrics, protection: Protection | None = None
) -> web.Application:
    """Returns the application with /metrics and the paths of probes."""
    # One thread, because each thread keeps its own memory.
    in_thread = partial(asyncio.get_running_loop().run_in_executor, ThreadPoolExecutor(max_workers=1))

    async def scrape(request: web.Request) -> web.StreamResponse:
        if protection is not None:
            await protection.guard.admit(request)
        if metrics.is_leader:
            _refuse_until_filled(store, metrics)
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        response = web.StreamResponse(headers={"Content-Type": content_type})
        response.force_close()  # a connection is for one scrape
        await response.prepare(request)
        # Samples are immutable, so a thread can write the current ones. Results come from the leader only.
        pieces = (piece.encode() for piece in render(samples(store) if metrics.is_leader else ()))
        with suppress(ConnectionError):  # the client has left
            while piece := await in_thread(next, pieces, b""):
                await response.write(piece)
            # The operator's metrics come last, because the encoder ends them with the end mark of OpenMetrics.
            await response.write(await in_thread(encode, metrics.registry))
        return response

    app = probes(store, metrics)
    app.add_routes([web.get("/metrics", scrape)])
    return app


def probes(store: ResultStore[Samples], metrics: OperatorMetrics) -> web.Application:
    """Returns the application with /healthz and /readyz."""

    async def health(_: web.Request) -> web.Response:
        if overdue := metrics.overdue():
            raise web.HTTPServiceUnavailable(text=f"These tasks are overdue: {', '.join(overdue)}.\n")
        return web.Response(text="ok\n")

    async def ready(_: web.Request) -> web.Response:
        if metrics.waits_for:
            raise web.HTTPServiceUnavailable(text=f"{metrics.waits_for}\n")
        _refuse_until_filled(store, metrics)
        if not metrics.is_leader and not metrics.leader:
            raise web.HTTPServiceUnavailable(text="The leader is not known yet.\n")
        return web.Response(text="ok\n" if metrics.is_leader else f"standby; the leader is {metrics.leader}\n")

    app = web.Application()
    app.add_routes([web.get("/healthz", health), web.get("/readyz", ready)])
    return app


def _refuse_until_filled(store: ResultStore[Samples], metrics: OperatorMetrics) -> None:
    """A standby does not list benchmarks."""
    if not (store.filled if metrics.is_leader else store.has_results):
        raise web.HTTPServiceUnavailable(text="The operator is still reading the existing results.\n")


@asynccontextmanager
async def serve(port: int, app: web.Application, context: ssl.SSLContext | None = None) -> AsyncIterator[None]:
    """Serves an application on a port until the context ends. Cancels the context if it cannot accept connections."""
    runner = web.AppRunner(app)
    await runner.setup()
    server = cast(web.Server, runner.server)
    try:
        with closing(bind(port)) as listener:
            async with asyncio.TaskGroup() as group:
                accepting = group.create_task(accept(listener, server, context))
                yield
                accepting.cancel()
    finally:
        await runner.cleanup()
