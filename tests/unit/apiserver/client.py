"""Connects to the API server in memory: in the process, or on loopback."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from aiohttp import web

from tests.unit.apiserver.server import ApiServer, Request, Response
from tierbench.kube.client import Kube, OnResponse

_PIECE_BYTES = 7
"""The size of the pieces of a stream: a network may cut it anywhere."""


class InProcessClient:
    """Replaces the ApiClient of the kubernetes package. Nothing is suspended, unless the server's reactor waits."""

    configuration = SimpleNamespace(host="http://in-process")

    def __init__(self, server: ApiServer) -> None:
        self.server = server

    async def param_serialize(
        self, method: str, path: str, *, query_params: Any, header_params: Mapping[str, str], **_: Any
    ) -> tuple[str, tuple[str, Any], Mapping[str, str]]:
        return method, (path, query_params), header_params

    async def call_api(self, method: str, url: tuple[str, Any], headers: Mapping[str, str], body: Any, **_: Any) -> Any:
        path, query = url
        request = Request(method, path, dict(query), body and json.loads(json.dumps(body)), headers)
        return SimpleNamespace(response=_InProcessResponse(await self.server.answer(request), self.server))


class _InProcessResponse:
    """The part of aiohttp.ClientResponse that Kube uses."""

    def __init__(self, answer: Response, server: ApiServer) -> None:
        self.status = answer.status
        self.headers = _headers(server)
        self.content = SimpleNamespace(iter_any=self._pieces)
        self._body = answer.body
        self._server = server
        self._open = True
        server.open_streams += 1

    async def read(self) -> bytes:
        self.close()
        return json.dumps(self._body).encode()

    async def _pieces(self) -> AsyncIterator[bytes]:
        if isinstance(self._body, dict):
            yield json.dumps(self._body).encode()
            return
        async for data in self._body:
            for start in range(0, len(data), _PIECE_BYTES):
                yield data[start : start + _PIECE_BYTES]

    def close(self) -> None:
        self._server.open_streams -= self._open
        self._open = False


class InProcessKube(Kube):
    """A client in the process, with the clock of the server."""

    def __init__(
        self,
        server: ApiServer,
        on_response: OnResponse = lambda method, status: None,
        check_leader: Callable[[], None] = lambda: None,
    ) -> None:
        client: Any = InProcessClient(server)
        super().__init__(client, on_response, check_leader=check_leader)
        self._server = server

    def now(self) -> datetime:
        return self._server.now()


@asynccontextmanager
async def serve(server: ApiServer) -> AsyncIterator[None]:
    """Serves on loopback, in the running event loop."""

    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else None
        try:
            answer = await server.answer(
                Request(request.method, request.path, dict(request.query), body, dict(request.headers))
            )
        except ConnectionError:
            assert request.transport is not None
            request.transport.abort()
            raise
        if isinstance(answer.body, dict):
            return web.json_response(answer.body, status=answer.status, headers=_headers(server))
        response = web.StreamResponse(headers={"Content-Type": "application/json", **_headers(server)})
        await response.prepare(request)
        async for data in answer.body:
            await response.write(data)
        return response

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield
    finally:
        server.end_watches()
        await runner.cleanup()


@contextmanager
def serve_in_thread(server: ApiServer, directory: Path) -> Iterator[str]:
    """Serves on loopback, in its own thread. Yields the path of a kubeconfig."""
    started, ended = threading.Event(), threading.Event()

    async def run() -> None:
        async with serve(server):
            started.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    assert started.wait(60)
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server.url}}],
        "users": [{"name": "u", "user": {}}],
    }
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    try:
        yield str(kubeconfig)
    finally:
        ended.set()
        thread.join()


def _headers(server: ApiServer) -> dict[str, str]:
    return {"Date": format_datetime(server.now(), usegmt=True)}
