"""An API server on loopback, as far as kopf asks one: discovery, lists in pages, watches, finalizers, JSON patches."""

import asyncio
import itertools
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import jsonpatch
from aiohttp import web

from tierbench.api.node_class import NODE_CLASSES
from tierbench.api.placement_advice import ADVICES
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.resources import JOBS, PODS, SERVICES, ResourceType

Raw = dict[str, Any]
TYPES = (ADVICES, NODE_CLASSES, JOBS, PODS, SERVICES, *(model.KIND.resource for model in BENCHMARKS.values()))
_DISCOVERED = (
    *TYPES,
    ResourceType("api/v1", "namespaces"),
    ResourceType("apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
)
_KINDS = {model.KIND.plural: name for name, model in BENCHMARKS.items()}
_OF_THE_CLUSTER = frozenset({"nodeclasses", "namespaces", "customresourcedefinitions"})
_GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}


class ApiServer:
    """Objects by type, namespace and name. Every change has the next resourceVersion."""

    def __init__(self) -> None:
        self.url = ""
        self.objects: dict[tuple[str, str, str], Raw] = {}
        self.requests: list[tuple[str, str]] = []
        self.writes: list[tuple[str, str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.refuse: Callable[[str, str], int | None] = lambda method, path: None
        self.page = 2
        self._log: list[tuple[int, str, str, Raw]] = []
        self._oldest = 0
        self._uids = itertools.count(1)
        self._version = 1
        self._changed = asyncio.Event()
        self._watching = asyncio.Event()
        self._watching.set()
        self._closed = 0

    def get(self, resource: ResourceType, name: str, namespace: str = "default") -> Raw | None:
        return self.objects.get((resource.plural, namespace, name))

    def put(self, resource: ResourceType, raw: Raw) -> Raw:
        """Stores a new or changed object, as somebody else writes it."""
        metadata = {"namespace": "default", "generation": 1, **raw["metadata"]}
        key = (resource.plural, metadata["namespace"], metadata["name"])
        before = self.objects.get(key)
        metadata["uid"] = before["metadata"]["uid"] if before is not None else f"uid-{next(self._uids)}"
        return self._store("ADDED" if before is None else "MODIFIED", key, {**raw, "metadata": metadata})

    def change(self, resource: ResourceType, name: str, **parts: Any) -> Raw:
        """Replaces parts of an object."""
        before = self.objects[resource.plural, "default", name]
        return self._store("MODIFIED", (resource.plural, "default", name), {**before, **parts})

    def delete(self, resource: ResourceType, name: str) -> None:
        """As `kubectl delete`."""
        key = (resource.plural, "default", name)
        raw = self.objects[key]
        metadata = {**raw["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
        if raw["metadata"].get("finalizers"):
            self._store("MODIFIED", key, {**raw, "metadata": metadata})
        else:
            self._remove(key)

    def force_delete(self, resource: ResourceType, name: str) -> None:
        """As one who takes the finalizers off first."""
        self._remove((resource.plural, "default", name))

    def _remove(self, key: tuple[str, str, str]) -> None:
        self._store("DELETED", key, self.objects[key])
        del self.objects[key]

    def _store(self, change: str, key: tuple[str, str, str], raw: Raw) -> Raw:
        self._version += 1
        stored: Raw = {**raw, "metadata": {**raw["metadata"], "resourceVersion": str(self._version)}}
        self.objects[key] = stored
        self._log.append((self._version, change, key[0], stored))
        self._wake()
        return stored

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def interrupt_watches(self) -> None:
        """Ends all watches, and lets none begin until `resume_watches`."""
        self._watching.clear()
        self._closed += 1
        self._wake()

    def resume_watches(self, *, expired: bool) -> None:
        """Lets watches go on. `expired`: what has happened since is told of to nobody, but by 410."""
        if expired:
            self._oldest = self._version
        self._watching.set()

    async def until(self, holds: Callable[[], object], seconds: float = 20) -> None:
        """Waits until something holds, which some request or a handler makes true."""
        async with asyncio.timeout(seconds):
            while not holds():  # noqa: ASYNC110 (handlers set no event)
                await asyncio.sleep(0.01)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        self.requests.append((request.method, request.path_qs))
        self.headers.append(dict(request.headers))
        if (status := self.refuse(request.method, path)) is not None:
            return _status(status)
        if request.method == "PATCH":
            return await self._patch(request)
        if (found := self._discovery(path)) is not None:
            return web.json_response(found)
        plural, namespace = self._collection(path)
        if "watch" in request.query:
            return await self._watch(request, plural, namespace)
        return self._list(request, plural, namespace)

    def _discovery(self, path: str) -> Raw | None:
        groups = defaultdict[tuple[str, str], list[ResourceType]](list)
        for each in _DISCOVERED:
            groups[each.group_and_version].append(each)
        if path == "/api":
            return {"versions": ["v1"]}
        if path == "/apis":
            versions = {group: {"groupVersion": f"{group}/{name}", "version": name} for group, name in groups if group}
            return {
                "groups": [
                    {"name": group, "versions": [version], "preferredVersion": version}
                    for group, version in versions.items()
                ]
            }
        for types in groups.values():
            if path == f"/{types[0].api}":
                return {"resources": [item for each in types for item in _described(each)]}
        return None

    def _collection(self, path: str) -> tuple[str, str]:
        head, _, plural = path.rpartition("/")
        return plural, head.partition("/namespaces/")[2]

    def _list(self, request: web.Request, plural: str, namespace: str) -> web.Response:
        items = [raw for key, raw in sorted(self.objects.items()) if key[0] == plural and namespace in {"", key[1]}]
        start = int(request.query.get("continue", "0"))
        end = start + min(int(request.query.get("limit", "1000")), self.page)
        more = {"continue": str(end)} if end < len(items) else {}
        return web.json_response(
            {"metadata": {"resourceVersion": str(self._version), **more}, "items": items[start:end]}
        )

    async def _watch(self, request: web.Request, plural: str, namespace: str) -> web.StreamResponse:
        await self._watching.wait()
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        after, closed = int(request.query["resourceVersion"]), self._closed
        if after < self._oldest:
            await response.write(json.dumps(_GONE).encode() + b"\n")
            return response
        while closed == self._closed:
            changed = self._changed
            for version, change, where, raw in self._log:
                if version > after and where == plural and namespace in {"", raw["metadata"]["namespace"]}:
                    await response.write(json.dumps({"type": change, "object": raw}).encode() + b"\n")
            after = self._version
            await changed.wait()
        return response

    async def _patch(self, request: web.Request) -> web.Response:
        operations = await request.json()
        self.writes.append((request.method, request.path, operations))
        parts = request.path.split("/")
        key = (parts[-2], parts[-3], parts[-1])
        if key not in self.objects:
            return _status(404)
        try:
            changed = jsonpatch.apply_patch(self.objects[key], operations)
        except jsonpatch.JsonPatchException:
            return _status(422)
        stored = self._store("MODIFIED", key, changed)
        if "deletionTimestamp" in stored["metadata"] and not stored["metadata"].get("finalizers"):
            self._remove(key)
        return web.json_response(stored)


def _described(resource: ResourceType) -> Iterator[Raw]:
    described = {
        "name": resource.plural,
        "singularName": "",
        "kind": _KINDS.get(resource.plural, resource.plural),
        "namespaced": resource.plural not in _OF_THE_CLUSTER,
        "verbs": ["list", "watch", "patch"],
    }
    yield described
    yield {**described, "name": f"{resource.plural}/status"}


def _status(code: int) -> web.Response:
    return web.json_response(
        {"kind": "Status", "apiVersion": "v1", "code": code, "reason": "", "message": "no"}, status=code
    )


@asynccontextmanager
async def api_server() -> AsyncIterator[ApiServer]:
    """Serves while the context lasts."""
    server = ApiServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.url = site.name.rsplit(":", 1)[0] + f":{runner.addresses[0][1]}"
        yield server
    finally:
        server.interrupt_watches()
        server.resume_watches(expired=False)
        await runner.cleanup()
