"""/metrics, /healthz and /readyz."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client.exposition import choose_encoder

from tierbench.domain.results import ResultStore
from tierbench.metrics.family import Samples, render
from tierbench.metrics.operator import OperatorMetrics
from tierbench.metrics.results import samples


def application(store: ResultStore[Samples], metrics: OperatorMetrics) -> web.Application:
    """The three paths."""

    async def scrape(request: web.Request) -> web.StreamResponse:
        _refuse_until_filled(store)
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        response = web.StreamResponse(headers={"Content-Type": content_type})
        await response.prepare(request)
        for piece in render(samples(store)):
            await response.write(piece.encode())
            await asyncio.sleep(0)  # A write that does not block would not let the benchmarks go on.
        # Last, because OpenMetrics ends with a mark that the encoder writes.
        await response.write(encode(metrics.registry))
        return response

    async def health(_: web.Request) -> web.Response:
        if stuck := metrics.stuck():
            raise web.HTTPServiceUnavailable(text=f"For too long nothing was heard of {', '.join(stuck)}.\n")
        return web.Response(text="ok\n")

    async def ready(_: web.Request) -> web.Response:
        if metrics.waits_for:
            raise web.HTTPServiceUnavailable(text=f"{metrics.waits_for}\n")
        _refuse_until_filled(store)
        return web.Response(text="ok\n")

    app = web.Application()
    app.add_routes([web.get("/metrics", scrape), web.get("/healthz", health), web.get("/readyz", ready)])
    return app


def _refuse_until_filled(store: ResultStore[Samples]) -> None:
    if not store.filled:
        raise web.HTTPServiceUnavailable(text="The results that exist are still being read.\n")


@asynccontextmanager
async def serve(port: int, store: ResultStore[Samples], metrics: OperatorMetrics) -> AsyncIterator[None]:
    """Serves while the context lasts."""
    runner = web.AppRunner(application(store, metrics), access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, port=port).start()
        yield
    finally:
        await runner.cleanup()
