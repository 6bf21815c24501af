"""Runs a Kafka that tierbench does not manage, with accounts and an ACL that trusts one of them."""

from collections.abc import Sequence
from typing import Any

from images.naming import reference
from tests.e2e.kubectl import Kubectl, wait_for

PORT = 9092
CLUSTER_ID = "dGllcmJlbmNoLXNpdGUtMQ"
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9095
controller.listener.names=CONTROLLER
inter.broker.listener.name=INTERNAL
listeners=KAFKA://:9092,INTERNAL://127.0.0.1:9094,CONTROLLER://127.0.0.1:9095
advertised.listeners=KAFKA://{host}:9092,INTERNAL://127.0.0.1:9094
listener.security.protocol.map=KAFKA:SASL_PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.kafka.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:{trusted}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
log.dirs=/data/kafka
"""


def external_kafka(kubectl: Kubectl, users: Sequence[str], trusted: str) -> str:
    """Starts a Kafka whose users have their names as passwords. Returns its HOST:PORT when it is ready."""
    host = f"kafka.{kubectl.namespace}.svc"
    properties = PROPERTIES.format(host=host, trusted=trusted)
    labels = {"app": "kafka"}
    service = {"selector": labels, "ports": [{"port": PORT}]}
    metadata = {"name": "kafka", "labels": labels}
    kubectl.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"server.properties": properties}},
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _pod(users)},
    )
    wait_for("Kafka is ready", lambda: _ready(kubectl.get("pod", "kafka")), 90)
    return f"{host}:{PORT}"


def _pod(users: Sequence[str]) -> dict[str, Any]:
    java = ["java", "-Xmx256m", "-cp", "/opt/kafka/libs/*"]
    properties = "/etc/kafka/server.properties"
    form = ["kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER_ID, "--config", properties]
    accounts = [f"--add-scram=SCRAM-SHA-512=[name={user},password={user}]" for user in users]
    container = {
        "image": reference("kafka"),
        "imagePullPolicy": "Never",
        "volumeMounts": [
            {"name": "configuration", "mountPath": "/etc/kafka"},
            {"name": "data", "mountPath": "/data"},
        ],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    probe = {"tcpSocket": {"port": PORT}, "periodSeconds": 1}
    return {
        "nodeSelector": {"hw": "cloud"},
        "initContainers": [{**container, "name": "format", "command": [*java, *form, *accounts]}],
        "containers": [
            {**container, "name": "kafka", "command": [*java, "kafka.Kafka", properties], "readinessProbe": probe}
        ],
        "volumes": [{"name": "configuration", "configMap": {"name": "kafka"}}, {"name": "data", "emptyDir": {}}],
        "securityContext": {
            **{"runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532, "runAsNonRoot": True},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationGracePeriodSeconds": 1,
    }


def _ready(pod: dict[str, Any]) -> bool:
    return any(item["ready"] for item in pod["status"].get("containerStatuses", []))
