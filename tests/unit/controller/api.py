"""An API server in memory that has what a reconciler needs."""

import itertools
from collections.abc import AsyncGenerator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from kubernetes.aio.client import ApiClient

from tierbench.api.result import RESULTS
from tierbench.controller.context import Context
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.client import Kube
from tierbench.kube.errors import ApiError, ConflictError, NotFoundError
from tierbench.kube.resources import JOBS, LEASES, PODS, SERVICES

Raw = dict[str, Any]
_NOT_FOUND, _CONFLICT = 404, 409


@cache
def _client() -> ApiClient:
    """One for all, as each would read all certificates of this machine, and none is asked."""
    return ApiClient()


class Api(Kube):
    """Objects by their paths. `refuse` says what is answered instead, by method and the end of a path."""

    def __init__(self) -> None:
        super().__init__(_client())
        self.objects: dict[str, Raw] = {}
        self.logs: dict[str, bytes | ApiError] = {}
        self.refuse: dict[tuple[str, str], ApiError] = {}
        self.events: list[tuple[str, str]] = []
        self.deleted: list[str] = []
        self.ahead = timedelta(0)
        self._started = datetime.now(UTC)
        self._uids = itertools.count(1)
        self._versions = itertools.count(1)

    def now(self) -> datetime:
        """A time that stands still until a test moves it ahead."""
        return self._started + self.ahead

    def put(self, collection: str, raw: Raw) -> Raw:
        """Stores an object as somebody else created it."""
        uid = f"uid-of-{next(self._uids)}"
        metadata = {
            "uid": uid,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **raw["metadata"],
            **self._placed(collection),
        }
        stored = {**raw, "metadata": metadata}
        self.objects[f"{collection}/{metadata['name']}"] = stored
        return stored

    def tell(self, context: Context) -> None:
        """Has the operator see what there is, as watches would."""
        for resource in (
            PODS,
            JOBS,
            SERVICES,
            LEASES,
            RESULTS,
            *(one.KIND.resource for one in BENCHMARKS.values()),
        ):
            for name in context.objects[resource].names():
                context.objects[resource].remove(name)
            for path, raw in self.objects.items():
                api, _, rest = path.strip("/").partition("/namespaces/")
                if (api, rest.split("/")[1:2]) == (resource.api, [resource.plural]):
                    context.objects[resource].observe(raw)
                    if resource == RESULTS:
                        context.results.update_result(raw, deleted=False)
        for namespace, known in context.results.known():
            if RESULTS.path(namespace, known) not in self.objects:
                context.results.update_result({"metadata": {"namespace": namespace, "name": known}}, deleted=True)

    def _placed(self, collection: str) -> dict[str, str]:
        _, _, namespace = collection.rpartition("/namespaces/")
        placed = {"namespace": namespace.split("/")[0]} if namespace else {}
        return {**placed, "resourceVersion": str(next(self._versions))}

    def names(self, plural: str) -> list[str]:
        """Of all objects of a type."""
        return [path.rpartition("/")[2] for path in self.objects if path.split("/")[-2] == plural]

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Raw:
        """One request."""
        for (refused, end), error in self.refuse.items():
            if method == refused and path.endswith(end):
                raise error
        match method:
            case "GET" if path in self.objects:
                return self.objects[path]
            case "GET" if path.rsplit("/", maxsplit=1)[-1].endswith("s"):
                return {"items": self._list(path, (query or {}).get("labelSelector", "")), "metadata": {}}
            case "POST" if (query or {}).get("dryRun"):
                return dict(body or {})
            case "POST":
                return self._create(path, dict(body or {}))
            case "PUT":
                return self._replace(path, dict(body or {}))
            case "PATCH":
                return self._patch(path.removesuffix("/status"), dict(body or {}))
            case "DELETE":
                return self._delete(path, (body or {}).get("preconditions", {}))
        raise NotFoundError(_NOT_FOUND, "NotFound", f"{path} not found")

    def _list(self, path: str, selector: str) -> list[Raw]:
        wanted = [pair.split("=") for pair in selector.split(",") if pair]
        items = [item for key, item in self.objects.items() if key.rpartition("/")[0] == path]
        return [
            item for item in items if all(item["metadata"].get("labels", {}).get(key) == value for key, value in wanted)
        ]

    def _create(self, path: str, body: Raw) -> Raw:
        if path.endswith("/events"):
            self.events.append((body["reason"], body["message"]))
            return body
        if f"{path}/{body['metadata']['name']}" in self.objects:
            raise ConflictError(_CONFLICT, "AlreadyExists", f"{body['metadata']['name']} exists already")
        return self.put(path, body)

    def _replace(self, path: str, body: Raw) -> Raw:
        found = self._found(path, body["metadata"])
        return self.put(path.rpartition("/")[0], {**body, "metadata": {**found["metadata"], **body["metadata"]}})

    def _found(self, path: str, wanted: Mapping[str, str]) -> Raw:
        """What is there, of the UID and the version that are wanted, if any are."""
        found = self.objects.get(path)
        if found is None:
            raise NotFoundError(_NOT_FOUND, "NotFound", f"{path} not found")
        for key in ("uid", "resourceVersion"):
            if wanted.get(key, found["metadata"][key]) != found["metadata"][key]:
                raise ConflictError(_CONFLICT, "Conflict", f"{key} mismatch")
        return found

    def _patch(self, path: str, body: Raw) -> Raw:
        found = self._found(path, body["metadata"])
        metadata = {**found["metadata"], **body["metadata"], "resourceVersion": str(next(self._versions))}
        self.objects[path] = found = {**found, **body, "metadata": metadata}
        return found

    def _delete(self, path: str, preconditions: Mapping[str, str]) -> Raw:
        self._found(path, preconditions)
        self.deleted.append(path)
        return self.objects.pop(path)

    async def log(self, namespace: str, pod: str, container: str, *, follow: bool) -> AsyncGenerator[bytes]:
        """What was put for the pod."""
        found = self.logs.get(pod, b"")
        if isinstance(found, ApiError):
            raise found
        yield found
