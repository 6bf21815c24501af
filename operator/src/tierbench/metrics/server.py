"""/metrics, /healthz and /readyz."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial

from aiohttp import web
from prometheus_client.exposition import choose_encoder

from tierbench.domain.results import ResultStore
from tierbench.metrics.authorization import Protection
from tierbench.metrics.family import Samples, render
from tierbench.metrics.operator import OperatorMetrics
from tierbench.metrics.results import samples


def application(
    store: ResultStore[Samples], metrics: OperatorMetrics, protection: Protection | None = None
) -> web.Application:
    """The three paths."""
    # One thread, as each keeps memory of its own.
    off_the_loop = partial(asyncio.get_running_loop().run_in_executor, ThreadPoolExecutor(max_workers=1))

    async def scrape(request: web.Request) -> web.StreamResponse:
        if protection is not None:
            await protection.guard.admit(request)
        if metrics.is_leader:
            _refuse_until_filled(store)
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        response = web.StreamResponse(headers={"Content-Type": content_type})
        await response.prepare(request)
        # What an object says never changes, so that a thread can write down all that there is now. Whoever stands by
        # says nothing of what its leader says.
        pieces = (piece.encode() for piece in render(samples(store) if metrics.is_leader else ()))
        while piece := await off_the_loop(next, pieces, b""):
            await response.write(piece)
        # Last, because OpenMetrics ends with a mark that the encoder writes.
        await response.write(await off_the_loop(encode, metrics.registry))
        return response

    async def health(_: web.Request) -> web.Response:
        if overdue := metrics.overdue():
            raise web.HTTPServiceUnavailable(text=f"For too long nothing was heard of {', '.join(overdue)}.\n")
        return web.Response(text="ok\n")

    async def ready(_: web.Request) -> web.Response:
        if metrics.waits_for:
            raise web.HTTPServiceUnavailable(text=f"{metrics.waits_for}\n")
        _refuse_until_filled(store)
        if not metrics.is_leader and not metrics.leader:
            raise web.HTTPServiceUnavailable(text="It is not known yet who leads.\n")
        return web.Response(text="ok\n" if metrics.is_leader else f"stands by for {metrics.leader}\n")

    app = web.Application()
    app.add_routes([web.get("/metrics", scrape), web.get("/healthz", health), web.get("/readyz", ready)])
    return app


def _refuse_until_filled(store: ResultStore[Samples]) -> None:
    if not store.filled:
        raise web.HTTPServiceUnavailable(text="The results that exist are still being read.\n")


@asynccontextmanager
async def serve(
    port: int, store: ResultStore[Samples], metrics: OperatorMetrics, protection: Protection | None = None
) -> AsyncIterator[None]:
    """Serves while the context lasts."""
    runner = web.AppRunner(application(store, metrics, protection), access_log=None)
    context = None if protection is None else protection.context
    await runner.setup()
    try:
        await web.TCPSite(runner, port=port, ssl_context=context).start()
        yield
    finally:
        await runner.cleanup()
