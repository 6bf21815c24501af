"""What the stand-in makes of a Kafka and its pool: the standalone image as the broker's pod, and what belongs to it."""

from typing import Any, Final

from images.naming import reference
from tierbench.controller.credentials import certificates
from tierbench.workloads.pods import RESTRICTED, pod_security

Json = dict[str, Any]

IMAGE: Final = reference("kafka")
_USER: Final = 1001
_CONTROLLER, _INTERNAL = 9090, 9091
_CLUSTER_ID: Final = "c3RhbmQtaW4tc3RyaW16aQ"
_JAVA: Final = ["java", "-cp", "/opt/kafka/libs/*"]
_TMP: Final = "/tmp"
_SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


def listeners(kafka: Json) -> list[Json]:
    """As the spec has them."""
    found: list[Json] = kafka["spec"]["kafka"]["listeners"]
    return found


def bootstrap(kafka: Json, listener: Json) -> str:
    """The Service of a listener."""
    part = "" if listener["type"] == "internal" else f"-{listener['name']}"
    return f"{kafka['metadata']['name']}-kafka{part}-bootstrap"


def host(kafka: Json, listener: Json) -> str:
    """Its name in the cluster's DNS."""
    return f"{bootstrap(kafka, listener)}.{kafka['metadata']['namespace']}.svc"


def pod_name(kafka: Json, pool: Json) -> str:
    """The broker's pod."""
    return f"{kafka['metadata']['name']}-{pool['metadata']['name']}-0"


def children(kafka: Json, pool: Json, user: Json) -> list[Json]:
    """Everything that goes with the Kafka. Where its pod is, which comes last, is everything."""
    name, template = kafka["metadata"]["name"], dict(pool["spec"]["template"]["pod"])
    annotations, hosts = (
        template.pop("metadata")["annotations"],
        sorted({host(kafka, item) for item in listeners(kafka)}),
    )
    secrets = {key: value.decode() for key, value in certificates(*hosts).items()}
    authority = {"ca.crt": secrets.pop("ca.crt")}
    broker = _child(
        kafka, "Pod", pod_name(kafka, pool), {"spec": {**template, **_broker(kafka, pool, user)}}, broker="true"
    )
    broker["metadata"]["annotations"] = annotations
    made = [
        _child(kafka, "Secret", f"{name}-cluster-ca-cert", {"stringData": authority}),
        _child(kafka, "Secret", f"{name}-brokers", {"stringData": secrets}),
        _child(kafka, "ConfigMap", f"{name}-brokers", {"data": {"server.properties": _properties(kafka)}}),
        _child(kafka, "Pod", f"{name}-entity-operator", {"spec": _entity_operator(kafka)}),
    ]
    for listener in listeners(kafka):
        ports = [{"name": listener["name"], "port": listener["port"]}]
        spec = {"selector": {"strimzi.io/cluster": name, "broker": "true"}, "ports": ports}
        made.append(_child(kafka, "Service", bootstrap(kafka, listener), {"spec": spec}))
    return [*made, *_claims(kafka, pool), broker]


def _child(kafka: Json, kind: str, name: str, body: Json, **labels: str) -> Json:
    """Strimzi gives on the labels of the Kafka, but not those of Kubernetes' own."""
    metadata = kafka["metadata"]
    given = {key: value for key, value in metadata["labels"].items() if not key.startswith("app.kubernetes.io/")}
    owner = {"apiVersion": kafka["apiVersion"], "kind": "Kafka", "name": metadata["name"], "uid": metadata["uid"]}
    labels = {**given, "strimzi.io/cluster": metadata["name"], **labels}
    head = {"name": name, "namespace": metadata["namespace"], "labels": labels, "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": kind, "metadata": head, **body}


def _properties(kafka: Json) -> str:
    names = {item["name"].upper(): item for item in listeners(kafka)}
    inner = [f"CONTROLLER://127.0.0.1:{_CONTROLLER}", f"INTERNAL://127.0.0.1:{_INTERNAL}"]
    protocols = {name: "SASL_SSL" if item["tls"] else "SASL_PLAINTEXT" for name, item in names.items()}
    protocols |= {"CONTROLLER": "PLAINTEXT", "INTERNAL": "PLAINTEXT"}
    advertised = [f"{name}://{host(kafka, item)}:{item['port']}" for name, item in names.items()]
    properties = {
        "process.roles": "broker,controller",
        "node.id": "0",
        "controller.quorum.voters": f"0@127.0.0.1:{_CONTROLLER}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "INTERNAL",
        "listeners": ",".join([*inner, *(f"{name}://:{item['port']}" for name, item in names.items())]),
        "advertised.listeners": ",".join([inner[1], *advertised]),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "log.dirs": "/data/kafka",
        "config.providers": "files",
        "config.providers.files.class": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": "${files:/certificates:tls.key}",
        "ssl.keystore.certificate.chain": "${files:/certificates:tls.crt}",
        **{f"listener.name.{name.lower()}.scram-sha-512.sasl.jaas.config": _SCRAM for name in names},
        **kafka["spec"]["kafka"]["config"],
    }
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def _broker(kafka: Json, pool: Json, user: Json) -> Json:
    """What it runs. The user is made before the broker starts, not by an operator."""
    name, options = kafka["metadata"]["name"], pool["spec"]["jvmOptions"]
    account = f"SCRAM-SHA-512=[name={user['metadata']['name']},password=$(PASSWORD)]"
    words = ["--ignore-formatted", "--cluster-id", _CLUSTER_ID, "--config", "/config/server.properties"]
    secret = user["spec"]["authentication"]["password"]["valueFrom"]
    mounts = {"data": "/data", "tmp": _TMP, "config": "/config", "certificates": "/certificates"}
    common = {
        "image": IMAGE,
        "securityContext": RESTRICTED,
        "volumeMounts": [{"name": volume, "mountPath": path} for volume, path in mounts.items()],
    }
    prepare = {
        **common,
        "name": "user",
        "command": [*_JAVA, "kafka.tools.StorageTool", "format", *words, "--add-scram", account],
        "env": [{"name": "PASSWORD", "valueFrom": secret}],
    }
    run = {
        **common,
        "name": "kafka",
        "command": [*_JAVA, f"-Xms{options['-Xms']}", f"-Xmx{options['-Xmx']}", "kafka.Kafka", words[-1]],
        "resources": pool["spec"]["resources"],
        "readinessProbe": {"tcpSocket": {"port": listeners(kafka)[0]["port"]}, "periodSeconds": 1},
    }
    return {
        "shareProcessNamespace": True,
        "securityContext": pod_security(_USER),
        "initContainers": [prepare],
        "containers": [run],
        "volumes": [
            {"name": "data", **_data(kafka, pool)},
            {"name": "tmp", "emptyDir": {}},
            {"name": "config", "configMap": {"name": f"{name}-brokers"}},
            {"name": "certificates", "secret": {"secretName": f"{name}-brokers", "defaultMode": 0o440}},
        ],
    }


def _data(kafka: Json, pool: Json) -> Json:
    (volume,) = pool["spec"]["storage"]["volumes"]
    if volume["type"] == "ephemeral":
        return {"emptyDir": {"sizeLimit": volume["sizeLimit"]}}
    return {"persistentVolumeClaim": {"claimName": f"data-0-{pod_name(kafka, pool)}"}}


def _claims(kafka: Json, pool: Json) -> list[Json]:
    (volume,) = pool["spec"]["storage"]["volumes"]
    if volume["type"] == "ephemeral":
        return []
    storage = {"resources": {"requests": {"storage": volume["size"]}}, "storageClassName": volume["class"]}
    spec = {"accessModes": ["ReadWriteOnce"], **storage}
    return [_child(kafka, "PersistentVolumeClaim", f"data-0-{pod_name(kafka, pool)}", {"spec": spec})]


def _entity_operator(kafka: Json) -> Json:
    """Only where it stands matters: the stand-in does its work."""
    sleep = {"name": "topic-operator", "image": IMAGE, "command": ["sleep", "infinity"], "securityContext": RESTRICTED}
    template = kafka["spec"]["entityOperator"]["template"]["pod"]
    return {
        **template,
        "terminationGracePeriodSeconds": 0,
        "securityContext": pod_security(_USER),
        "containers": [sleep],
    }
