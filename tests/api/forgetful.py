"""An API server that forgets to tell of deletions: a proxy before a real one, whose watches leave them out."""

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
class Forgetful:
    """`watched` are collections; `forgotten` the objects whose deletion was not told of, while it was `forgetting`."""

    server: ApiServer
    session: aiohttp.ClientSession
    watched: set[str] = field(default_factory=set)
    forgetting: bool = False
    forgotten: set[str] = field(default_factory=set)
    _expired: dict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))

    def expire(self) -> None:
        """Ends the watch of each collection as if it was too old: the one under way, or else the next."""
        for path in self.watched:
            self._expired[path].set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Any request."""
        headers = {name: request.headers[name] for name in ("Accept", "Content-Type") if name in request.headers}
        headers["Authorization"] = f"Bearer {self.server.token}"
        url, body = self.server.url + request.path_qs, await request.read()
        async with self.session.request(request.method, url, data=body or None, headers=headers) as answer:
            if "watch" in request.query and answer.ok:
                response = web.StreamResponse(headers={"Content-Type": "application/json"})
                with contextlib.suppress(ConnectionResetError):  # whoever watched has gone
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
            elif not self._forgets(json.loads(line.result())):
                await response.write(line.result())
        if expired.done():
            self._expired[request.path].clear()
            await response.write(json.dumps({"type": "ERROR", "object": _EXPIRED}).encode() + b"\n")
        expired.cancel()

    def _forgets(self, event: dict[str, Any]) -> bool:
        if event["type"] != "DELETED" or not self.forgetting:
            return False
        self.forgotten.add(event["object"]["metadata"]["name"])
        return True


@asynccontextmanager
async def forgetful(server: ApiServer) -> AsyncIterator[tuple[Forgetful, str]]:
    """The proxy, and its address."""
    (port,) = free_ports(1)
    connector = aiohttp.TCPConnector(ssl=server.tls())
    async with aiohttp.ClientSession(connector=connector, read_bufsize=1 << 22) as session:
        proxy = Forgetful(server, session)
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", proxy.handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        try:
            yield proxy, f"http://127.0.0.1:{port}"
        finally:
            await runner.cleanup()
