"""The pod of a broker of our own, and Mosquitto in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tierbench.api.benchmark import Access
from tierbench.api.quantity import format_size
from tierbench.kinds.broker.server_spec import Mosquitto
from tierbench.kinds.broker.spec import BrokerSpec
from tierbench.workloads.agent import agent_container, agent_service, agent_volume
from tierbench.workloads.names import Owner, server_labels
from tierbench.workloads.networking import access_services
from tierbench.workloads.pods import (
    CERTIFICATE,
    CREDENTIALS,
    CREDENTIALS_MOUNT,
    NO_SIDECARS,
    RESTRICTED,
    SERVER_READY_PERIOD_SECONDS,
    SMALL,
    beside,
    credentials_mounts,
    credentials_volumes,
    measured,
    pin_to_node,
    pod_basics,
)
from tierbench.workloads.workload import Images, Manifest, NodeSize, ServerInstance

CONFIGURATION: Final = "/etc/tierbench"
DATA: Final = "/data"
START_SECONDS: Final = 600
_MEBIBYTE: Final = 2**20
_LEAST_STORAGE: Final = 1024 * _MEBIBYTE
_MOST_STORAGE: Final = 16 * 1024 * _MEBIBYTE
_NODE_SHARE: Final = 4
_SCRATCH: Final = "64Mi"
_MOUNTS: Final = (
    {"name": "config", "mountPath": CONFIGURATION, "readOnly": True},
    {"name": "data", "mountPath": DATA},
)
PORTS: Final = {"mqtt": 1883, "mqtts": 8883}
PASSWORDS_KEY: Final = "mosquitto-passwords"
PASSWORDS_FILE: Final = f"/{PASSWORDS_KEY}"
_UNLIMITED: Final = "0"


@dataclass(frozen=True)
class BrokerServer:
    """What is particular to a broker: `process` is its program's name, `files` its configuration at CONFIGURATION."""

    name: str
    image: str
    command: tuple[str, ...]
    process: str
    ports: Mapping[str, int]
    files: Mapping[str, str]
    requests: Mapping[str, str] = field(default_factory=lambda: SMALL)
    before: tuple[Manifest, ...] = ()
    volumes: tuple[str, ...] = ()
    """Further paths that it writes to."""
    credentials: tuple[str, ...] = ()
    """Keys of its Secret that it reads."""
    plain_credentials: Mapping[str, str] = field(default_factory=dict)
    """Paths, by their key, of credentials that it wants as plain files: in a Secret's mount all are symbolic links."""

    @property
    def mounts(self) -> tuple[Manifest, ...]:
        """Configuration, credentials, data, and what else it writes to."""
        plain = (
            {**CREDENTIALS_MOUNT, "mountPath": path, "subPath": key} for key, path in self.plain_credentials.items()
        )
        return (
            *_MOUNTS,
            *credentials_mounts(self.credentials),
            *plain,
            *({"name": _volume(path), "mountPath": path} for path in self.volumes),
        )


def storage_size(size: NodeSize) -> int:
    """Bytes that a broker may keep."""
    return share(size.storage_bytes, _LEAST_STORAGE, _MOST_STORAGE)


def share(whole: int, least: int, most: int) -> int:
    """A broker's part of what there is, in whole MiB."""
    return min(most, max(least, whole // _NODE_SHARE)) // _MEBIBYTE * _MEBIBYTE


def _volume(path: str) -> str:
    return path.strip("/")


def broker_manifests(
    owner: Owner, spec: BrokerSpec, images: Images, instance: ServerInstance, broker: BrokerServer
) -> tuple[Manifest, ...]:
    """ConfigMap, Services, and last the pod."""
    labels = server_labels(instance.run, instance.slot)
    metadata = owner.metadata(instance.name, labels)
    attached = owner.metadata(instance.attached, labels)
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": attached, "data": dict(broker.files)}
    return (
        config_map,
        *access_services(metadata, labels, spec.access, broker.ports),
        agent_service(owner, instance, labels),
        _pod(metadata, spec, images, instance, broker),
    )


def _pod(
    metadata: Manifest, spec: BrokerSpec, images: Images, instance: ServerInstance, broker: BrokerServer
) -> Manifest:
    resources = spec.servers.resources
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "annotations": NO_SIDECARS},
        "spec": {
            **pod_basics(images),
            **pin_to_node(instance.node, instance.node_class),
            **({"hostNetwork": True} if spec.access is Access.HOST_NETWORK else {}),
            # The agent tells what CPU the broker's process takes.
            "shareProcessNamespace": True,
            "restartPolicy": "Always",
            "initContainers": [
                {**_restricted(images, broker, container), "resources": beside(resources, broker.requests)}
                for container in broker.before
            ],
            "containers": [
                {**_restricted(images, broker, _container(broker)), "resources": measured(resources, broker.requests)},
                agent_container(
                    images, broker.ports.values(), ["--directory=", "--process", broker.process], resources
                ),
            ],
            "volumes": [
                {"name": "config", "configMap": {"name": instance.attached}},
                *credentials_volumes(instance, broker.credentials),
                agent_volume(instance),
                {"name": "data", "emptyDir": {"sizeLimit": format_size(storage_size(instance.size))}},
                *({"name": _volume(path), "emptyDir": {"sizeLimit": _SCRATCH}} for path in broker.volumes),
            ],
        },
    }


def _restricted(images: Images, broker: BrokerServer, container: Manifest) -> Manifest:
    return {
        **container,
        **images.pulled(broker.image),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": RESTRICTED,
        "volumeMounts": list(broker.mounts),
    }


def _container(broker: BrokerServer) -> Manifest:
    return {
        "name": broker.name,
        "command": list(broker.command),
        "ports": [{"name": name, "containerPort": port} for name, port in broker.ports.items()],
        # Only until it has started: a probe is a connection, and those that count are the clients'.
        "startupProbe": {
            "tcpSocket": {"port": next(iter(broker.ports.values()))},
            "periodSeconds": SERVER_READY_PERIOD_SECONDS,
            "failureThreshold": START_SECONDS,
        },
    }


def settings(mosquitto: Mosquitto) -> dict[str, str]:
    """What is set on purpose, by the names of mosquitto.conf(5).

    Small packets leave at once (tcp_nodelay), and no limit drops messages behind the client's back: how many are under
    way is the client's window.
    """
    return {
        "set_tcp_nodelay": "true",
        "max_inflight_messages": str(mosquitto.max_inflight_messages),
        "max_queued_messages": str(mosquitto.max_queued_messages),
        "max_queued_bytes": _UNLIMITED,
        "message_size_limit": str(mosquitto.message_size_limit),
        "persistence": str(mosquitto.persistence).lower(),
    }


def configuration(mosquitto: Mosquitto, tls: bool) -> str:
    """mosquitto.conf, whole."""
    lines = [
        "allow_anonymous false",
        f"password_file {PASSWORDS_FILE}",
        *(f"{name} {value}" for name, value in settings(mosquitto).items()),
        f"persistence_location {DATA}/",
        "connection_messages false",
        "log_dest stderr",
        "log_type error",
        "log_type warning",
        f"listener {PORTS['mqtt']}",
    ]
    if tls:
        lines += [
            f"listener {PORTS['mqtts']}",
            # Before 2.0 there is no TLS without a place of CAs. In this one there is none, so none is sent along.
            f"capath {CREDENTIALS}",
            f"certfile {CREDENTIALS}/tls.crt",
            f"keyfile {CREDENTIALS}/tls.key",
        ]
    return "".join(f"{line}\n" for line in lines)


def mosquitto_server(mosquitto: Mosquitto, image: str, tls: bool) -> BrokerServer:
    """Mosquitto as it is deployed."""
    return BrokerServer(
        name="mosquitto",
        image=image,
        command=("mosquitto", "-c", f"{CONFIGURATION}/mosquitto.conf"),
        process="mosquitto",
        ports=PORTS,
        files={"mosquitto.conf": configuration(mosquitto, tls)},
        credentials=(PASSWORDS_KEY, *(CERTIFICATE if tls else ())),
        # From 2.1 on Mosquitto follows no symbolic link to its passwords.
        plain_credentials={PASSWORDS_KEY: PASSWORDS_FILE},
    )
