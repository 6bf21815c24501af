"""The objects that make Strimzi deploy Kafka. They are the same for every version of its API."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tierbench.api.benchmark import Access
from tierbench.api.quantity import format_size
from tierbench.api.result import ServiceFacts
from tierbench.kinds.broker.kafka import heap_size, kafka_settings
from tierbench.kinds.broker.providers import ACCOUNT, AGENT, BrokerContext, Endpoint, account
from tierbench.kinds.broker.server import storage_size
from tierbench.kinds.broker.server_spec import Strimzi
from tierbench.kinds.broker.tls import is_secure
from tierbench.workloads.manifests import agent_manifests
from tierbench.workloads.pods import CA, NO_SIDECARS, pin_to_node, priority, secret_items
from tierbench.workloads.workload import (
    LABEL_ROLE,
    LABEL_RUN,
    LABEL_SLOT,
    Credentials,
    Manifest,
    NodeSize,
    Owner,
    RunningServer,
    ServerInstance,
    secret,
)

GROUP: Final = "kafka.strimzi.io"
ROLE: Final = "strimzi"
KINDS: Final = ("KafkaNodePool", "Kafka", "KafkaUser", "KafkaTopic")
ARCHITECTURES: Final = frozenset({"amd64", "arm64", "ppc64le", "s390x"})

_PLAIN: Final = "plain"
_TLS: Final = "tls"
CLUSTER: Final = "strimzi.io/cluster"
_PORTS: Final = {_PLAIN: 9092, _TLS: 9093}
_LISTENER_TYPES: Final = {Access.POD_IP: "internal", Access.CLUSTER_IP: "cluster-ip", Access.NODE_PORT: "nodeport"}
_SCRAM: Final = "scram-sha-512"
_MEBIBYTE: Final = 2**20
_LONGEST_STEM: Final = 21
_LONGEST_SETTING: Final = 63
_GRACE_SECONDS: Final = 20
_RESTRICTED: Final = {
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
}
_SMALL: Final = {
    "jvmOptions": {"-Xmx": "96m"},
    "resources": {"requests": {"cpu": "50m", "memory": "256Mi"}, "limits": {"memory": "256Mi"}},
}
# Up to 0.47, Strimzi needs these annotations to run without ZooKeeper. Later versions ignore them.
_KRAFT: Final = {"strimzi.io/kraft": "enabled", "strimzi.io/node-pools": "enabled"}
# With shorter probes, Kubernetes kills a broker that has little CPU.
_PROBES: Final = {
    "readinessProbe": {"initialDelaySeconds": 15, "timeoutSeconds": 15},
    "livenessProbe": {"initialDelaySeconds": 60, "timeoutSeconds": 15, "failureThreshold": 6},
}


@dataclass(frozen=True)
class StrimziNames:
    """The names of Strimzi's objects for a server. No two servers and no two benchmarks of one name share them.

    Otherwise Strimzi would mistake a new object for one that was just deleted. Kafka, topic and user have the same
    name.
    """

    kafka: str
    pool: str

    @property
    def pod(self) -> str:
        """The name of the broker's pod."""
        return f"{self.kafka}-{self.pool}-0"

    @property
    def authority(self) -> str:
        """The name of the Secret with the CA of the broker's certificate."""
        return f"{self.kafka}-cluster-ca-cert"

    def have(self, name: str) -> bool:
        """Returns whether an object or a pod with this name belongs to the server."""
        return name in (self.kafka, self.pool) or name.startswith(f"{self.kafka}-")


def strimzi_names(owner: Owner, server: str) -> StrimziNames:
    """Returns the names for a server. Strimzi can append to them within the 63 characters of a label."""
    number = hashlib.sha256(f"{owner.uid}/{server}".encode()).hexdigest()[:8]
    stem = server[:_LONGEST_STEM].rstrip("-")
    return StrimziNames(f"{stem}-{number}", f"n-{number}")


def facts(context: BrokerContext, size: NodeSize) -> ServiceFacts:
    """Returns the settings that tierbench chooses: those of a standalone Kafka, and those of Strimzi."""
    kafka = context.kafka
    options = kafka.strimzi or Strimzi()
    claim = options.volume_claim_template
    given = {f"{part}.{name}": value for part, of in _compute(options).items() for name, value in of.items()}
    settings = {**kafka_settings(kafka, context.spec, size), "provider": "Strimzi", **given}
    if claim is not None:
        settings |= {"storage": claim.size, "storageClass": claim.storage_class_name[:_LONGEST_SETTING]}
    return ServiceFacts(name=context.broker.name, settings=settings)


def credentials(context: BrokerContext, instance: ServerInstance) -> Credentials:
    """Returns a Secret without certificates, because Strimzi creates them. The user has the name of a Strimzi
    object."""
    user = strimzi_names(context.owner, instance.name).kafka
    return Credentials(secret(context.owner, instance), certificate=False, account=account, username=user)


def _compute(options: Strimzi) -> dict[str, dict[str, str]]:
    given = {"requests": options.resources.requests.to_json(), "limits": options.resources.limits.to_json()}
    return {name: values for name, values in given.items() if values}


def manifests(context: BrokerContext, instance: ServerInstance) -> tuple[Manifest, ...]:
    """Returns all of Strimzi's objects, and the agent. The pool comes before its Kafka, which Strimzi would reject
    otherwise."""
    owner = context.owner
    names = strimzi_names(owner, instance.name)
    bodies = {
        "KafkaNodePool": (names.pool, _pool(context, instance)),
        "Kafka": (names.kafka, _kafka(context, instance)),
        "KafkaUser": (names.kafka, _user(instance)),
        "KafkaTopic": (names.kafka, {"partitions": 1, "replicas": 1}),
    }
    objects = (_object(owner, instance, kind, names, *bodies[kind]) for kind in KINDS)
    return (
        *objects,
        *agent_manifests(owner, context.images, instance, context.spec.access, context.spec.servers.resources),
    )


def endpoint(context: BrokerContext, server: RunningServer, levels: Mapping[str, str]) -> Endpoint:
    """Returns the address of the listener that Strimzi reports. The CA is that of its certificate."""
    instance, listener = server.instance, _TLS if is_secure(levels) else _PLAIN
    secrets = [secret_items(instance.attached, *AGENT, *ACCOUNT)]
    if listener == _TLS:
        authority = strimzi_names(context.owner, instance.name).authority
        secrets.append(secret_items(authority, CA))
    return Endpoint(server.listeners[listener], tuple(secrets))


def _object(
    owner: Owner, instance: ServerInstance, kind: str, names: StrimziNames, name: str, spec: Manifest
) -> Manifest:
    metadata = owner.metadata(name, _labels(instance))
    if kind == "Kafka":
        metadata["annotations"] = _KRAFT
    else:
        metadata["labels"][CLUSTER] = names.kafka
    return {"apiVersion": instance.api_version, "kind": kind, "metadata": metadata, "spec": spec}


def _labels(instance: ServerInstance) -> dict[str, str]:
    """Returns the labels, which Strimzi copies to all that it creates for an object."""
    return {LABEL_RUN: str(instance.run), LABEL_ROLE: ROLE, LABEL_SLOT: str(instance.slot)}


def _pool(context: BrokerContext, instance: ServerInstance) -> Manifest:
    kafka = context.kafka
    heap = f"{heap_size(kafka, instance.size) // _MEBIBYTE}m"
    options = kafka.strimzi or Strimzi()
    pod = {
        "metadata": {"annotations": NO_SIDECARS},
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        **priority(context.images),
        **pin_to_node(instance.node, instance.node_class),
    }
    return {
        "replicas": 1,
        "roles": ["controller", "broker"],
        "storage": {
            "type": "jbod",
            "volumes": [{"id": 0, "kraftMetadata": "shared", **_volume(options, instance.size)}],
        },
        "resources": _compute(options),
        "jvmOptions": {"-Xms": heap, "-Xmx": heap},
        "template": {"pod": pod, "kafkaContainer": _RESTRICTED, "initContainer": _RESTRICTED},
    }


def _volume(options: Strimzi, size: NodeSize) -> dict[str, Any]:
    claim = options.volume_claim_template
    if claim is None:
        return {"type": "ephemeral", "sizeLimit": format_size(storage_size(size))}
    return {"type": "persistent-claim", "class": claim.storage_class_name, "size": claim.size, "deleteClaim": True}


def _kafka(context: BrokerContext, instance: ServerInstance) -> Manifest:
    kafka, spec = context.kafka, context.spec
    version = None if kafka.strimzi is None else kafka.strimzi.version
    config = {name: value for name, value in kafka_settings(kafka, spec, instance.size).items() if "." in name}
    return {
        "kafka": {
            **({} if version is None else {"version": version}),
            "listeners": [_listener(spec.access, name) for name in (_PLAIN, *((_TLS,) if context.tls else ()))],
            "config": config,
            **_PROBES,
        },
        "entityOperator": _entity_operator(context, instance.measured_nodes),
    }


def _listener(access: Access, name: str) -> Manifest:
    kind = {"type": _LISTENER_TYPES[access], "tls": name == _TLS, "authentication": {"type": _SCRAM}}
    return {"name": name, "port": _PORTS[name], **kind}


def _entity_operator(context: BrokerContext, measured_nodes: Iterable[str]) -> Manifest:
    """Returns the entity operator, which runs on no measured node. Topics have no finalizers, so they do not outlive
    the run."""
    fields = [{"key": "metadata.name", "operator": "NotIn", "values": [node]} for node in measured_nodes]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    pod = {"affinity": affinity, **priority(context.images)}
    no_finalizers = {"env": [{"name": "STRIMZI_USE_FINALIZERS", "value": "false"}]}
    return {
        "topicOperator": _SMALL,
        "userOperator": _SMALL,
        "template": {
            "pod": pod,
            "topicOperatorContainer": {**no_finalizers, **_RESTRICTED},
            "userOperatorContainer": _RESTRICTED,
        },
    }


def _user(instance: ServerInstance) -> Manifest:
    """Returns the account of the Secret that the clients have. The user has the name of the object."""
    password = {"valueFrom": {"secretKeyRef": {"name": instance.attached, "key": "password"}}}
    return {"authentication": {"type": _SCRAM, "password": password}}
