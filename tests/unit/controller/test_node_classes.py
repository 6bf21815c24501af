"""Invalid nodes and node classes affect nothing else, and statuses are written once."""

from typing import Any

import pytest

from tests.unit.controller.api import Api
from tierbench.api.node_class import NODE_CLASSES
from tierbench.controller.node_classes import ClusterView
from tierbench.kube.errors import ApiError, ConflictError
from tierbench.kube.resources import NODES


def node(name: str, memory: str = "4Gi") -> dict[str, Any]:
    """A Ready node labelled hw=NAME."""
    ready = {"type": "Ready", "status": "True"}
    status = {"conditions": [ready], "capacity": {"cpu": "4", "memory": memory}}
    return {"metadata": {"name": name, "labels": {"hw": name}}, "spec": {}, "status": status}


def node_class(name: str) -> dict[str, Any]:
    """Of the nodes labelled hw=NAME."""
    return {"metadata": {"name": name}, "spec": {"nodeSelector": {"matchLabels": {"hw": name}}}}


@pytest.fixture
def api() -> Api:
    api = Api()
    for name in ("a", "b"):
        api.put(NODES.path(None), node(name))
        api.put(NODE_CLASSES.path(None), node_class(name))
    return api


def seen(api: Api) -> ClusterView:
    cluster = ClusterView()
    for path, raw in api.objects.items():
        observe = cluster.observe_node if path.startswith(f"{NODES.path(None)}/") else cluster.observe_class
        observe(raw, deleted=False)
    return cluster


async def test_an_odd_node_or_class_costs_itself_alone(api: Api) -> None:
    """A Node of 1e3 or 1Pi bytes, or a status of another version, kept the operator from starting."""
    api.put(NODES.path(None), node("odd", "plenty"))
    api.put(NODES.path(None), node("large", "1Pi"))
    api.put(NODES.path(None), node("small", "1e3"))
    api.put(NODE_CLASSES.path(None), {**node_class("odd"), "status": {"nodes": "many"}})
    cluster = seen(api)
    assert sorted(cluster.nodes) == ["a", "b", "large", "small"]
    assert (cluster.nodes["large"].memory_bytes, cluster.nodes["small"].memory_bytes) == (2**50, 1000)
    assert sorted(cluster.classes) == ["a", "b"]


async def test_a_class_whose_status_is_refused_starves_no_other(api: Api) -> None:
    cluster = seen(api)
    api.refuse["PATCH", "/a/status"] = ApiError(422, "Invalid", "no")
    with pytest.raises(ApiError):
        await cluster.write_class_statuses(api)
    assert api.objects[NODE_CLASSES.path(None, "b")]["status"]["nodes"] == 1


async def test_a_node_that_says_too_much_costs_no_status(api: Api) -> None:
    """It would end the task that writes them, and with it the operator."""
    for name in ("a", "odd-1", "odd-2", "odd-3", "odd-4"):
        raw = node("a") | {"status": {"nodeInfo": {"architecture": name * 100}}}
        api.put(NODES.path(None), raw | {"metadata": {"name": name, "labels": {"hw": "a"}}})
    cluster = seen(api)
    await cluster.write_class_statuses(api)
    assert len(cluster.nodes["odd-1"].architecture) == 32
    assert "status" not in api.objects[NODE_CLASSES.path(None, "a")]
    assert api.objects[NODE_CLASSES.path(None, "b")]["status"]["nodes"] == 1


async def test_a_class_whose_status_is_never_taken_is_not_written_again_until_something_has_changed(api: Api) -> None:
    cluster = seen(api)
    api.refuse["PATCH", "/a/status"] = ApiError(422, "Invalid", "no")
    with pytest.raises(ApiError):
        await cluster.write_class_statuses(api)
    await cluster.write_class_statuses(api)
    cluster.retry_rejected()
    with pytest.raises(ApiError):
        await cluster.write_class_statuses(api)
    cluster.observe_node(node("c") | {"metadata": {"name": "c", "labels": {"hw": "a"}}}, deleted=False)
    with pytest.raises(ApiError):
        await cluster.write_class_statuses(api)


async def test_a_status_that_another_operator_has_written_since_is_not_overwritten(api: Api) -> None:
    cluster = seen(api)
    path = NODE_CLASSES.path(None, "a")
    api.put(NODE_CLASSES.path(None), {**api.objects[path], "status": {"nodes": 7}})
    with pytest.raises(ConflictError):
        await cluster.write_class_statuses(api)
    assert api.objects[path]["status"] == {"nodes": 7}
    cluster.observe_class(api.objects[path], deleted=False)
    await cluster.write_class_statuses(api)
    assert api.objects[path]["status"]["nodes"] == 1
