"""The pod of a broker that tierbench deploys, and Mosquitto."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tierbench.api.quantity import format_size
from tierbench.kinds.broker.server_spec import Mosquitto
from tierbench.kinds.broker.spec import BrokerSpec
from tierbench.workloads.manifests import agent_container, server_manifests
from tierbench.workloads.pods import (
    CA,
    CREDENTIALS,
    CREDENTIALS_MOUNT,
    RESTRICTED,
    SERVER_READY_PERIOD_SECONDS,
    SMALL_REQUESTS,
    TLS_CERTIFICATE,
    credentials_mounts,
    credentials_volumes,
    measured_resources,
    secret_volume,
    sidecar_resources,
)
from tierbench.workloads.workload import Images, Manifest, NodeSize, Owner, ServerInstance, server_labels

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
ACCOUNT_FOLDER: Final = "/account"
_ACCOUNT_MOUNT: Final = {"name": "account", "mountPath": ACCOUNT_FOLDER, "readOnly": True}
PORTS: Final = {"mqtt": 1883, "mqtts": 8883}
MUTUAL: Final = "-mutual"
"""The end of the name of a port at which clients need certificates."""
MUTUAL_PORTS: Final = {f"mqtts{MUTUAL}": 8884}
PASSWORDS_KEY: Final = "mosquitto-passwords"
PASSWORDS_FILE: Final = f"/{PASSWORDS_KEY}"
_UNLIMITED: Final = "0"


@dataclass(frozen=True)
class BrokerServer:
    """The properties of a broker.

    `process` is the name of its program, `files` are its configuration files below CONFIGURATION.
    """

    name: str
    image: str
    command: tuple[str, ...]
    process: str
    ports: Mapping[str, int]
    files: Mapping[str, str]
    requests: Mapping[str, str] = field(default_factory=lambda: SMALL_REQUESTS)
    before: tuple[Manifest, ...] = ()
    volumes: tuple[str, ...] = ()
    """Further paths that it writes to."""
    credentials: tuple[str, ...] = ()
    """Keys of its Secret that it reads."""
    account: str = ""
    """The key of its Secret that init containers read in ACCOUNT_FOLDER."""
    plain_credentials: Mapping[str, str] = field(default_factory=dict)
    """Paths by key of credentials that must be plain files. In the mount of a Secret, all files are symbolic links."""

    @property
    def mounts(self) -> tuple[Manifest, ...]:
        """The mounts of configuration, credentials, data, and further writable paths."""
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
    """Returns the bytes that a broker can store."""
    return share(size.storage_bytes, _LEAST_STORAGE, _MOST_STORAGE)


def share(whole: int, least: int, most: int) -> int:
    """Returns a broker's share of a resource of the node, in whole MiB."""
    return min(most, max(least, whole // _NODE_SHARE)) // _MEBIBYTE * _MEBIBYTE


def _volume(path: str) -> str:
    return path.strip("/")


def broker_manifests(
    owner: Owner, spec: BrokerSpec, images: Images, instance: ServerInstance, broker: BrokerServer
) -> tuple[Manifest, ...]:
    """Returns ConfigMap, Services, and last the pod."""
    labels = server_labels(instance.run, instance.slot)
    attached = owner.metadata(instance.attached, labels)
    resources = spec.servers.resources
    server = {
        **_restricted(images, broker, _container(broker)),
        "resources": measured_resources(resources, broker.requests),
    }
    observed = ["--directory=", "--process", broker.process]
    return (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": attached, "data": dict(broker.files)},
        *server_manifests(
            owner,
            images,
            instance,
            spec.access,
            broker.ports,
            agent_container(images, broker.ports.values(), observed, resources),
            containers=[server],
            volumes=[
                {"name": "config", "configMap": {"name": instance.attached}},
                *credentials_volumes(instance, broker.credentials),
                *([secret_volume("account", instance, (broker.account,))] if broker.account else []),
                {"name": "data", "emptyDir": {"sizeLimit": format_size(storage_size(instance.size))}},
                *({"name": _volume(path), "emptyDir": {"sizeLimit": _SCRATCH}} for path in broker.volumes),
            ],
            before=[
                {
                    **_restricted(images, broker, container, [_ACCOUNT_MOUNT] if broker.account else []),
                    "resources": sidecar_resources(resources, broker.requests),
                }
                for container in broker.before
            ],
            share_processes=True,
        ),
    )


def _restricted(images: Images, broker: BrokerServer, container: Manifest, mounts: Sequence[Manifest] = ()) -> Manifest:
    return {
        **container,
        **images.pulled(broker.image),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": RESTRICTED,
        "volumeMounts": [*broker.mounts, *mounts],
    }


def _container(broker: BrokerServer) -> Manifest:
    return {
        "name": broker.name,
        "command": list(broker.command),
        "ports": [{"name": name, "containerPort": port} for name, port in broker.ports.items()],
        # Only until the broker has started: each probe is a connection, and would disturb the measurements.
        "startupProbe": {
            "tcpSocket": {"port": next(iter(broker.ports.values()))},
            "periodSeconds": SERVER_READY_PERIOD_SECONDS,
            "failureThreshold": START_SECONDS,
        },
    }


def settings(mosquitto: Mosquitto) -> dict[str, str]:
    """Returns the settings that tierbench chooses, by the names of mosquitto.conf(5).

    Small packets are sent at once (tcp_nodelay). No limit of the broker drops messages: the client's window limits the
    messages in flight.
    """
    return {
        "set_tcp_nodelay": "true",
        "max_inflight_messages": str(mosquitto.max_inflight_messages),
        "max_queued_messages": str(mosquitto.max_queued_messages),
        "max_queued_bytes": _UNLIMITED,
        "message_size_limit": str(mosquitto.message_size_limit),
        "persistence": str(mosquitto.persistence).lower(),
    }


def configuration(mosquitto: Mosquitto, tls: bool, mutual: bool) -> str:
    """Returns the complete mosquitto.conf."""
    certificate = (f"certfile {CREDENTIALS}/tls.crt", f"keyfile {CREDENTIALS}/tls.key")
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
            # Before 2.0, TLS needs a capath. This directory contains no CA by its hash, so Mosquitto sends none.
            f"capath {CREDENTIALS}",
            *certificate,
        ]
    if mutual:
        lines += [
            *(f"listener {port}" for port in MUTUAL_PORTS.values()),
            f"cafile {CREDENTIALS}/{CA}",
            *certificate,
            "require_certificate true",
        ]
    return "".join(f"{line}\n" for line in lines)


def tls_credentials(tls: bool, mutual: bool) -> tuple[str, ...]:
    """Returns the keys of its Secret that a broker needs for TLS. To verify `mutual` certificates it needs the CA."""
    return (*(TLS_CERTIFICATE if tls else ()), *((CA,) if mutual else ()))


def mosquitto_server(mosquitto: Mosquitto, image: str, tls: bool, mutual: bool) -> BrokerServer:
    """Returns Mosquitto as it is deployed. With `mutual`, it requires certificates of clients at one more port."""
    return BrokerServer(
        name="mosquitto",
        image=image,
        command=("mosquitto", "-c", f"{CONFIGURATION}/mosquitto.conf"),
        process="mosquitto",
        ports={**PORTS, **(MUTUAL_PORTS if mutual else {})},
        files={"mosquitto.conf": configuration(mosquitto, tls, mutual)},
        credentials=(PASSWORDS_KEY, *tls_credentials(tls, mutual)),
        # From 2.1 on, Mosquitto does not follow a symbolic link to its passwords.
        plain_credentials={PASSWORDS_KEY: PASSWORDS_FILE},
    )
