"""Unauthenticated connections take bounded resources of the operator, and block no other client."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import aiohttp
import pytest
from aiohttp import web

from tests.ports import free_ports
from tests.unit.metrics.test_metrics import filled, leader
from tierbench.controller.credentials import certificates
from tierbench.metrics import server
from tierbench.metrics.server import application, probes, serve, tls_context

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def served(*, encrypted: bool = False) -> AsyncIterator[tuple[int, int]]:
    """Yields the port of /metrics and that of the probes."""
    made = certificates("tierbench-operator")
    context = tls_context(made["tls.crt"], made["tls.key"]) if encrypted else None
    port, probe_port = free_ports(2)
    store, metrics = filled(), leader()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(serve(port, application(store, metrics), context))
        await stack.enter_async_context(serve(probe_port, probes(store, metrics)))
        yield port, probe_port


async def connect(port: int, source: str = "127.0.0.1") -> Connection:
    return await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))


async def is_closed(connection: Connection) -> bool:
    """Returns whether the server has closed a connection, on which it never sends anything."""
    try:
        async with asyncio.timeout(0.2):
            return await connection[0].read(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


async def status(port: int, path: str, source: str = "127.0.0.1") -> int:
    connector = aiohttp.TCPConnector(local_addr=(source, 0))
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get(f"http://127.0.0.1:{port}{path}") as answer,
    ):
        await answer.read()
        return answer.status


@pytest.mark.parametrize("encrypted", [False, True])
async def test_silent_connections_of_one_address_are_bounded_and_block_no_other(encrypted: bool) -> None:
    """Each took up to 45 KiB for an hour, before any token was read."""
    async with served(encrypted=encrypted) as (port, probe_port):
        silent = [await connect(port) for _ in range(40)]
        closed = await asyncio.gather(*map(is_closed, silent))
        assert closed.count(False) == 16
        assert await status(probe_port, "/readyz") == 200
        if not encrypted:
            assert await status(port, "/metrics", "127.0.0.2") == 200
        for (_, writer), gone in zip(silent, closed, strict=True):
            if not gone:
                writer.close()


async def test_connections_of_all_addresses_are_bounded_apart_from_probes() -> None:
    async with served() as (port, probe_port):
        silent = [await connect(port, f"127.0.0.{number // 10 + 1}") for number in range(100)]
        closed = await asyncio.gather(*map(is_closed, silent))
        assert closed.count(False) == 64
        with pytest.raises(aiohttp.ClientError):
            await status(port, "/metrics", "127.0.0.99")
        assert await status(probe_port, "/healthz") == 200
        for connection, gone in zip(silent, closed, strict=True):
            if not gone:
                connection[1].close()


@pytest.mark.parametrize("sent", [b"", b"GET /metrics HTTP/1.1\r\nX: ", b"GET /none HTTP/1.1\r\nHost: h\r\n\r\n"])
async def test_connection_ends_after_its_time_and_frees_its_place(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request without an end would otherwise keep its connection, as would an idle one after a response."""
    monkeypatch.setattr(server, "_SECONDS", 0.5)
    monkeypatch.setattr(server, "_MOST_CONNECTIONS", 1)
    async with served() as (port, _):
        reader, writer = await connect(port)
        writer.write(sent)
        async with asyncio.timeout(60):
            with suppress(ConnectionError):
                await reader.read()
        writer.close()
        for _ in range(3):  # a scrape frees its place at once
            assert await status(port, "/metrics") == 200


async def test_failed_handshake_does_not_stop_the_server() -> None:
    async with served(encrypted=True) as (port, _):
        reader, writer = await connect(port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        async with asyncio.timeout(60):
            with suppress(ConnectionError):
                await reader.read()
        writer.close()
        connection = await connect(port)
        assert not await is_closed(connection)
        connection[1].close()


async def test_client_that_reads_slowly_blocks_no_other() -> None:
    """The server closes the connection while a part of its response still waits to be sent."""

    async def respond(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.force_close()
        await response.prepare(request)
        assert request.transport is not None
        while not request.transport.get_write_buffer_size():
            await response.write(bytes(1 << 14))
        return response

    app = web.Application()
    app.add_routes([web.get("/metrics", respond)])
    (port,) = free_ports(1)
    async with serve(port, app), asyncio.timeout(60):
        for _ in range(2):
            reader, writer = await connect(port)
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: operator\r\n\r\n")
            assert (await reader.readline()).split()[1] == b"200"
            await reader.read()
            writer.close()


async def test_a_failure_to_accept_ends_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator whose ports no longer answer has to start again."""

    async def fail(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(server, "_accept", fail)
    (port,) = free_ports(1)
    with pytest.raises(ExceptionGroup, match="unhandled errors"):
        async with serve(port, web.Application()):
            await asyncio.Event().wait()
