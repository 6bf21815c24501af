"""Kafka of a BrokerBenchmark: sized by its node, with its own account and its own factors."""

import pytest

from tests.plans import plan_of
from tests.unit.domain.objects import broker_benchmark
from tests.unit.kinds.broker.test_workload import cases, jobs, secret_keys, workload
from tests.unit.kinds.file_transfer.test_workload import CLASS
from tierbench.kinds.broker.kafka import kafka_settings
from tierbench.kinds.broker.server import storage_size
from tierbench.kinds.broker.workload import BrokerWorkload
from tierbench.workloads.workload import Manifest, NodeSize, ServerInstance

MEBIBYTE = 2**20
GIBIBYTE = 2**30
UNKNOWN = NodeSize()
KAFKA = {"name": "kafka", "kafka": {}}
MOSQUITTO = {"name": "mosquitto", "mosquitto": {}}
EXTERNAL = {
    "name": "site",
    "external": {"address": "kafka.example.com:9093", "protocol": "Kafka", "secretRef": {"name": "site"}},
}


def server(given: BrokerWorkload, size: NodeSize = UNKNOWN) -> tuple[dict[str, str], Manifest]:
    """Returns the configuration's files, and the pod's spec."""
    instance = ServerInstance(
        "bb-demo-r1-s1", "bb-demo-r1-s1-uid-1", 1, 0, given.server_placements()[0], "j1", CLASS, size
    )
    manifests = {item["kind"]: item for item in given.server(instance)}
    return manifests["ConfigMap"]["data"], manifests["Pod"]["spec"]


def properties(files: dict[str, str]) -> dict[str, str]:
    return dict(line.split("=", 1) for line in files["server.properties"].splitlines())


@pytest.mark.parametrize(
    ("memory", "heap"),
    [(0, "128Mi"), (384 * MEBIBYTE, "128Mi"), (2000 * MEBIBYTE, "500Mi"), (64 * GIBIBYTE, "1Gi")],
)
def test_the_heap_follows_the_nodes_memory_and_is_recorded(memory: int, heap: str) -> None:
    given, size = workload(brokers=[KAFKA]), NodeSize(memory, 8 * GIBIBYTE)
    _, pod = server(given, size)
    mebibytes = {"128Mi": 128, "500Mi": 500, "1Gi": 1024}[heap]
    assert {f"-Xms{mebibytes}m", f"-Xmx{mebibytes}m"} <= set(pod["containers"][0]["command"])
    facts = given.service(given.server_placements()[0], size)
    assert facts is not None
    assert (facts.image, facts.settings["heap"], facts.settings["storage"]) == ("kafka:1", heap, "2Gi")
    assert {"name": "data", "emptyDir": {"sizeLimit": "2Gi"}} in pod["volumes"]


def test_requested_heap_is_used() -> None:
    _, pod = server(workload(brokers=[{"name": "kafka", "kafka": {"heap": "300Mi"}}]))
    assert "-Xmx300m" in pod["containers"][0]["command"]


def test_recorded_settings_are_the_configured_ones() -> None:
    given = workload(brokers=[KAFKA])
    facts = given.service(given.server_placements()[0], NodeSize())
    assert facts is not None
    assert {name: value for name, value in facts.settings.items() if "." in name}.items() <= properties(
        server(given)[0]
    ).items()


def test_a_log_keeps_more_than_may_be_in_flight() -> None:
    spec = broker_benchmark(brokers=[KAFKA], payload={"sizes": ["1Ki", "1Mi"]}, maxInFlight=1000).spec
    broker = spec.brokers[0].kafka
    assert broker is not None
    assert kafka_settings(broker, spec, NodeSize())["log.retention.bytes"] == str(2 * 1000 * MEBIBYTE)


def test_no_message_is_refused_or_removed_because_a_clock_is_off() -> None:
    """Kafka 4 refuses messages more than an hour ahead of its clock, and removes those that are a week old."""
    given = properties(server(workload(brokers=[KAFKA]))[0])
    assert given["log.message.timestamp.after.max.ms"] == str(2**63 - 1)
    assert given["log.retention.ms"] == "-1"


def test_logs_have_room_for_own_messages_as_large_as_a_config_map() -> None:
    payload = {"messages": [{"name": "sensor", "configMapRef": {"name": "sensor-messages"}}]}
    spec = broker_benchmark(brokers=[KAFKA], payload=payload, maxInFlight=1000).spec
    broker = spec.brokers[0].kafka
    assert broker is not None
    assert kafka_settings(broker, spec, NodeSize())["log.retention.bytes"] == str(2 * 1000 * MEBIBYTE)


@pytest.mark.parametrize(("pairs", "partitions"), [(1, 1), (16, 8), (256, 1), (256, 2)])
def test_many_partitions_do_not_fill_the_storage(pairs: int, partitions: int) -> None:
    """The limit is per partition: its log has what it keeps, and the file that is written to."""
    spec = broker_benchmark(brokers=[KAFKA], pairs=[1, pairs], kafkaClients={"partitions": [partitions]}).spec
    broker, size = spec.brokers[0].kafka, NodeSize(storage_bytes=16 * GIBIBYTE)
    assert broker is not None
    settings = kafka_settings(broker, spec, size)
    kept = int(settings["log.retention.bytes"]) + int(settings["log.segment.bytes"])
    assert pairs * partitions * kept <= storage_size(size)
    assert int(settings["log.segment.bytes"]) > MEBIBYTE


def test_listeners_beyond_loopback_require_the_account_with_and_without_tls() -> None:
    files, _ = server(workload(brokers=[KAFKA], tls=["None", "TLSv1.3"]))
    given = properties(files)
    protocols = dict(item.split(":") for item in given["listener.security.protocol.map"].split(","))
    open_ones = [item.split("://") for item in given["listeners"].split(",") if "127.0.0.1" not in item]
    assert [(protocols[name], address) for name, address in open_ones] == [
        ("SASL_PLAINTEXT", ":9092"),
        ("SASL_SSL", ":9093"),
    ]


def test_the_account_is_in_no_argument_or_variable() -> None:
    """Any process on the node can read arguments."""
    _, pod = server(workload(brokers=[KAFKA]))
    (form,) = pod["initContainers"]
    assert "env" not in form
    assert form["command"][-2:] == ["--add-scram", "@/account/kafka-account"]
    (volume,) = (volume for volume in pod["volumes"] if volume["name"] == "account")
    assert volume["secret"]["items"] == [{"key": "kafka-account", "path": "kafka-account"}]
    mounts = {container["name"]: container["volumeMounts"] for container in (form, *pod["containers"])}
    assert [name for name, found in mounts.items() if any(m["name"] == "account" for m in found)] == ["format"]


def test_without_tls_there_is_no_second_listener() -> None:
    assert ":9093" not in properties(server(workload(brokers=[KAFKA]))[0])["listeners"]


def test_every_container_has_the_least_rights() -> None:
    _, pod = server(workload(brokers=[KAFKA]))
    assert pod["securityContext"]["runAsNonRoot"] is True
    for container in (*pod["initContainers"], *pod["containers"]):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_factors_of_kafka_apply_only_to_kafka() -> None:
    factors = {"codecs": ["None", "Lz4"], "partitions": [1, 4], "lingerMilliseconds": [5], "batchSizes": ["16Ki"]}
    given = workload(brokers=[MOSQUITTO, KAFKA], kafkaClients=factors, payload={"sizes": ["1Ki"]})
    by_broker: dict[str, list[dict[str, str]]] = {"mosquitto": [], "kafka": []}
    for case in cases(given):
        by_broker[case.levels["broker"]].append(dict(case.levels))
    assert [len(levels) for levels in by_broker.values()] == [2, 8]
    assert not any("codec" in levels for levels in by_broker["mosquitto"])
    assert [case.number for case in cases(given)] == list(range(1, 11))
    last = plan_of(jobs(given, [case for case in cases(given) if case.levels["broker"] == "kafka"][-1])[0])
    settings = {"codec": "Lz4", "partitions": 4, "lingerMilliseconds": 5, "batchBytes": 16384}
    assert last["kafka"] == {**settings, "allowedHosts": []}


@pytest.mark.parametrize(("tls", "url"), [("None", "kafka://"), ("TLSv1.3", "kafkas://")])
def test_client_expects_the_advertised_name_of_the_broker(tls: str, url: str) -> None:
    given = workload(brokers=[KAFKA], tls=[tls], access="PodIP")
    given_plan = plan_of(jobs(given)[0])
    assert given_plan["targets"][0]["url"] == f"{url}10.0.0.5:{9092 if tls == 'None' else 9093}"
    advertised = properties(server(given)[0])["advertised.listeners"]
    assert f"://{given_plan['serverName']}:" in advertised


def test_client_of_an_external_kafka_uses_the_users_account() -> None:
    given = workload(brokers=[EXTERNAL], servers=None, tls=["TLSv1.3"])
    (job, _) = jobs(given)
    plan = plan_of(job)
    assert (plan["targets"][0]["url"], plan["serverName"]) == ("kafkas://kafka.example.com:9093", "")
    assert plan["kafka"]["codec"] == "None"
    assert secret_keys(job)["site"] == {"username", "password", "ca.crt"}


def test_plan_for_mqtt_has_no_settings_of_kafka() -> None:
    assert "kafka" not in plan_of(jobs(workload(brokers=[MOSQUITTO]))[0])
