"""A client of the API server: plain JSON objects in and out, one connection pool. Its errors."""

import asyncio
import json
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from http.client import responses
from typing import Any, Final

import aiohttp
from kubernetes.aio.client import ApiClient
from pydantic_core import from_json

from tierbench.kube.meta import PODS, Clock, ResourceType, selector
from tierbench.kube.pages import SILENCE_SECONDS, PageLimit

_NOT_FOUND, _CONFLICT = 404, 409
# The first is the message of a server-side apply, the second that of other writes.
_UNKNOWN_FIELD: Final = ("field not declared in schema", "strict decoding error: unknown field")
_PERMANENT: Final = frozenset({400, 413, 422})

REJECTED: Final = frozenset({403, 422})
"""The HTTP status of a request that is invalid, or that a quota or a policy forbids."""

OnResponse = Callable[[str, int], None]
"""Receives the method and the HTTP status of each answered request."""

FIELD_MANAGER: Final = "tierbench"
_REQUESTS_AT_ONCE: Final = 16
TIMEOUT: Final = aiohttp.ClientTimeout(total=20)
_SILENCE_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=SILENCE_SECONDS)
# A log may be silent for the length of a trial, and is silent without end if its node is gone.
_FOLLOW_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=300)
_WATCH_SECONDS: Final = 30
_WATCH_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=_WATCH_SECONDS + 15)
_JSON: Final = "application/json, */*"
_METADATA: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_ERROR_STATUS: Final = 400


class ApiError(Exception):
    """The API server rejected a request. `status` is the HTTP status, `reason` is that of the Status object."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


class NotFoundError(ApiError):
    """The object does not exist."""


class ConflictError(ApiError):
    """The object exists already, or has changed since it was read."""


class UnknownFieldError(ApiError):
    """The object has a field that the schema of its type does not have. The API server stored nothing of it."""


class LeadershipLostError(Exception):
    """This process does not lead, so it must not write."""


REQUEST_ERRORS: Final = (ApiError, aiohttp.ClientError, TimeoutError, OSError, LeadershipLostError)
"""The errors that a request can raise."""


def is_permanent(error: Exception) -> bool:
    """Returns whether the API server rejects the same request again until a schema or a policy changes."""
    return isinstance(error, UnknownFieldError) or (isinstance(error, ApiError) and error.status in _PERMANENT)


def describe_error(error: Exception) -> str:
    """Returns why a request failed, on one short line."""
    if isinstance(error, ApiError):
        return f"{error.status} {responses.get(error.status, error.reason)}"
    if isinstance(error, aiohttp.InvalidURL):
        return "this is no URL"
    cause = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError) and cause.errno and cause.errno > 0:
        return os.strerror(cause.errno)
    return str(cause) or type(cause).__name__


def _error_of(status: int, data: bytes) -> ApiError:
    """Returns the error for an answer with a status of 400 or more."""
    try:
        body = json.loads(data)
        reason, message = str(body.get("reason", "")), str(body.get("message", ""))
    except ValueError:
        reason, message = "", data.decode(errors="replace")[:512]
    if any(words in message for words in _UNKNOWN_FIELD):
        return UnknownFieldError(status, reason, message)
    kinds: dict[int, type[ApiError]] = {_NOT_FOUND: NotFoundError, _CONFLICT: ConflictError}
    return kinds.get(status, ApiError)(status, reason, message)


class Kube:
    """A client of one API server. Requests raise ApiError, or aiohttp's errors if there is no answer.

    `on_response` is called after each answer. `check_leader` raises LeadershipLostError while this process must not
    write.
    """

    def __init__(
        self,
        client: ApiClient,
        on_response: OnResponse = lambda method, status: None,
        timeout: aiohttp.ClientTimeout = TIMEOUT,
        check_leader: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self.on_response = on_response
        self.check_leader = check_leader
        self._timeout = timeout
        self._clock = Clock()
        # A TLS connection takes 300 KiB, so concurrent requests share a few.
        self._free = asyncio.Semaphore(_REQUESTS_AT_ONCE)

    @property
    def address(self) -> str:
        """The URL of the API server."""
        return str(self._client.configuration.host)

    @property
    def connections(self) -> Mapping[str, Any]:
        """The arguments of an `aiohttp.ClientSession` that shares the connections and the proxy of this client."""
        configuration = self._client.configuration
        shared = {"connector_owner": False, "proxy": configuration.proxy}
        return {**configuration.client_session_kwargs, **shared}

    async def authorization(self) -> str | None:
        """Returns the Authorization header of a request, with a token that has not expired; None without a token."""
        bearer = (await self._client.configuration.auth_settings()).get("BearerToken")
        return None if bearer is None else bearer["value"]

    def now(self) -> datetime:
        """Returns the API server's time."""
        return self._clock.now()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        accept: str = _JSON,
    ) -> dict[str, Any]:
        """Sends one request and returns the object that answers it."""
        headers = {"Accept": accept, "Content-Type": content_type}
        async with self._free:
            response = await self._send(method, path, query, body, headers, self._timeout)
            data = await response.read()
        if response.status >= _ERROR_STATUS:
            raise _error_of(response.status, data)
        answer: dict[str, Any] = from_json(data)
        return answer

    async def get(self, kind: ResourceType, namespace: str | None, name: str) -> dict[str, Any]:
        """Returns one object. Raises NotFoundError."""
        return await self.request("GET", kind.path(namespace, name))

    async def find(self, kind: ResourceType, namespace: str, name: str) -> dict[str, Any] | None:
        """Returns one object, or None if there is none. That takes the permission to list, not to get."""
        pages = self.pages(kind, namespace, {"fieldSelector": f"metadata.name={name}"})
        return next(iter([item async for page in pages for item in page["items"] or ()]), None)

    async def list(
        self, kind: ResourceType, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> list[dict[str, Any]]:
        """Returns the objects of a type with all of these labels, of one namespace or of all."""
        return [item async for item in self.each(kind, namespace, labels)]

    async def each(
        self, kind: ResourceType, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Yields the same objects. No more than one page of them is in memory."""
        async for page in self.pages(kind, namespace, {"labelSelector": selector(labels)} if labels else {}):
            for item in page["items"] or ():
                yield item

    async def each_metadata(self, kind: ResourceType, namespace: str | None = None) -> AsyncIterator[dict[str, Any]]:
        """Yields the metadata of each object of a type."""
        async for page in self.pages(kind, namespace, {}, _METADATA):
            for item in page["items"] or ():
                yield item["metadata"]

    async def pages(
        self, kind: ResourceType, namespace: str | None, query: Mapping[str, str], accept: str = _JSON
    ) -> AsyncGenerator[dict[str, Any]]:
        """Yields all objects as Lists of one resourceVersion. `query` holds the selectors."""
        asked, limit = dict(query), PageLimit()
        while True:
            page = await self._page(kind.path(namespace), asked, accept, limit)
            if page is None:
                continue
            yield page
            following = page["metadata"].get("continue")
            if not following:
                return
            asked["continue"] = following

    async def _page(self, path: str, query: Mapping[str, str], accept: str, limit: PageLimit) -> dict[str, Any] | None:
        """Returns a page of a list, or None if it is too large."""
        asked = {**query, "limit": str(limit.objects)}
        async with self._free, self._stream(path, asked, _SILENCE_TIMEOUT, accept) as content:
            data = await limit.read(content.iter_any())
        return None if data is None else from_json(data)

    async def watch(
        self, kind: ResourceType, namespace: str | None, query: Mapping[str, str]
    ) -> AsyncGenerator[dict[str, Any]]:
        """Yields the watch events since the resourceVersion in `query`, until the API server ends the watch.

        The first event is a bookmark of that version: the watch is open.
        """
        bookmarks = {"allowWatchBookmarks": "true", "timeoutSeconds": str(_WATCH_SECONDS)}
        async with self._stream(
            kind.path(namespace), {**query, "watch": "true", **bookmarks}, _WATCH_TIMEOUT
        ) as content:
            yield {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": query["resourceVersion"]}}}
            async for line in lines(content):
                event: dict[str, Any] = from_json(line)
                if event["type"] == "ERROR":
                    status = event["object"]
                    raise ApiError(status["code"], status.get("reason", ""), status.get("message", ""))
                yield event

    async def create(
        self, kind: ResourceType, namespace: str | None, body: Mapping[str, Any], *, dry_run: bool = False
    ) -> dict[str, Any]:
        """Creates an object and returns it. Raises ConflictError if it exists."""
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict", **({"dryRun": "All"} if dry_run else {})}
        return await self.request("POST", kind.path(namespace), query=query, body=body)

    async def replace(self, kind: ResourceType, namespace: str | None, body: Mapping[str, Any]) -> dict[str, Any]:
        """Replaces an object. Raises ConflictError if it has changed since it was read."""
        path = kind.path(namespace, body["metadata"]["name"])
        return await self.request("PUT", path, query={"fieldManager": FIELD_MANAGER}, body=body)

    async def apply_status(self, kind: ResourceType, namespace: str | None, body: Mapping[str, Any]) -> dict[str, Any]:
        """Applies a status on the server side. With a resourceVersion, raises ConflictError if the object has changed.

        Empty objects are left out: if the stored one has fields, the API server would store null instead.
        """
        path = kind.path(namespace, body["metadata"]["name"], "status")
        body = {**body, "status": _without_empty(body["status"])}
        query = {"fieldManager": FIELD_MANAGER, "force": "true", "fieldValidation": "Strict"}
        return await self.request("PATCH", path, query=query, body=body, content_type="application/apply-patch+yaml")

    async def delete(
        self, kind: ResourceType, namespace: str | None, name: str, preconditions: Mapping[str, str] | None = None
    ) -> dict[str, Any] | None:
        """Deletes an object and, in the background, its dependents. Returns it while a finalizer keeps it, else None.

        Raises ConflictError if its uid or resourceVersion differs from `preconditions`.
        """
        body = {"propagationPolicy": "Background", **({"preconditions": preconditions} if preconditions else {})}
        try:
            left = await self.request("DELETE", kind.path(namespace, name), body=body)
        except NotFoundError:
            return None
        return left if "deletionTimestamp" in left["metadata"] else None

    async def drop_finalizers(self, kind: ResourceType, namespace: str, name: str, uid: str) -> None:
        """Removes all finalizers of an object, if it exists. Raises ConflictError if it has another UID."""
        try:
            await self.merge(kind, namespace, name, {"metadata": {"uid": uid, "finalizers": None}})
        except NotFoundError:
            return

    async def merge(
        self, kind: ResourceType, namespace: str | None, name: str, change: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Sends a merge patch. With a resourceVersion, raises ConflictError if the object has changed."""
        path, patch = kind.path(namespace, name), "application/merge-patch+json"
        return await self.request("PATCH", path, query={"fieldManager": FIELD_MANAGER}, body=change, content_type=patch)

    async def log(self, namespace: str, pod: str, container: str, *, follow: bool) -> AsyncGenerator[bytes]:
        """Yields the log of a container from its first line, in pieces; with `follow`, until the container ends."""
        timeout = _FOLLOW_TIMEOUT if follow else _SILENCE_TIMEOUT
        query = {"container": container, **({"follow": "true"} if follow else {})}
        async with self._stream(PODS.path(namespace, pod, "log"), query, timeout) as content:
            async for piece in content.iter_any():
                yield piece

    @asynccontextmanager
    async def _stream(
        self,
        path: str,
        query: Mapping[str, str],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 (aiohttp's own)
        accept: str = "*/*",
    ) -> AsyncIterator[aiohttp.StreamReader]:
        """Yields the body of an answer as a stream."""
        response = await self._send("GET", path, query, None, {"Accept": accept}, timeout)
        try:
            if response.status >= _ERROR_STATUS:
                raise _error_of(response.status, await response.read())
            yield response.content
        finally:
            response.close()

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Mapping[str, Any] | None,
        headers: Mapping[str, str],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 (aiohttp's own)
    ) -> aiohttp.ClientResponse:
        method, url, headers, *_ = await self._client.param_serialize(
            method,
            path,
            query_params=list((query or {}).items()),
            header_params=dict(headers),
            auth_settings=["BearerToken"],
        )
        if method != "GET":
            self.check_leader()
        # The body is plain JSON. Only models of the library need its serialization, which visits every value.
        answer = await self._client.call_api(method, url, headers, body, _request_timeout=timeout)
        response: aiohttp.ClientResponse = answer.response
        self.on_response(method, response.status)
        self._clock.adjust(response.headers.get("Date"))
        return response


async def lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yields lines of any length: aiohttp raises an error for one that is longer than its buffer."""
    begun = bytearray()
    async for piece in content.iter_any():
        *ended, rest = piece.split(b"\n")
        for part in ended:
            yield bytes(begun + part)
            begun.clear()
        begun += rest


def _without_empty(part: Mapping[str, Any]) -> dict[str, Any]:
    filled = {name: _without_empty(value) if isinstance(value, Mapping) else value for name, value in part.items()}
    return {name: value for name, value in filled.items() if value != {}}
