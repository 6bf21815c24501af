"""Invalid nodes and node classes affect nothing else, and statuses are written once."""

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.apiserver.client import InProcessKube
from tests.unit.apiserver.server import ApiServer
from tierbench.api.node_class import NODE_CLASSES
from tierbench.controller.node_classes import ClusterView
from tierbench.kube.client import ApiError, ConflictError
from tierbench.kube.meta import NODES, format_time


def node(name: str, memory: str = "4Gi") -> dict[str, Any]:
    """A Ready node labelled hw=NAME."""
    ready = {"type": "Ready", "status": "True"}
    status = {"conditions": [ready], "capacity": {"cpu": "4", "memory": memory}}
    return {"metadata": {"name": name, "labels": {"hw": name}}, "spec": {}, "status": status}


def node_class(name: str) -> dict[str, Any]:
    """A class of the nodes labelled hw=NAME."""
    return {"metadata": {"name": name}, "spec": {"nodeSelector": {"matchLabels": {"hw": name}}}}


@pytest.fixture
def api() -> ApiServer:
    """An API server with a node and a class for each of a and b."""
    api = ApiServer()
    for name in ("a", "b"):
        api.put(NODES, node(name))
        api.put(NODE_CLASSES, node_class(name))
    return api


def view_of(api: ApiServer) -> ClusterView:
    """Returns the view of an operator that has listed nodes and classes."""
    cluster = ClusterView()
    for raw in api.matching(NODES.path(None)):
        cluster.observe_node(raw, api.now(), deleted=False)
    for raw in api.matching(NODE_CLASSES.path(None)):
        cluster.observe_class(raw, deleted=False)
    return cluster


def node_count(api: ApiServer, name: str) -> int | None:
    """Returns the number of nodes in the status of a class, or None."""
    raw = api.get(NODE_CLASSES, name)
    assert raw is not None
    nodes: int | None = raw.get("status", {}).get("nodes")
    return nodes


async def test_invalid_node_or_class_affects_no_other(api: ApiServer) -> None:
    """A node of 1e3 or 1Pi bytes, or the status of another version, must not stop the operator."""
    api.put(NODES, node("odd", "plenty"))
    api.put(NODES, node("large", "1Pi"))
    api.put(NODES, node("small", "1e3"))
    api.put(NODE_CLASSES, {**node_class("odd"), "status": {"nodes": "many"}})
    cluster = view_of(api)
    assert sorted(cluster.nodes) == ["a", "b", "large", "small"]
    assert (cluster.nodes["large"].memory_bytes, cluster.nodes["small"].memory_bytes) == (2**50, 1000)
    assert sorted(cluster.classes) == ["a", "b"]


async def test_rejected_status_of_a_class_does_not_prevent_other_writes(api: ApiServer) -> None:
    cluster = view_of(api)
    api.refuse["PATCH", "/a/status"] = ApiError(422, "Invalid", "no")
    with pytest.raises(ApiError):
        await cluster.write_class_statuses(InProcessKube(api))
    assert node_count(api, "b") == 1


async def test_too_long_field_of_a_node_prevents_no_other_status(api: ApiServer) -> None:
    """The error would end the task that writes statuses, and with it the operator."""
    for name in ("a", "odd-1", "odd-2", "odd-3", "odd-4"):
        raw = node("a") | {"status": {"nodeInfo": {"architecture": name * 100}}}
        api.put(NODES, raw | {"metadata": {"name": name, "labels": {"hw": "a"}}})
    cluster = view_of(api)
    await cluster.write_class_statuses(InProcessKube(api))
    assert len(cluster.nodes["odd-1"].architecture) == 32
    assert node_count(api, "a") is None
    assert node_count(api, "b") == 1


async def test_rejected_status_is_written_again_only_after_a_change(api: ApiServer) -> None:
    cluster = view_of(api)
    api.refuse["PATCH", "/a/status"] = ApiError(422, "Invalid", "no")
    with pytest.raises(ApiError):
        await cluster.write_class_statuses(InProcessKube(api))
    await cluster.write_class_statuses(InProcessKube(api))
    cluster.retry_rejected()
    with pytest.raises(ApiError):
        await cluster.write_class_statuses(InProcessKube(api))
    cluster.observe_node(node("c") | {"metadata": {"name": "c", "labels": {"hw": "a"}}}, api.now(), deleted=False)
    with pytest.raises(ApiError):
        await cluster.write_class_statuses(InProcessKube(api))


async def test_status_that_another_leader_has_written_is_not_overwritten(api: ApiServer) -> None:
    cluster = view_of(api)
    written = api.change(NODE_CLASSES, "a", status={"nodes": 7})
    with pytest.raises(ConflictError):
        await cluster.write_class_statuses(InProcessKube(api))
    assert node_count(api, "a") == 7
    cluster.observe_class(written, deleted=False)
    await cluster.write_class_statuses(InProcessKube(api))
    assert node_count(api, "a") == 1


async def test_clock_skew_is_written_once(api: ApiServer) -> None:
    cluster, kube = view_of(api), InProcessKube(api)
    await cluster.write_class_statuses(kube)
    written = len(api.writes)
    for minutes in (60, 58, 59):
        heartbeat = format_time(api.now() + timedelta(minutes=minutes))
        raw = node("a")
        raw["status"]["conditions"][0]["lastHeartbeatTime"] = heartbeat
        cluster.observe_node(raw, api.now(), deleted=False)
        await cluster.write_class_statuses(kube)
    assert len(api.writes) == written + 1
    raw_class = api.get(NODE_CLASSES, "a")
    assert raw_class is not None
    (clock,) = [item for item in raw_class["status"]["conditions"] if item["type"] == "ClockSkewed"]
    assert (clock["status"], clock["reason"]) == ("True", "ClockOff")
    assert "node a is about 60 min ahead" in clock["message"]
