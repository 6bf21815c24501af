"""Connections to an API server: that of the operator, and that of somebody who has a kubeconfig."""

import socket
import struct
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
from aiohttp import AddrInfoType
from kubernetes import config
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.config import ConfigException
from yaml import YAMLError

from tierbench.kube.client import TIMEOUT, Answered, Kube

# Requests share a few connections, by the semaphore of Kube; each log that is followed, and each watch, has its own.
_NO_LIMIT: Final = 0
# What each connection decrypts into, and clears when it is made: 256 KiB by default, 75 MiB for 300 logs.
SSLProtocol.max_size = 16 * 1024
# Whoever waits at a terminal is soon told that nobody is there, and may have a slow line.
_PATIENCE: Final = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=60)
# It bears no types. Not that of kubernetes.aio, which shows no plugin's questions, and renews no token that expires.
_load_incluster_config: Callable[..., None] = config.load_incluster_config
_load_kube_config: Callable[..., None] = config.load_kube_config
_contexts: Callable[..., tuple[list[dict[str, Any]], dict[str, Any]]] = config.list_kube_config_contexts
# The last two: the loader does not check the shape of what it reads.
_UNUSABLE: Final = (ConfigException, OSError, YAMLError, TypeError, AttributeError)


class KubeconfigError(Exception):
    """There is no kubeconfig, or it cannot be used."""


class _Abortive(RESTClientObject):
    """What was written and has not arrived dies with the process: a cut network must not deliver it when it is back."""

    def _create_connector(self) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(limit=self.maxsize, ssl=self.ssl_context, socket_factory=abortive_socket)


def abortive_socket(address: AddrInfoType) -> socket.socket:
    """A socket that the kernel resets when it is closed, with all that waits in it."""
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return made


def _configuration() -> Configuration:
    """Whatever certificate kubectl takes is good enough: from Python 3.13 on many a cluster's is not, by default."""
    configuration = Configuration()
    configuration.disable_strict_ssl_verification = True
    return configuration


@asynccontextmanager
async def connect(
    answered: Answered,
    may_write: Callable[[], None] = lambda: None,
    timeout: aiohttp.ClientTimeout = TIMEOUT,  # noqa: ASYNC109 (aiohttp's own)
) -> AsyncIterator[Kube]:
    """The cluster that this pod runs in, else the one that the kubeconfig points at."""
    configuration = _configuration()
    try:
        _load_incluster_config(client_configuration=configuration)
    except ConfigException:
        _load_kube_config(client_configuration=configuration)
    configuration.connection_pool_maxsize = _NO_LIMIT
    async with ApiClient(configuration) as client:
        client.rest_client = _Abortive(configuration)
        yield Kube(client, answered, timeout, may_write)


@asynccontextmanager
async def connect_by_kubeconfig(path: str | None, context: str | None) -> AsyncIterator[tuple[Kube, str]]:
    """The cluster that a kubeconfig names, and the namespace. Raises KubeconfigError."""
    configuration = _configuration()
    try:
        _load_kube_config(path, context, client_configuration=configuration)
        contexts, active = _contexts(path)
        client = ApiClient(configuration)
    except _UNUSABLE as error:
        raise KubeconfigError(str(error).splitlines()[0].rstrip(".")) from None
    chosen = next((item for item in contexts if item["name"] == context), active)
    async with client:
        yield Kube(client, timeout=_PATIENCE), chosen["context"].get("namespace") or "default"
