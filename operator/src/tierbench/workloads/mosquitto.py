"""Mosquitto on a node: its configuration, whole, and its pod with the agent beside it."""

from typing import Any, Final

from tierbench.api.benchmark import Access, Tls
from tierbench.api.broker import BrokerSpec, Mosquitto
from tierbench.workloads.access import access_services
from tierbench.workloads.agent import CREDENTIALS, CREDENTIALS_MOUNT, agent_container, agent_service
from tierbench.workloads.names import LABEL_ROLE, LABEL_RUN, LABEL_SLOT, ROLE_SERVER, Owner
from tierbench.workloads.pods import POD_SECURITY, RESTRICTED, SERVER_READY_PERIOD_SECONDS, placement, pod_basics
from tierbench.workloads.workload import Images, Manifest, ServerSite

PROCESS: Final = "mosquitto"
PORTS: Final = {"mqtt": 1883, "mqtts": 8883}
PASSWORDS_FILE: Final = f"{CREDENTIALS}/mosquitto-passwords"
DATA: Final = "/data"
_UNLIMITED: Final = "0"


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
            f"certfile {CREDENTIALS}/tls.crt",
            f"keyfile {CREDENTIALS}/tls.key",
        ]
    return "".join(f"{line}\n" for line in lines)


def mosquitto_manifests(
    owner: Owner, spec: BrokerSpec, mosquitto: Mosquitto, images: Images, site: ServerSite
) -> tuple[Manifest, ...]:
    """ConfigMap, Services, and last the pod."""
    labels = {LABEL_RUN: str(site.run), LABEL_ROLE: ROLE_SERVER, LABEL_SLOT: str(site.slot_index)}
    metadata = owner.metadata(site.name, labels)
    tls = any(level is not Tls.NONE for level in spec.tls)
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"mosquitto.conf": configuration(mosquitto, tls)},
    }
    return (
        config_map,
        *access_services(metadata, labels, spec.access, PORTS),
        agent_service(owner, site, labels),
        _pod(metadata, spec, images, site),
    )


def _pod(metadata: Manifest, spec: BrokerSpec, images: Images, site: ServerSite) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            **pod_basics(images.pull_secrets),
            **placement(site.node, site.node_class),
            **({"hostNetwork": True} if spec.access is Access.HOST_NETWORK else {}),
            # The agent tells what CPU the broker's process takes.
            "shareProcessNamespace": True,
            "restartPolicy": "Always",
            "securityContext": POD_SECURITY,
            "containers": [
                _mosquitto(images),
                agent_container(images, PORTS.values(), ["--directory=", "--process", PROCESS], ()),
            ],
            "volumes": [
                {"name": "config", "configMap": {"name": site.name}},
                {"name": "credentials", "secret": {"secretName": site.name, "defaultMode": 0o440}},
                {"name": "data", "emptyDir": {}},
            ],
        },
    }


def _mosquitto(images: Images) -> dict[str, Any]:
    return {
        "name": "mosquitto",
        "image": images.mosquitto,
        "command": ["mosquitto", "-c", "/etc/tierbench/mosquitto.conf"],
        "ports": [{"name": name, "containerPort": port} for name, port in PORTS.items()],
        # Only until it has started: a probe is a connection, and those that count are the clients'.
        "startupProbe": {
            "tcpSocket": {"port": PORTS["mqtt"]},
            "periodSeconds": SERVER_READY_PERIOD_SECONDS,
            "failureThreshold": 60,
        },
        "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}},
        "securityContext": RESTRICTED,
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/tierbench", "readOnly": True},
            CREDENTIALS_MOUNT,
            {"name": "data", "mountPath": DATA},
        ],
    }
