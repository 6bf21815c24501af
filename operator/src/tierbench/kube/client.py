"""Requests to the API server: plain JSON objects in and out, one connection pool."""

import asyncio
import json
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from http.client import responses
from typing import Any, Final

import aiohttp
from kubernetes.aio.client import ApiClient

from tierbench.api.model import GROUP, VERSION, Kind
from tierbench.domain.definitions import Definitions
from tierbench.kube.clock import Clock
from tierbench.kube.fence import DeposedError

Answered = Callable[[str, int], None]

FIELD_MANAGER: Final = "tierbench"
_REQUESTS_AT_ONCE: Final = 16
TIMEOUT: Final = aiohttp.ClientTimeout(total=20)
# A stream may be silent for as long as a trial, or for ever, if the node has gone: it is read anew now and then.
_FOLLOW_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=300)
_WATCH_SECONDS: Final = 30
_WATCH_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=_WATCH_SECONDS + 15)
_PAGE: Final = 100
_JSON: Final = "application/json, */*"
_METADATA: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_NOT_FOUND, _CONFLICT = 404, 409
_REFUSED_FROM = 400
_READS: Final = frozenset({"GET"})
_UNKNOWN_FIELD = ("field not declared in schema", "strict decoding error: unknown field")  # of an apply, of others


class ApiError(Exception):
    """The API server refused a request. `status` is the HTTP status, `reason` the Status object's."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


class NotFoundError(ApiError):
    """There is no such object."""


class ConflictError(ApiError):
    """The object exists already, or has changed since it was read."""


class OccupiedError(ApiError):
    """Somebody else's object bears the name that one was to have."""

    def __init__(self, kind: str, name: str) -> None:
        message = (
            f"{kind} {name} exists already and is not this benchmark's: delete it, or give one of them another name"
        )
        super().__init__(_CONFLICT, "Occupied", message)


class UnknownFieldError(ApiError):
    """The object has a field that its definition does not know, as of an older version: none of it is stored."""


UNANSWERED: Final = (ApiError, aiohttp.ClientError, TimeoutError, OSError, DeposedError)
"""What a request may end with."""


REFUSED: Final = frozenset({403, 422})
"""The status of a request that makes no sense, or that a quota or a policy forbids."""


_NEVER_TAKEN: Final = frozenset({400, 413, 422})


def is_never_taken(error: Exception) -> bool:
    """Whether a request was refused for what it is: the same will be refused again, while definitions are the same."""
    return isinstance(error, UnknownFieldError) or (isinstance(error, ApiError) and error.status in _NEVER_TAKEN)


def why(error: Exception) -> str:
    """Why a request was not answered, in a few words."""
    if isinstance(error, ApiError):
        return f"{error.status} {responses.get(error.status, error.reason)}"
    if isinstance(error, aiohttp.InvalidURL):
        return "this is no URL"
    cause = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError) and cause.errno and cause.errno > 0:
        return os.strerror(cause.errno)
    return str(cause) or type(cause).__name__


@dataclass(frozen=True)
class ResourceType:
    """Where objects of one type are served."""

    api: str
    plural: str

    @classmethod
    def of(cls, kind: Kind) -> "ResourceType":
        """That of one of our own kinds."""
        return cls(f"apis/{GROUP}/{VERSION}", kind.plural)

    @property
    def group_and_version(self) -> tuple[str, str]:
        """The group is empty for the core's types."""
        group, _, version = self.api.partition("/")[2].rpartition("/")
        return group, version

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """The path of a collection, an object or a part of one."""
        parts = [self.api, *(["namespaces", namespace] if namespace else []), self.plural]
        return "/".join(["", *parts, *([name] if name else []), *([subresource] if subresource else [])])


NODES: Final = ResourceType("api/v1", "nodes")
PODS: Final = ResourceType("api/v1", "pods")
SERVICES: Final = ResourceType("api/v1", "services")
CONFIG_MAPS: Final = ResourceType("api/v1", "configmaps")
SECRETS: Final = ResourceType("api/v1", "secrets")
VOLUME_CLAIMS: Final = ResourceType("api/v1", "persistentvolumeclaims")
NETWORK_POLICIES: Final = ResourceType("apis/networking.k8s.io/v1", "networkpolicies")
EVENTS: Final = ResourceType("api/v1", "events")
JOBS: Final = ResourceType("apis/batch/v1", "jobs")
CLUSTER_ROLES: Final = ResourceType("apis/rbac.authorization.k8s.io/v1", "clusterroles")
LEASES: Final = ResourceType("apis/coordination.k8s.io/v1", "leases")
NODE_CLASSES: Final = ResourceType(f"apis/{GROUP}/{VERSION}", "nodeclasses")
RESULTS: Final = ResourceType(f"apis/{GROUP}/{VERSION}", "benchmarkresults")
TRACES: Final = ResourceType(f"apis/{GROUP}/{VERSION}", "benchmarktraces")
ADVICES: Final = ResourceType(f"apis/{GROUP}/{VERSION}", "placementadvices")


def type_of(api_version: str, kind: str) -> ResourceType:
    """Where objects of a kind are served. Whatever is made has a regular plural."""
    singular = kind.lower()
    plural = f"{singular[:-1]}ies" if singular.endswith("y") else f"{singular}s"
    return ResourceType(f"{'apis' if '/' in api_version else 'api'}/{api_version}", plural)


def selector(labels: Mapping[str, str]) -> str:
    """Labels as a labelSelector parameter."""
    return ",".join(f"{key}={value}" for key, value in labels.items())


class Kube:
    """A connection to one API server. Errors of transport are those of aiohttp; refusals are ApiError.

    `answered` is told of each answer: the method of the request, and the HTTP status. `may_write` raises DeposedError
    while nothing must be written.
    """

    def __init__(
        self,
        client: ApiClient,
        answered: Answered = lambda method, status: None,
        timeout: aiohttp.ClientTimeout = TIMEOUT,
        may_write: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._answered = answered
        self._may_write = may_write
        self._timeout = timeout
        self._clock = Clock()
        self.definitions = Definitions()
        """What is served of our kinds: no more than that is written."""
        # A TLS connection needs 300 KiB here: a hundred benchmarks that look at once must share a few.
        self._free = asyncio.Semaphore(_REQUESTS_AT_ONCE)

    @property
    def address(self) -> str:
        """Where the API server is."""
        return str(self._client.configuration.host)

    def now(self) -> datetime:
        """The API server's time."""
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
        """One request, and the object that answers it."""
        headers = {"Accept": accept, "Content-Type": content_type}
        async with self._free:
            response = await self._send(method, path, query, body, headers, self._timeout)
            data = await response.read()
        if response.status >= _REFUSED_FROM:
            raise _error(response.status, data)
        answer: dict[str, Any] = json.loads(data)
        return answer

    async def get(self, kind: ResourceType, namespace: str | None, name: str) -> dict[str, Any]:
        """One object. Raises NotFoundError."""
        return await self.request("GET", kind.path(namespace, name))

    async def list(
        self, kind: ResourceType, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> list[dict[str, Any]]:
        """All objects of a type, in a namespace or everywhere, that bear all these labels."""
        return [item async for item in self.each(kind, namespace, labels)]

    async def each(
        self, kind: ResourceType, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """The same one by one, read in pages, so that many large objects are never all in memory."""
        async for page in self.pages(kind, namespace, {"labelSelector": selector(labels)} if labels else {}):
            for item in page["items"] or ():
                yield item

    async def each_metadata(self, kind: ResourceType, namespace: str | None = None) -> AsyncIterator[dict[str, Any]]:
        """The metadata of each object, without the rest."""
        async for page in self.pages(kind, namespace, {}, _METADATA):
            for item in page["items"] or ():
                yield item["metadata"]

    async def pages(
        self, kind: ResourceType, namespace: str | None, query: Mapping[str, str], accept: str = _JSON
    ) -> AsyncIterator[dict[str, Any]]:
        """All objects as Lists, all of one resourceVersion; `query` has the selectors."""
        asked = {"limit": str(_PAGE), **query}
        while True:
            page = await self.request("GET", kind.path(namespace), query=asked, accept=accept)
            yield page
            following = page["metadata"].get("continue")
            if not following:
                return
            asked["continue"] = following

    async def watch(
        self, kind: ResourceType, namespace: str | None, query: Mapping[str, str]
    ) -> AsyncGenerator[dict[str, Any]]:
        """What happens to objects since the resourceVersion that is in `query`, until the API server ends it."""
        bookmarks = {"allowWatchBookmarks": "true", "timeoutSeconds": str(_WATCH_SECONDS)}
        async with self._stream(
            kind.path(namespace), {**query, "watch": "true", **bookmarks}, _WATCH_TIMEOUT
        ) as content:
            async for line in _lines(content):
                event: dict[str, Any] = json.loads(line)
                if event["type"] == "ERROR":
                    status = event["object"]
                    raise ApiError(status["code"], status.get("reason", ""), status.get("message", ""))
                yield event

    async def create(
        self, kind: ResourceType, namespace: str | None, body: Mapping[str, Any], *, dry_run: bool = False
    ) -> dict[str, Any]:
        """A new object, or what it would be. Raises ConflictError if it exists."""
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict", **({"dryRun": "All"} if dry_run else {})}
        return await self.request("POST", kind.path(namespace), query=query, body=self.definitions.fitted(body))

    async def replace(self, kind: ResourceType, namespace: str | None, body: Mapping[str, Any]) -> dict[str, Any]:
        """Another version of an object. Raises ConflictError if it has changed since."""
        path = kind.path(namespace, body["metadata"]["name"])
        return await self.request("PUT", path, query={"fieldManager": FIELD_MANAGER}, body=body)

    async def apply_status(self, kind: ResourceType, namespace: str | None, body: Mapping[str, Any]) -> dict[str, Any]:
        """Server-side apply of the status. With a resourceVersion, ConflictError if the object has changed since.

        Empty objects are left out of it: where something was in them, apply would make null of them.
        """
        path, body = kind.path(namespace, body["metadata"]["name"], "status"), self.definitions.fitted(body)
        body["status"] = _without_empty(body["status"])
        query = {"fieldManager": FIELD_MANAGER, "force": "true", "fieldValidation": "Strict"}
        return await self.request("PATCH", path, query=query, body=body, content_type="application/apply-patch+yaml")

    async def delete(
        self, kind: ResourceType, namespace: str | None, name: str, preconditions: Mapping[str, str] | None = None
    ) -> dict[str, Any] | None:
        """Deletes an object, unless it is gone already. What it owns goes with it, in the background.

        The object while it still goes, None once it is gone. ConflictError if its uid or resourceVersion is not as
        `preconditions` say.
        """
        body = {"propagationPolicy": "Background", **({"preconditions": preconditions} if preconditions else {})}
        try:
            left = await self.request("DELETE", kind.path(namespace, name), body=body)
        except NotFoundError:
            return None
        return left if "deletionTimestamp" in left["metadata"] else None

    async def drop_finalizers(self, kind: ResourceType, namespace: str, name: str, uid: str) -> None:
        """Takes all finalizers off an object, unless it is gone already. ConflictError if it has another UID."""
        try:
            await self.merge(kind, namespace, name, {"metadata": {"uid": uid, "finalizers": None}})
        except NotFoundError:
            return

    async def merge(self, kind: ResourceType, namespace: str, name: str, change: Mapping[str, Any]) -> dict[str, Any]:
        """Changes an object by a merge patch. With a resourceVersion, ConflictError if it has changed since."""
        path, patch = kind.path(namespace, name), "application/merge-patch+json"
        return await self.request("PATCH", path, query={"fieldManager": FIELD_MANAGER}, body=change, content_type=patch)

    async def log(self, namespace: str, pod: str, container: str, *, follow: bool) -> AsyncGenerator[bytes]:
        """What a container has printed, from the first line, in pieces; followed, until it or the connection ends."""
        timeout = _FOLLOW_TIMEOUT if follow else self._timeout
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
    ) -> AsyncIterator[aiohttp.StreamReader]:
        """What an answer holds, as it comes."""
        response = await self._send("GET", path, query, None, {"Accept": "*/*"}, timeout)
        try:
            if response.status >= _REFUSED_FROM:
                raise _error(response.status, await response.read())
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
        request = await self._client.param_serialize(
            method,
            path,
            query_params=list((query or {}).items()),
            header_params=dict(headers),
            body=body,
            auth_settings=["BearerToken"],
        )
        if method not in _READS:
            self._may_write()
        answer = await self._client.call_api(*request, _request_timeout=timeout)
        response: aiohttp.ClientResponse = answer.response
        self._answered(method, response.status)
        self._clock.hear(response.headers.get("Date"))
        return response


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Lines of any length: aiohttp's own end with an error where one is longer than its buffer."""
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


def _error(status: int, data: bytes) -> ApiError:
    try:
        body = json.loads(data)
        reason, message = str(body.get("reason", "")), str(body.get("message", ""))
    except ValueError:
        reason, message = "", data.decode(errors="replace")[:512]
    if any(words in message for words in _UNKNOWN_FIELD):
        return UnknownFieldError(status, reason, message)
    kinds: dict[int, type[ApiError]] = {_NOT_FOUND: NotFoundError, _CONFLICT: ConflictError}
    return kinds.get(status, ApiError)(status, reason, message)
