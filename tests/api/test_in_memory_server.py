"""The API server in memory, which the unit tests use, behaves like the real one."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from tests.api.connection import connected
from tests.api.objects import smallest
from tests.api.server import ApiServer
from tests.unit.apiserver import server as in_memory
from tests.unit.apiserver.client import InProcessKube
from tierbench.api.node_class import NODE_CLASSES, NodeClass
from tierbench.kube import pages as page_limits
from tierbench.kube.client import ApiError, ConflictError, Kube, NotFoundError
from tierbench.kube.meta import CONFIG_MAPS

pytestmark = pytest.mark.apiserver

FINALIZER = "tierbench.io/test"
Raw = dict[str, Any]


@pytest.fixture(params=["memory", "real"])
async def kube(request: pytest.FixtureRequest) -> AsyncIterator[Kube]:
    """A client of the API server in memory, and of a real one."""
    if request.param == "memory":
        yield InProcessKube(in_memory.ApiServer())
    else:
        server: ApiServer = request.getfixturevalue("server")
        async with connected(server) as client:
            yield Kube(client)


def config_map(name: str, **metadata: Any) -> Raw:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


async def create(kube: Kube, name: str, **metadata: Any) -> Raw:
    return await kube.create(CONFIG_MAPS, "default", config_map(name, **metadata))


async def apply(kube: Kube, name: str, manager: str, *, force: bool = False, **data: str) -> Raw:
    """Applies a ConfigMap, and returns its data."""
    query = {"fieldManager": manager, **({"force": "true"} if force else {})}
    body = {**config_map(name), **({"data": data} if data else {})}
    path, kind = CONFIG_MAPS.path("default", name), "application/apply-patch+yaml"
    found = await kube.request("PATCH", path, query=query, body=body, content_type=kind)
    data_found: Raw = found.get("data", {})
    return data_found


async def test_apply_conflicts_with_other_managers_and_removes_omitted_fields(kube: Kube, name: str) -> None:
    await create(kube, name)
    assert await apply(kube, name, "one", x="1", y="1") == {"x": "1", "y": "1"}
    with pytest.raises(ConflictError):
        await apply(kube, name, "two", x="2")
    assert await apply(kube, name, "two", force=True, x="2") == {"x": "2", "y": "1"}
    assert await apply(kube, name, "one") == {"x": "2"}


async def test_writes_fail_if_their_preconditions_do_not_hold(kube: Kube, name: str) -> None:
    first = await create(kube, name)
    version = first["metadata"]["resourceVersion"]
    with pytest.raises(ConflictError):
        await create(kube, name)
    changed = await kube.merge(CONFIG_MAPS, "default", name, {"data": {"a": "1", "b": "1"}})
    changed = await kube.merge(CONFIG_MAPS, "default", name, {"data": {"a": "2", "b": None}})
    assert changed["data"] == {"a": "2"}
    for write in (
        kube.replace(CONFIG_MAPS, "default", first),
        kube.merge(CONFIG_MAPS, "default", name, {"metadata": {"resourceVersion": version}}),
        kube.delete(CONFIG_MAPS, "default", name, {"uid": "another"}),
        kube.delete(CONFIG_MAPS, "default", name, {"resourceVersion": version}),
    ):
        with pytest.raises(ConflictError):
            await write
    assert (await kube.get(CONFIG_MAPS, "default", name))["data"] == {"a": "2"}
    assert await kube.delete(CONFIG_MAPS, "default", name, {"uid": first["metadata"]["uid"]}) is None
    assert await kube.delete(CONFIG_MAPS, "default", name) is None


async def test_dry_run_stores_nothing(kube: Kube, name: str) -> None:
    await kube.create(CONFIG_MAPS, "default", config_map(name), dry_run=True)
    with pytest.raises(NotFoundError):
        await kube.get(CONFIG_MAPS, "default", name)


async def test_finalizer_keeps_a_deleted_object(kube: Kube, name: str) -> None:
    created = await create(kube, name, finalizers=[FINALIZER])
    left = await kube.delete(CONFIG_MAPS, "default", name)
    assert left is not None
    assert left["metadata"]["finalizers"] == [FINALIZER]
    await kube.drop_finalizers(CONFIG_MAPS, "default", name, created["metadata"]["uid"])
    with pytest.raises(NotFoundError):
        await kube.get(CONFIG_MAPS, "default", name)


async def test_json_patch_changes_nothing_if_a_test_fails(kube: Kube, name: str) -> None:
    path = CONFIG_MAPS.path("default", name)
    await create(kube, name)
    add: Any = [{"op": "add", "path": "/data", "value": {"a": "1"}}]
    changed = await kube.request("PATCH", path, body=add, content_type="application/json-patch+json")
    assert changed["data"] == {"a": "1"}
    failed: Any = [{"op": "test", "path": "/data/a", "value": "2"}, {"op": "remove", "path": "/data"}]
    with pytest.raises(ApiError) as refused:
        await kube.request("PATCH", path, body=failed, content_type="application/json-patch+json")
    assert refused.value.status == 422


async def test_status_is_written_only_by_its_subresource(kube: Kube, name: str) -> None:
    body = smallest(NodeClass, name)
    created = await kube.create(NODE_CLASSES, None, {**body, "status": {"nodes": 1}})
    assert "nodes" not in created.get("status", {})
    status = {"apiVersion": body["apiVersion"], "kind": "NodeClass", "metadata": {"name": name}, "status": {"nodes": 2}}
    stored = await kube.apply_status(NODE_CLASSES, None, status)
    assert (stored["status"]["nodes"], stored["metadata"]["generation"]) == (2, 1)
    again = await kube.apply_status(NODE_CLASSES, None, status)
    assert again["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"], "nothing has changed"
    spec = {"nodeSelector": {"matchLabels": {"hw": "edge"}}}
    replaced = await kube.replace(NODE_CLASSES, None, {**stored, "spec": spec, "status": {"nodes": 3}})
    assert (replaced["status"]["nodes"], replaced["metadata"]["generation"]) == (2, 2)


async def test_pages_have_one_version_and_a_watch_continues_from_it(
    kube: Kube, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("_FIRST_OBJECTS", "_MOST_OBJECTS"):
        monkeypatch.setattr(page_limits, limit, 2)
    labels = {"test": name}
    for letter in "abc":
        await create(kube, f"{name}-{letter}", labels=labels)
    query = {"labelSelector": f"test={name}"}
    pages = [page async for page in kube.pages(CONFIG_MAPS, "default", query)]
    assert [len(page["items"]) for page in pages] == [2, 1]
    (version,) = {page["metadata"]["resourceVersion"] for page in pages}
    await kube.merge(CONFIG_MAPS, "default", f"{name}-b", {"data": {"a": "1"}})
    await kube.delete(CONFIG_MAPS, "default", f"{name}-c")
    events: list[tuple[str, str]] = []
    selected = {"labelSelector": f"test={name}", "resourceVersion": version}
    async with aclosing(kube.watch(CONFIG_MAPS, "default", selected)) as watch:
        while len(events) < 2:
            event = await anext(watch)
            if event["type"] != "BOOKMARK":
                events.append((event["type"], event["object"]["metadata"]["name"]))
    assert events == [("MODIFIED", f"{name}-b"), ("DELETED", f"{name}-c")]
