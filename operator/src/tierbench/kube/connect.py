"""Logs in to an API server: in a pod, or by a kubeconfig. Opens sessions for another client, such as kopf."""

import asyncio
import socket
import struct
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final
from urllib.request import getproxies

import aiohttp
from aiohttp import (
    AddrInfoType,
    ClientHandlerType,
    ClientMiddlewareType,
    ClientRequest,
    ClientResponse,
    StreamReader,
)
from kubernetes import config
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.config import ConfigException
from pydantic_core import from_json, to_json
from yaml import YAMLError

from tierbench.kube.client import FIELD_MANAGER, TIMEOUT, Kube, OnResponse, lines
from tierbench.kube.informer import ListObserver
from tierbench.kube.meta import Raw
from tierbench.kube.pages import PageLimit, pieces_of

# The semaphore of Kube limits requests. Each watch and each followed log has a connection of its own.
_NO_LIMIT: Final = 0
# The read buffer of each TLS connection: 256 KiB by default, which is 75 MiB for 300 logs.
SSLProtocol.max_size = 16 * 1024
# A user at a terminal sees soon that no server answers, and may have a slow network.
_CLI_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=60)
# The module has no types. kubernetes.aio has loaders too, but they hide the prompts of a plugin and renew no token.
_load_incluster_config: Callable[..., None] = config.load_incluster_config
_load_kube_config: Callable[..., None] = config.load_kube_config
_contexts: Callable[..., tuple[list[dict[str, Any]], dict[str, Any]]] = config.list_kube_config_contexts
# The loader does not check the types of what it reads, so it raises the last two.
_UNUSABLE: Final = (ConfigException, OSError, YAMLError, TypeError, AttributeError)
_REQUESTS_AT_ONCE: Final = 16
_WATCH: Final = "watch"
_UNAUTHORIZED: Final = 401
_LOGIN_SECONDS: Final = 1.0
_REQUEST_SECONDS: Final = 20.0


class KubeconfigError(Exception):
    """There is no usable kubeconfig."""


def abortive_socket(address: AddrInfoType) -> socket.socket:
    """Returns a socket that the kernel resets when it is closed.

    So a cut network delivers no request of an ended process.
    """
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return made


def _configuration() -> Configuration:
    """Accepts the certificates that kubectl accepts. Python 3.13 rejects those of many clusters by default."""
    configuration = Configuration()
    configuration.disable_strict_ssl_verification = True
    return configuration


@asynccontextmanager
async def connect(
    on_response: OnResponse,
    check_leader: Callable[[], None] = lambda: None,
    timeout: aiohttp.ClientTimeout = TIMEOUT,  # noqa: ASYNC109 (aiohttp's own)
) -> AsyncIterator[Kube]:
    """Connects to the cluster of this pod or, outside of a pod, to that of the kubeconfig."""
    configuration = _configuration()
    try:
        _load_incluster_config(client_configuration=configuration)
    except ConfigException:
        _load_kube_config(client_configuration=configuration)
    async with (
        ApiClient(configuration) as client,
        aiohttp.TCPConnector(
            limit=_NO_LIMIT, ssl=client.rest_client.ssl_context, socket_factory=abortive_socket
        ) as connector,
    ):
        # With trust_env, aiohttp also looks for a netrc file, in a thread, for each request.
        configuration.client_session_kwargs = {"connector": connector, "trust_env": bool(getproxies())}
        yield Kube(client, on_response, timeout, check_leader)


@asynccontextmanager
async def connect_by_kubeconfig(path: str | None, context: str | None) -> AsyncIterator[tuple[Kube, str]]:
    """Connects to the cluster of a context, and returns its namespace too. Raises KubeconfigError."""
    configuration = _configuration()
    try:
        _load_kube_config(path, context, client_configuration=configuration)
        contexts, active = _contexts(path)
        client = ApiClient(configuration)
    except _UNUSABLE as error:
        raise KubeconfigError(str(error).splitlines()[0].rstrip(".")) from None
    chosen = next((item for item in contexts if item["name"] == context), active)
    async with client:
        yield Kube(client, timeout=_CLI_TIMEOUT), chosen["context"].get("namespace") or "default"


class _Answer(ClientResponse):
    """An answer to another client. It has the reduced `page` instead of a list."""

    page: Raw | None = None

    async def json(self, **options: Any) -> Any:
        """Returns the answer."""
        return await super().json(**options) if self.page is None else self.page


class _ReducedEvents:
    """The content of a watch, with reduced events."""

    def __init__(self, content: StreamReader, reduce: Callable[[Raw], Raw]) -> None:
        self._content = content
        self._reduce = reduce

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    async def iter_chunked(self, _: int) -> AsyncIterator[bytes]:
        """Yields one event at a time."""
        async for line in lines(self._content):
            yield to_json(self._reduce(from_json(line))) + b"\n"


def open_session(kube: Kube, lists: ListObserver) -> aiohttp.ClientSession:
    """Opens a session with the login, the fence and the metrics of `kube`. `lists` gets what it lists and watches."""
    return aiohttp.ClientSession(
        **kube.connections,
        headers={"User-Agent": FIELD_MANAGER},  # the API server derives the field manager from it
        response_class=_Answer,
        middlewares=(_reduce(lists), _authorize(kube), _guard(kube)),
    )


def _reduce(lists: ListObserver) -> ClientMiddlewareType:
    limits: dict[str, PageLimit] = {}

    async def reduce(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
        if request.method != "GET" or not lists.observes(request.url):
            async with asyncio.timeout(_REQUEST_SECONDS):
                response = await send(request)
                await response.read()
            return response
        if _WATCH in request.url.query:
            response = await send(request)
            content: Any = _ReducedEvents(response.content, partial(lists.reduce, request.url))
            response.content = content if response.ok else response.content
            return response
        await lists.wait_for_turn(request.url)
        if "continue" not in request.url.query:
            limits[request.url.path] = PageLimit()
        async with lists.one_page:
            return await _read_page(request, send, limits[request.url.path], lists)

    return reduce


async def _read_page(
    request: ClientRequest, send: ClientHandlerType, limit: PageLimit, lists: ListObserver
) -> ClientResponse:
    while True:
        request.url = request.url.update_query(limit=limit.objects)
        async with asyncio.timeout(_REQUEST_SECONDS):
            response = await send(request)
        if not response.ok:
            return response
        data = await limit.read(pieces_of(response.content))
        if data is None:
            response.close()
        elif isinstance(response, _Answer):
            response.page = lists.observe(request.url, from_json(data))
            return response


def _authorize(kube: Kube) -> ClientMiddlewareType:
    async def authorize(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
        value = await kube.authorization()
        if value is not None:
            request.headers["Authorization"] = value
        response = await send(request)
        if response.status == _UNAUTHORIZED:  # the client logs in again at once
            await asyncio.sleep(_LOGIN_SECONDS)
        return response

    return authorize


def _guard(kube: Kube) -> ClientMiddlewareType:
    # A TLS connection takes 300 KiB, so concurrent requests share a few.
    free = asyncio.Semaphore(_REQUESTS_AT_ONCE)

    async def guard(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
        if _WATCH in request.url.query:
            response = await send(request)
        else:
            async with free:
                if request.method != "GET":
                    kube.check_leader()
                response = await send(request)
        kube.on_response(request.method, response.status)
        return response

    return guard
