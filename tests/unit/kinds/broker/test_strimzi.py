"""Kafka by Strimzi: on its node, configured like a standalone one, with its helpers away from measured nodes."""

from dataclasses import replace
from typing import Any

import pytest

from tests.plans import plan_of
from tests.unit.domain.objects import IMAGES, OWNER
from tests.unit.domain.strimzi_world import LISTENERS, strimzi_benchmark
from tests.unit.kinds.broker.test_workload import cases, secret_keys
from tierbench.api.node_class import NodeClassSpec
from tierbench.kinds.broker.kafka import kafka_settings
from tierbench.kinds.broker.strimzi import strimzi_names
from tierbench.kinds.broker.workload import BrokerWorkload
from tierbench.workloads.plan import Case, ScheduledTrial
from tierbench.workloads.pods import pin_to_node
from tierbench.workloads.workload import ClientInstance, Manifest, NodeSize, RunningServer, ServerInstance, Target

SIZE = NodeSize(2000 * 2**20, 8 * 2**30)
CLASS = NodeClassSpec.model_validate(
    {
        "nodeSelector": {"matchLabels": {"hw": "jetson"}},
        "tolerations": [{"key": "edge", "operator": "Exists", "effect": "NoSchedule"}],
    }
)
OWNED = replace(OWNER, kind="BrokerBenchmark")
NAMES = strimzi_names(OWNED, OWNED.server(1, 0))


def workload(options: dict[str, Any] | None = None, heap: str | None = None, **spec: Any) -> BrokerWorkload:
    given = {"heap": heap, "strimzi": options}
    kafka = {"provider": "Strimzi", **{name: value for name, value in given.items() if value is not None}}
    brokers = [{"name": "kafka", "kafka": kafka}]
    return BrokerWorkload(OWNED, strimzi_benchmark(brokers=brokers, **spec).spec, IMAGES)


def instance(given: BrokerWorkload) -> ServerInstance:
    measured_nodes = ("j1", "u1")
    return ServerInstance(
        "bb-demo-r1-s1",
        "bb-demo-r1-s1-uid-1",
        1,
        0,
        given.server_placements()[0],
        "j1",
        CLASS,
        SIZE,
        measured_nodes=measured_nodes,
        api_version="kafka.strimzi.io/v1",
    )


def objects(given: BrokerWorkload) -> dict[str, Manifest]:
    return {item["kind"]: item for item in given.server(instance(given))}


def job(given: BrokerWorkload, case: Case | None = None) -> Manifest:
    case = case or cases(given)[0]
    agent = {"spec": {"clusterIP": "10.96.0.9"}}
    running = RunningServer(instance(given), "10.0.0.5", "192.0.2.7", {}, agent, LISTENERS)
    part = given.parts(case)[0]
    client = ClientInstance("job-0", 1, case.number, 2, part, "u1", CLASS, (ScheduledTrial(case.number, 2),), 600)
    return given.client(client, [Target(case, running, 60)])


def test_objects_are_owned_labelled_and_in_one_cluster() -> None:
    made = objects(workload())
    assert list(made) == ["KafkaNodePool", "Kafka", "KafkaUser", "KafkaTopic", "Service", "Pod"]
    for kind, manifest in made.items():
        metadata = manifest["metadata"]
        assert metadata["ownerReferences"][0]["uid"] == OWNED.uid
        assert metadata["labels"]["tierbench.io/benchmark"] == "demo"
        if kind in {"KafkaNodePool", "KafkaUser", "KafkaTopic"}:
            assert metadata["labels"]["strimzi.io/cluster"] == made["Kafka"]["metadata"]["name"] == NAMES.kafka
    assert made["Kafka"]["apiVersion"] == "kafka.strimzi.io/v1"


def test_broker_runs_on_its_node_and_its_helpers_avoid_measured_nodes() -> None:
    made = objects(workload())
    pod = made["KafkaNodePool"]["spec"]["template"]["pod"]
    assert pin_to_node("j1", CLASS).items() <= pod.items()
    helpers = made["Kafka"]["spec"]["entityOperator"]["template"]["pod"]["affinity"]["nodeAffinity"]
    (term,) = helpers["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    # The API server accepts one value per field.
    assert [(field["operator"], field["values"]) for field in term["matchFields"]] == [
        ("NotIn", ["j1"]),
        ("NotIn", ["u1"]),
    ]


def test_strimzi_broker_is_configured_like_a_standalone_one() -> None:
    given = workload()
    kafka = given.spec.brokers[0].kafka
    assert kafka is not None
    settings = kafka_settings(kafka, given.spec, SIZE)
    config = objects(given)["Kafka"]["spec"]["kafka"]["config"]
    assert config == {name: value for name, value in settings.items() if "." in name}
    pool = objects(given)["KafkaNodePool"]["spec"]
    assert pool["jvmOptions"] == {"-Xms": "500m", "-Xmx": "500m"}
    (volume,) = pool["storage"]["volumes"]
    assert volume == {"id": 0, "kraftMetadata": "shared", "type": "ephemeral", "sizeLimit": "2Gi"}


def test_options_are_passed_to_strimzi_and_recorded() -> None:
    claim = {"storageClassName": "fast", "size": "10Gi"}
    resources = {"requests": {"memory": "768Mi"}, "limits": {"cpu": "2"}}
    options = {"version": "4.1.0", "resources": resources, "volumeClaimTemplate": claim}
    given = workload(options, heap="300Mi")
    made = objects(given)
    pool = made["KafkaNodePool"]["spec"]
    assert pool["resources"] == resources
    assert pool["jvmOptions"]["-Xmx"] == "300m"
    (volume,) = pool["storage"]["volumes"]
    assert (volume["type"], volume["class"], volume["size"], volume["deleteClaim"]) == (
        "persistent-claim",
        "fast",
        "10Gi",
        True,
    )
    assert made["Kafka"]["spec"]["kafka"]["version"] == "4.1.0"
    facts = given.service(given.server_placements()[0], SIZE)
    assert facts is not None
    asked = {"provider": "Strimzi", "heap": "300Mi", "storage": "10Gi", "storageClass": "fast"}
    assert {**asked, "requests.memory": "768Mi", "limits.cpu": "2"}.items() <= facts.settings.items()


@pytest.mark.parametrize(
    ("spec", "listeners"),
    [
        ({}, [("plain", 9092, "cluster-ip", False)]),
        ({"access": "NodePort"}, [("plain", 9092, "nodeport", False)]),
        (
            {"access": "PodIP", "tls": ["None", "TLSv1.2"]},
            [("plain", 9092, "internal", False), ("tls", 9093, "internal", True)],
        ),
    ],
)
def test_every_listener_requires_the_account(spec: dict[str, Any], listeners: list[tuple[Any, ...]]) -> None:
    found = objects(workload(**spec))["Kafka"]["spec"]["kafka"]["listeners"]
    assert [(item["name"], item["port"], item["type"], item["tls"]) for item in found] == listeners
    assert {item["authentication"]["type"] for item in found} == {"scram-sha-512"}


def test_strimzi_uses_the_account_of_the_clients() -> None:
    given = workload()
    credentials, user = given.credentials(instance(given)), objects(given)["KafkaUser"]
    reference = user["spec"]["authentication"]["password"]["valueFrom"]["secretKeyRef"]
    assert reference == {"name": credentials.manifest["metadata"]["name"], "key": "password"}
    assert credentials.username == user["metadata"]["name"]
    assert user["metadata"]["name"] != credentials.manifest["metadata"]["name"], "Strimzi would overwrite the Secret"


@pytest.mark.parametrize(("tls", "url"), [("None", "kafka://kafka.default.svc:9092"), ("TLSv1.3", "kafkas://")])
def test_client_uses_the_address_and_the_authority_of_strimzi(tls: str, url: str) -> None:
    made = job(workload(tls=[tls]))
    assert plan_of(made)["targets"][0]["url"].startswith(url)
    assert plan_of(made)["serverName"] == ""
    keys = {"bb-demo-r1-s1-uid-1": {"agent-token", "agent-pin", "payload-key", "username", "password"}}
    authority = {} if tls == "None" else {f"{NAMES.kafka}-cluster-ca-cert": {"ca.crt"}}
    assert secret_keys(made) == {**keys, **authority}


def test_topics_have_no_finalizers() -> None:
    container = objects(workload())["Kafka"]["spec"]["entityOperator"]["template"]["topicOperatorContainer"]
    assert container["env"] == [{"name": "STRIMZI_USE_FINALIZERS", "value": "false"}]


def test_names_are_short_and_unique_per_server() -> None:
    """Strimzi adds its own words, and would take a repeated name for an earlier object."""
    long = replace(OWNED, name="n" * 40)
    names = strimzi_names(long, long.server(123, 12, 10))
    for name in (names.pod, f"{names.kafka}-kafka-plain-bootstrap"):
        assert len(name) <= 63
    found = {
        strimzi_names(replace(OWNED, uid=uid), OWNED.server(run, placement, setup)).kafka
        for uid in ("1", "2")
        for run in (1, 2)
        for placement in (0, 1)
        for setup in (0, 1)
    }
    assert len(found) == 16


def test_agent_runs_on_the_node_of_the_broker() -> None:
    pod = objects(workload())["Pod"]
    assert pin_to_node("j1", CLASS).items() <= pod["spec"].items()
    assert [container["name"] for container in pod["spec"]["containers"]] == ["agent"]
