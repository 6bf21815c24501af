"""The API server's admission applies a namespace's ResourceQuota and LimitRange to our pods."""

from typing import Any

import pytest

from tests.api.connection import connected
from tests.api.server import ApiServer, Json, RefusedError
from tests.api.waiting import wait_for
from tests.unit.domain.objects import broker_benchmark
from tests.unit.domain.world import World
from tests.unit.workloads.test_pods import EACH_KIND, KAFKA, given, templates
from tierbench.controller.snapshot import rejected_pods
from tierbench.kube.client import Kube

pytestmark = pytest.mark.apiserver
COMPUTE = ("requests.cpu", "requests.memory")
ALL = (*COMPUTE, "requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage")


@pytest.fixture(autouse=True)
def _account(server: ApiServer, namespace: str) -> None:
    """Creates the service account that every pod needs."""
    server.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})


def restrict(server: ApiServer, namespace: str, *counted: str, most: str = "64Ti") -> None:
    """Creates a quota of these resources, with the status that a controller would write. Waits until it is enforced."""
    hard = dict.fromkeys(counted, most)
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    made = server.request("POST", path, {"metadata": {"name": "tenant"}, "spec": {"hard": hard}})
    server.request("PUT", f"{path}/tenant/status", {**made, "status": {"hard": hard, "used": dict.fromkeys(hard, "0")}})
    wait_for(lambda: is_enforced(server, namespace), "the quota is enforced")


def is_enforced(server: ApiServer, namespace: str) -> bool:
    """Returns whether the API server refuses a pod that no quota here allows. Admission learns of a quota late."""
    too_much = dict.fromkeys(("cpu", "memory", "ephemeral-storage"), "65Ti")
    container = {"name": "large", "image": "large", "resources": {"requests": too_much, "limits": too_much}}
    try:
        admit(server, namespace, [{"spec": {"containers": [container]}}])
    except RefusedError as error:
        return "exceeded quota" in str(error)
    return False


def admit(server: ApiServer, namespace: str, found: list[dict[str, Any]]) -> None:
    """Asks the API server to admit each pod."""
    for number, pod in enumerate(found):
        body = {"metadata": {"name": f"pod-{number}"}, "spec": pod["spec"]}
        server.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", body)


@EACH_KIND
def test_a_quota_on_requests_admits_every_pod(
    server: ApiServer, namespace: str, make: Any, spec: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    restrict(server, namespace, *COMPUTE)
    admit(server, namespace, templates(World(make(**spec)), monkeypatch))


@EACH_KIND
def test_a_quota_on_all_resources_admits_pods_with_limits(
    server: ApiServer, namespace: str, make: Any, spec: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    restrict(server, namespace, *ALL)
    admit(server, namespace, templates(World(make(**{**spec, **given(spec)})), monkeypatch))
    with pytest.raises(RefusedError, match=r"must specify limits\.cpu"):
        admit(server, namespace, templates(World(make(**spec)), monkeypatch))


@EACH_KIND
def test_a_quota_on_all_resources_admits_pods_with_defaults_of_a_limit_range(
    server: ApiServer, namespace: str, make: Any, spec: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = {"cpu": "2", "memory": "1Gi", "ephemeral-storage": "2Gi"}
    ranges = {"limits": [{"type": "Container", "default": default}]}
    server.request(
        "POST", f"/api/v1/namespaces/{namespace}/limitranges", {"metadata": {"name": "tenant"}, "spec": ranges}
    )
    restrict(server, namespace, *ALL)
    admit(server, namespace, templates(World(make(**spec)), monkeypatch))


async def test_the_reason_for_a_missing_pod_is_found_without_creating_one(server: ApiServer, namespace: str) -> None:
    world = World(broker_benchmark(brokers=KAFKA))
    for _ in range(10):
        if world.jobs:
            break
        world.advance()
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    manifest = next(iter(world.manifests.values()))
    metadata = {"name": manifest["metadata"]["name"], "labels": manifest["metadata"]["labels"]}
    job = server.request("POST", jobs, {**manifest, "metadata": metadata})
    job["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    async with connected(server) as client:
        assert await rejected_pods(Kube(client), namespace, [job]) == {}
        restrict(server, namespace, "pods", most="0")
        (refusal,) = (await rejected_pods(Kube(client), namespace, [job])).values()
    assert "exceeded quota: tenant" in refusal.message
    assert server.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"] == []
