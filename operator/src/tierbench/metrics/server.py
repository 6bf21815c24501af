"""The HTTP server of /metrics, /healthz and /readyz, and the access control of /metrics.

It accepts a bounded number of connections, each for a bounded time, because strangers reach its ports, too.
"""

import asyncio
import hashlib
import os
import socket
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

from aiohttp import web
from prometheus_client.exposition import choose_encoder

from tierbench.domain.results import ResultStore
from tierbench.kube.client import REQUEST_ERRORS, Kube, describe_error
from tierbench.kube.meta import ResourceType
from tierbench.metrics.operator import OperatorMetrics
from tierbench.metrics.results import SampleCache, render

Review = Callable[[str], Awaitable[bool | None]]
"""Returns whether the account of a token may scrape; None if the token is not valid.

It raises ConnectionError if the API server does not answer.
"""

_CACHE_SECONDS: Final = 60.0
_MAXIMUM_CACHED: Final = 64
_MAXIMUM_REVIEWS: Final = 2
_MOST_CONNECTIONS: Final = 64
_MOST_OF_ONE_ADDRESS: Final = 16
_SECONDS: Final = 30.0
"""A connection is closed after this time, whether a request has arrived or not."""
_PAUSE_SECONDS: Final = 0.1
_TOKEN_REVIEW: Final = ("authentication.k8s.io/v1", "TokenReview", "tokenreviews")
_ACCESS_REVIEW: Final = ("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews")
# The fields of a SubjectAccessReview's spec, and those of a TokenReview's user that they are set from.
_SUBJECT: Final = {"user": "username", "uid": "uid", "groups": "groups", "extra": "extra"}


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


def application(store: ResultStore, metrics: OperatorMetrics, protection: Protection | None = None) -> web.Application:
    """Returns the application with /metrics and the paths of probes."""
    # One thread, because each thread keeps its own memory.
    in_thread = partial(asyncio.get_running_loop().run_in_executor, ThreadPoolExecutor(max_workers=1))
    cache = SampleCache()

    async def scrape(request: web.Request) -> web.StreamResponse:
        if protection is not None:
            await protection.guard.admit(request)
        if metrics.is_leader:
            _refuse_until_filled(store, metrics)
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        response = web.StreamResponse(headers={"Content-Type": content_type})
        response.force_close()  # a connection is for one scrape
        await response.prepare(request)
        # What the store keeps is immutable, so a thread can read it. Results come from the leader only.
        samples = await in_thread(cache.read, tuple(store.newest_runs()) if metrics.is_leader else ())
        pieces = (piece.encode() for piece in render(samples))
        with suppress(ConnectionError):  # the client has left
            while piece := await in_thread(next, pieces, b""):
                await response.write(piece)
            # The operator's metrics come last, because the encoder ends them with the end mark of OpenMetrics.
            await response.write(await in_thread(encode, metrics.registry))
        return response

    app = probes(store, metrics)
    app.add_routes([web.get("/metrics", scrape)])
    return app


def probes(store: ResultStore, metrics: OperatorMetrics) -> web.Application:
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


def _refuse_until_filled(store: ResultStore, metrics: OperatorMetrics) -> None:
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
        with closing(_bind(port)) as listener:
            async with asyncio.TaskGroup() as group:
                accepting = group.create_task(_accept(listener, server, context))
                yield
                accepting.cancel()
    finally:
        await runner.cleanup()


class _Handler(web.RequestHandler):
    """The protocol of one connection. It sets `closed` at the end."""

    def __init__(self, server: web.Server, closed: asyncio.Event) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), access_log=None)  # type: ignore[arg-type]
        self._closed = closed

    def connection_lost(self, exc: BaseException | None) -> None:
        """Implements `asyncio.Protocol`."""
        super().connection_lost(exc)
        self._closed.set()


async def _accept(listener: socket.socket, server: web.Server, context: ssl.SSLContext | None) -> None:
    """Serves connections without end. Those that are too many, in all or of one address, are closed at once."""
    loop, accepted = asyncio.get_running_loop(), Counter[str]()
    async with asyncio.TaskGroup() as group:
        while True:
            try:
                connection, (host, *_) = await loop.sock_accept(listener)
            except OSError:  # no file descriptor is left
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            if accepted.total() >= _MOST_CONNECTIONS or accepted[host] >= _MOST_OF_ONE_ADDRESS:
                connection.close()
                continue
            accepted[host] += 1
            group.create_task(_serve_connection(connection, server, context, accepted, host))


async def _serve_connection(
    connection: socket.socket,
    server: web.Server,
    context: ssl.SSLContext | None,
    accepted: Counter[str],
    host: str,
) -> None:
    loop, closed = asyncio.get_running_loop(), asyncio.Event()
    try:
        with suppress(OSError):  # the handshake failed, or the time is over
            async with asyncio.timeout(_SECONDS):
                transport, _ = await loop.connect_accepted_socket(
                    lambda: _Handler(server, closed), connection, ssl=context
                )
                try:
                    await closed.wait()
                finally:
                    if not closed.is_set():  # a transport that is closed cannot be aborted
                        transport.abort()
    finally:
        accepted -= Counter({host: 1})


def _bind(port: int) -> socket.socket:
    """Returns a socket that listens on a port of all addresses, by IPv6 and IPv4."""
    listener = None
    if socket.has_dualstack_ipv6():
        with suppress(OSError):  # the kernel has no IPv6 addresses
            listener = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    listener = listener or socket.create_server(("", port))
    listener.setblocking(False)
    return listener


async def may_get(kube: Kube, path: str, token: str) -> bool | None:
    """Returns whether the token's user may get a non-resource path, or None if the cluster does not know the token.

    Raises ConnectionError if the API server does not answer.
    """
    try:
        known = await _review(kube, _TOKEN_REVIEW, {"token": token})
        if not known.get("authenticated"):
            return None
        user = known["user"]
        subject = {field: user[source] for field, source in _SUBJECT.items() if source in user}
        attributes = {"path": path, "verb": "get"}
        answer = await _review(kube, _ACCESS_REVIEW, {**subject, "nonResourceAttributes": attributes})
    except REQUEST_ERRORS as error:
        raise ConnectionError(describe_error(error)) from error
    return bool(answer.get("allowed"))


async def _review(kube: Kube, review: tuple[str, str, str], spec: dict[str, Any]) -> dict[str, Any]:
    api_version, kind, plural = review
    body = {"apiVersion": api_version, "kind": kind, "metadata": {}, "spec": spec}
    answer = await kube.create(ResourceType(f"apis/{api_version}", plural), None, body)
    status: dict[str, Any] = answer.get("status", {})
    return status
