"""/metrics, /healthz and /readyz."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client.exposition import choose_encoder

from tierbench.metrics.cache import ResultCache
from tierbench.metrics.operator import OperatorMetrics
from tierbench.metrics.results import ResultCollector


def application(cache: ResultCache, metrics: OperatorMetrics) -> web.Application:
    """The three paths."""
    metrics.registry.register(ResultCollector(cache))

    async def scrape(request: web.Request) -> web.Response:
        if not cache.filled:
            raise web.HTTPServiceUnavailable(text="The results that exist are still being read.\n")
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(metrics.registry), headers={"Content-Type": content_type})

    async def health(_: web.Request) -> web.Response:
        if metrics.stuck():
            raise web.HTTPServiceUnavailable(text="A benchmark has not been looked at for too long.\n")
        return web.Response(text="ok\n")

    async def ready(_: web.Request) -> web.Response:
        if not cache.filled:
            raise web.HTTPServiceUnavailable(text="The results that exist are still being read.\n")
        return web.Response(text="ok\n")

    app = web.Application()
    app.add_routes([web.get("/metrics", scrape), web.get("/healthz", health), web.get("/readyz", ready)])
    return app


@asynccontextmanager
async def serve(port: int, cache: ResultCache, metrics: OperatorMetrics) -> AsyncIterator[None]:
    """Serves while the context lasts."""
    runner = web.AppRunner(application(cache, metrics), access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, port=port).start()
        yield
    finally:
        await runner.cleanup()
