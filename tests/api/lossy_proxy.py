"""A proxy for an API server whose watches can drop deletions."""

import asyncio
import contextlib
import json
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from tests.api.server import ApiServer
from tests.ports import free_ports

_EXPIRED = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410}


@dataclass
class LossyProxy:
    """A proxy for an API server. While `dropping` is true, its watches drop deletions.

    `watched` has the paths of the collections that are watched, and `dropped` the names of the objects whose deletion
    was dropped.
    """

    server: ApiServer
    session: aiohttp.ClientSession
    watched: set[str] = field(default_factory=set)
    dropping: bool = False
    dropped: set[str] = field(default_factory=set)
    _expired: dict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))

    def expire(self) -> None:
        """Ends the watch of each collection with 410 Gone: the current watch, or the next one."""
        for path in self.watched:
            self._expired[path].set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Forwards a request, and returns the response."""
        headers = {name: request.headers[name] for name in ("Accept", "Content-Type") if name in request.headers}
        headers["Authorization"] = f"Bearer {self.server.token}"
        url, body = self.server.url + request.path_qs, await request.read()
        async with self.session.request(request.method, url, data=body or None, headers=headers) as answer:
            if "watch" in request.query and answer.ok:
                response = web.StreamResponse(headers={"Content-Type": "application/json"})
                with contextlib.suppress(ConnectionResetError):  # the client has closed its watch
                    await self._watch(request, answer, response)
                return response
            kind = answer.headers.get("Content-Type", "")
            return web.Response(body=await answer.read(), status=answer.status, headers={"Content-Type": kind})

    async def _watch(self, request: web.Request, answer: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
        await response.prepare(request)
        self.watched.add(request.path)
        expired = asyncio.ensure_future(self._expired[request.path].wait())
        while not expired.done():
            line = asyncio.ensure_future(answer.content.readline())
            await asyncio.wait({line, expired}, return_when=asyncio.FIRST_COMPLETED)
            if not line.done():
                line.cancel()
            elif not line.result():
                break
            elif not self._drops(json.loads(line.result())):
                await response.write(line.result())
        if expired.done():
            self._expired[request.path].clear()
            await response.write(json.dumps({"type": "ERROR", "object": _EXPIRED}).encode() + b"\n")
        expired.cancel()

    def _drops(self, event: dict[str, Any]) -> bool:
        if event["type"] != "DELETED" or not self.dropping:
            return False
        self.dropped.add(event["object"]["metadata"]["name"])
        return True


@asynccontextmanager
async def lossy_proxy(server: ApiServer) -> AsyncIterator[tuple[LossyProxy, str]]:
    """Yields the proxy, and its address."""
    (port,) = free_ports(1)
    connector = aiohttp.TCPConnector(ssl=server.tls())
    async with aiohttp.ClientSession(connector=connector, read_bufsize=1 << 22) as session:
        proxy = LossyProxy(server, session)
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", proxy.handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        try:
            yield proxy, f"http://127.0.0.1:{port}"
        finally:
            await runner.cleanup()
