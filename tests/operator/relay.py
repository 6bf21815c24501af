"""Relays connections to the API server, and can cut them. Data that is sent meanwhile never arrives."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

_CHUNK_BYTES = 1 << 16


class Relay:
    """Relays connections to `url`, unless it is cut."""

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._connected = asyncio.Event()
        self._connected.set()
        self.url = ""
        """Its URL, while it listens."""

    def cut(self) -> None:
        """Stops relaying data."""
        self._connected.clear()

    def join(self) -> None:
        """Relays new connections again, and further data of those that are still open."""
        self._connected.set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Listens on a port of loopback."""
        async with await asyncio.start_server(self._serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            self.url = f"{self._target.scheme}://127.0.0.1:{port}"
            yield

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._connected.wait()
        writers = [writer]
        try:
            responses, requests = await asyncio.open_connection(self._target.hostname, self._target.port)
            writers.append(requests)
            await asyncio.gather(self._pass(reader, requests, writer), self._pass(responses, writer, writer))
        except OSError:
            return
        finally:
            for opened in writers:
                opened.transport.abort()

    async def _pass(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, client: asyncio.StreamWriter
    ) -> None:
        """Relays data in one direction. Drops the data of a client that has disconnected."""
        while chunk := await source.read(_CHUNK_BYTES):
            await self._connected.wait()
            if client.is_closing():
                break
            sink.write(chunk)
            await sink.drain()
        raise ConnectionResetError
