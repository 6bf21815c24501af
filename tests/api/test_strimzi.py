"""Definitions of three generations of Strimzi, in a real API server, accept our objects and give their status."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.api.connection import connected
from tests.api.server import CRDS, ApiServer, Json, RefusedError
from tests.api.waiting import wait_for
from tests.strimzi.crds import BETWEEN, NEW, OLD, Generation, crds
from tests.unit.domain.objects import IMAGES
from tests.unit.domain.strimzi_world import strimzi_benchmark
from tierbench.api.node_class import NodeClassSpec
from tierbench.controller.context import ObjectCaches
from tierbench.controller.executor import Executor
from tierbench.controller.snapshot import ControllerRefManager, list_provided
from tierbench.domain.decision import ClusterState, Create, DeleteProviderObject, ProviderState, RemoveFinalizers
from tierbench.kinds.broker.strimzi import GROUP, KINDS
from tierbench.kinds.broker.strimzi_lifecycle import STRIMZI_API
from tierbench.kinds.broker.workload import BrokerWorkload
from tierbench.kube.client import ApiError, Kube
from tierbench.kube.meta import type_of
from tierbench.workloads.workload import Manifest, NodeSize, Owner, ServerInstance

pytestmark = pytest.mark.apiserver

PREFERRED = {NEW: "v1", BETWEEN: "v1", OLD: "v1beta2"}
CLASS = NodeClassSpec.model_validate(
    {
        "nodeSelector": {"matchLabels": {"hw": "jetson"}, "matchExpressions": [{"key": "gpu", "operator": "Exists"}]},
        "tolerations": [{"key": "edge", "operator": "Exists", "effect": "NoSchedule"}],
    }
)
EVERYTHING: Json = {
    "version": "4.1.0",
    "resources": {"requests": {"cpu": "0.5", "memory": "768Mi"}, "limits": {"cpu": 2, "memory": "1Gi"}},
    "volumeClaimTemplate": {"storageClassName": "fast", "size": "10Gi"},
}
SPECS: list[Json] = [
    {},
    {"access": "PodIP", "tls": ["None", "TLSv1.3"]},
    {"access": "NodePort"},
    {"brokers": [{"name": "kafka", "kafka": {"provider": "Strimzi", "heap": "300Mi", "strimzi": EVERYTHING}}]},
]


@pytest.fixture(scope="module", params=[NEW, BETWEEN, OLD], ids=str)
def generation(request: pytest.FixtureRequest, server: ApiServer) -> Iterator[Generation | None]:
    """Installs Strimzi's definitions of a release of that generation, or none."""
    found: Generation | None = request.param
    definitions = [] if found is None else crds(found)
    define(server, *definitions)
    yield found
    remove(server, *definitions)


@pytest.fixture
def without_node_pools(generation: Generation, server: ApiServer) -> Iterator[None]:
    """Removes node pools, which early versions of Strimzi do not have."""
    (pools,) = (crd for crd in crds(generation) if crd["spec"]["names"]["kind"] == "KafkaNodePool")
    remove(server, pools)
    yield
    define(server, pools)


def define(server: ApiServer, *definitions: Json) -> None:
    for crd in definitions:
        server.request("POST", f"{CRDS}?fieldValidation=Strict", crd)
    wait_for(lambda: all(is_served(server, crd) for crd in definitions), "Strimzi's kinds")


def remove(server: ApiServer, *definitions: Json) -> None:
    """Removes definitions whose kinds can be listed. The API server would retry others only minutes later."""
    for crd in definitions:
        server.request("DELETE", f"{CRDS}/{crd['metadata']['name']}")
    wait_for(lambda: not any(is_served(server, crd) for crd in definitions), "the removal of Strimzi's kinds")


def is_served(server: ApiServer, crd: Json) -> bool:
    """Returns whether the kind can be listed in its served version."""
    (version, *_) = [item["name"] for item in crd["spec"]["versions"] if item["served"]]
    try:
        server.request("GET", f"/apis/{GROUP}/{version}/{crd['spec']['names']['plural']}")
    except RefusedError:
        return False
    return True


@pytest.fixture
async def kube(server: ApiServer) -> AsyncIterator[Kube]:
    async with connected(server) as client:
        yield Kube(client)


@pytest.fixture
def owner(name: str) -> Owner:
    return Owner("BrokerBenchmark", "default", name, f"uid-{name}")


def manifests(owner: Owner, version: str, **spec: Any) -> list[Manifest]:
    """Returns Strimzi's objects of a server. `spec` decides whether clients use TLS."""
    given = BrokerWorkload(owner, strimzi_benchmark(**spec).spec, IMAGES)
    placement, size = given.server_placements()[0], NodeSize(4 * 2**30, 32 * 2**30)
    instance = ServerInstance(
        owner.server(1, 0),
        owner.attached(owner.server(1, 0)),
        1,
        0,
        placement,
        "j1",
        CLASS,
        size,
        measured_nodes=("j1", "u1"),
        api_version=f"{GROUP}/{version}",
    )
    return [item for item in given.server(instance) if item["kind"] in KINDS]


async def observe(kube: Kube, owner: Owner) -> ProviderState:
    """Returns what is observed of Strimzi, and of the benchmark's own objects."""
    view, listed = await list_provided(kube, owner, STRIMZI_API)
    return replace(view, objects=ControllerRefManager(owner).claim(listed).provider_objects[GROUP])


async def executor_of(kube: Kube, owner: Owner) -> Executor:
    _, listed = await list_provided(kube, owner, STRIMZI_API)
    here = ClusterState(owner=owner, uids=ControllerRefManager(owner).claim(listed).uids)
    return Executor(kube, ObjectCaches(), strimzi_benchmark().KIND.resource, here, {}, "default", {}, {})


async def create(kube: Kube, owner: Owner, made: list[Manifest]) -> None:
    await (await executor_of(kube, owner)).carry_out(Create(tuple(made)))


@pytest.mark.parametrize("spec", SPECS)
async def test_strimzi_has_every_field_that_we_set(
    generation: Generation, kube: Kube, owner: Owner, spec: Json
) -> None:
    """The API server rejects unknown fields, and keeps the others unchanged, in each served version."""
    for version in generation.versions.split(","):
        mine = replace(owner, uid=f"{owner.uid}-{version}")
        made = manifests(mine, version, **spec)
        await create(kube, mine, made)
        for manifest in made:
            name, kind = manifest["metadata"]["name"], type_of(f"{GROUP}/{version}", manifest["kind"])
            assert (await kube.get(kind, "default", name))["spec"] == manifest["spec"]


async def test_the_newest_served_version_is_used(generation: Generation, kube: Kube, owner: Owner) -> None:
    assert (await observe(kube, owner)).version == PREFERRED[generation]


async def test_the_status_of_strimzi_is_read(
    generation: Generation, server: ApiServer, kube: Kube, owner: Owner
) -> None:
    version = PREFERRED[generation]
    made = {manifest["kind"]: manifest["metadata"]["name"] for manifest in manifests(owner, version)}
    await create(kube, owner, manifests(owner, version))
    before = (await observe(kube, owner)).objects
    assert {item.kind for item in before} == set(KINDS)
    assert not any(item.answered or item.ready or item.rejection for item in before)
    write_status(server, version, made["Kafka"], 0, condition("NotReady", "True", "Creating"))
    (kafka,) = [item for item in (await observe(kube, owner)).objects if item.kind == "Kafka"]
    assert (kafka.answered, kafka.ready, kafka.rejection) == (True, False, None)
    refused = condition("NotReady", "True", "UnsupportedKafkaVersionException", "Version 9.9.9 is not supported")
    write_status(server, version, made["Kafka"], 1, refused)
    (kafka,) = [item for item in (await observe(kube, owner)).objects if item.kind == "Kafka"]
    assert kafka.rejection is not None
    assert "UnsupportedKafkaVersionException: Version 9.9.9" in kafka.rejection.message
    ready = [condition("Warning", "True", "KafkaStorage"), condition("Ready", "True")]
    write_status(server, version, made["Kafka"], 1, *ready)
    (kafka,) = [item for item in (await observe(kube, owner)).objects if item.kind == "Kafka"]
    assert (kafka.ready, kafka.rejection, kafka.listeners) == (
        True,
        None,
        {"plain": "x-kafka-bootstrap.default.svc:9092"},
    )
    assert kafka.versions == {"kafkaVersion": "4.1.0", "strimziVersion": "0.51.0"}


def condition(kind: str, status: str, reason: str | None = None, message: str = "") -> Json:
    details = {} if reason is None else {"reason": reason, "message": message}
    return {"type": kind, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z", **details}


def write_status(server: ApiServer, version: str, name: str, generation: int, *conditions: Json) -> None:
    """Writes a status as Strimzi's operator does."""
    listeners = [{"name": "plain", "bootstrapServers": "x-kafka-bootstrap.default.svc:9092"}]
    versions = {"kafkaVersion": "4.1.0", "operatorLastSuccessfulVersion": "0.51.0"}
    status = {"observedGeneration": generation, "conditions": list(conditions), "listeners": listeners, **versions}
    path = f"/apis/{GROUP}/{version}/namespaces/default/kafkas/{name}/status?fieldValidation=Strict"
    patch = {"Content-Type": "application/merge-patch+json"}
    server.request("PATCH", path, {"status": status}, patch)


async def test_the_finalizer_of_a_hanging_topic_is_removed(
    generation: Generation, server: ApiServer, kube: Kube, owner: Owner
) -> None:
    api_version = f"{GROUP}/{PREFERRED[generation]}"
    (topic,) = [item for item in manifests(owner, PREFERRED[generation]) if item["kind"] == "KafkaTopic"]
    topic["metadata"]["finalizers"] = ["strimzi.io/topic-operator"]
    name = topic["metadata"]["name"]
    await create(kube, owner, [topic])
    executor = await executor_of(kube, owner)
    for _ in range(2):
        await executor.carry_out(DeleteProviderObject(api_version, "KafkaTopic", name))
    (hung,) = (await observe(kube, owner)).objects
    assert hung.deleted is not None
    for _ in range(2):
        await executor.carry_out(RemoveFinalizers(api_version, "KafkaTopic", name))
    assert (await observe(kube, owner)).objects == ()


@pytest.mark.parametrize("generation", [None], indirect=True)
async def test_without_strimzi_nothing_is_observed(generation: None, kube: Kube, owner: Owner) -> None:
    assert await observe(kube, owner) == ProviderState()


@pytest.mark.parametrize("generation", [None], indirect=True)
async def test_creating_objects_of_a_missing_kind_fails(generation: None, kube: Kube, owner: Owner) -> None:
    """Strimzi is removed before its objects are created."""
    with pytest.raises(ApiError, match="404"):
        await create(kube, owner, manifests(owner, "v1"))


async def test_strimzi_without_node_pools_is_too_old(without_node_pools: None, kube: Kube, owner: Owner) -> None:
    assert await observe(kube, owner) == ProviderState(installed=True)
