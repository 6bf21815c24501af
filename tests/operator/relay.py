"""A way to the API server that can be cut: what is sent then arrives neither now nor later."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

_PIECE = 1 << 16


class Relay:
    """Passes connections on to `url`, unless it is cut."""

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._whole = asyncio.Event()
        self._whole.set()
        self.url = ""
        """Where it listens."""

    def cut(self) -> None:
        """From now on nothing passes."""
        self._whole.clear()

    def join(self) -> None:
        """New connections pass again, and what comes next in those that are still open."""
        self._whole.set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Listens on a port of loopback."""
        async with await asyncio.start_server(self._serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            self.url = f"{self._target.scheme}://127.0.0.1:{port}"
            yield

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._whole.wait()
        writers = [writer]
        try:
            answers, asks = await asyncio.open_connection(self._target.hostname, self._target.port)
            writers.append(asks)
            await asyncio.gather(self._pass(reader, asks, writer), self._pass(answers, writer, writer))
        except OSError:
            return
        finally:
            for one in writers:
                one.transport.abort()

    async def _pass(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, client: asyncio.StreamWriter
    ) -> None:
        """What a client sent that has gone meanwhile is lost with it."""
        while piece := await source.read(_PIECE):
            await self._whole.wait()
            if client.is_closing():
                break
            sink.write(piece)
            await sink.drain()
        raise ConnectionResetError
