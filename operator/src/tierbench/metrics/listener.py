"""Accepts a bounded number of connections, each for a bounded time: strangers reach the operator's ports, too."""

import asyncio
import socket
import ssl
from collections import Counter
from contextlib import suppress
from typing import Final

from aiohttp import web

_MOST_CONNECTIONS: Final = 64
_MOST_OF_ONE_ADDRESS: Final = 16
_SECONDS: Final = 30.0
"""A connection is closed after this time, whether a request has arrived or not."""
_PAUSE_SECONDS: Final = 0.1


class _Handler(web.RequestHandler):
    """The protocol of one connection. It sets `closed` at the end."""

    def __init__(self, server: web.Server, closed: asyncio.Event) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), access_log=None)  # type: ignore[arg-type]
        self._closed = closed

    def connection_lost(self, exc: BaseException | None) -> None:
        """Implements `asyncio.Protocol`."""
        super().connection_lost(exc)
        self._closed.set()


async def accept(listener: socket.socket, server: web.Server, context: ssl.SSLContext | None) -> None:
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
            group.create_task(_serve(connection, server, context, accepted, host))


async def _serve(
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


def bind(port: int) -> socket.socket:
    """Returns a socket that listens on a port of all addresses, by IPv6 and IPv4."""
    listener = None
    if socket.has_dualstack_ipv6():
        with suppress(OSError):  # the kernel has no IPv6 addresses
            listener = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    listener = listener or socket.create_server(("", port))
    listener.setblocking(False)
    return listener
