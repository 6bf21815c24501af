"""The agent beside a server: what it is started with, and how clients reach it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tierbench.api.quantity import Resources
from tierbench.workloads.names import Owner, server_labels
from tierbench.workloads.networking import host_and_port, service
from tierbench.workloads.pods import (
    KEY,
    NO_SIDECARS,
    PIN,
    POD_IP,
    POD_IP_VARIABLE,
    RESTRICTED,
    SERVER_READY_PERIOD_SECONDS,
    TOKEN,
    beside,
    pin_to_node,
    pod_basics,
    secret_volume,
)
from tierbench.workloads.workload import Images, Manifest, RunningServer, ServerInstance

AGENT_PORT: Final = 8090
CLIENT_KEYS: Final = (TOKEN, PIN)
"""Of a server's Secret, what clients need to speak with its agent."""

_CREDENTIALS: Final = "/agent"
_REQUESTS: Final = {"cpu": "10m", "memory": "16Mi"}


def agent_service(owner: Owner, instance: ServerInstance, labels: Mapping[str, str]) -> Manifest:
    """Where clients reach it."""
    return service(owner.metadata(f"{instance.name}-agent", labels), labels, {"agent": AGENT_PORT}, "ClusterIP")


def agent_url(server: RunningServer) -> str:
    """The same as a URL. Its address, not its name: a lookup in mid-measurement would cost."""
    return f"https://{host_and_port(server.agent['spec']['clusterIP'], AGENT_PORT)}"


def agent_container(
    images: Images,
    ports: Iterable[int],
    arguments: Sequence[str],
    resources: Resources | None,
    mounts: Sequence[Manifest] = (),
) -> dict[str, Any]:
    """The container; `ports` and `resources` are the server's, `arguments` say what else it looks at. Of itself it has
    no limit of memory, as the page cache that it fills is charged to it."""
    listen = ["--address", POD_IP, "--port", str(AGENT_PORT)]
    credentials = ["--token-file", f"{_CREDENTIALS}/{TOKEN}", "--key-file", f"{_CREDENTIALS}/{KEY}"]
    return {
        "name": "agent",
        **images.pulled(images.client),
        "args": ["agent", *listen, *credentials, "--ports", ",".join(map(str, ports)), *arguments],
        "env": [POD_IP_VARIABLE],
        "ports": [{"name": "agent", "containerPort": AGENT_PORT}],
        "readinessProbe": {
            "httpGet": {"path": "/healthz", "port": AGENT_PORT, "scheme": "HTTPS"},
            "periodSeconds": SERVER_READY_PERIOD_SECONDS,
            "failureThreshold": 30,
        },
        "resources": beside(resources, _REQUESTS),
        "securityContext": RESTRICTED,
        "volumeMounts": [*mounts, {"name": "agent", "mountPath": _CREDENTIALS, "readOnly": True}],
    }


def agent_volume(instance: ServerInstance) -> dict[str, Any]:
    """What the agent needs of its server's Secret."""
    return secret_volume("agent", instance, (TOKEN, KEY))


def agent_manifests(
    owner: Owner, images: Images, instance: ServerInstance, resources: Resources | None
) -> tuple[Manifest, ...]:
    """The agent in a pod of its own, where the server is not in a pod of ours: clients meet at it, and it tells of the
    node."""
    labels = server_labels(instance.run, instance.slot)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**owner.metadata(instance.name, labels), "annotations": NO_SIDECARS},
        "spec": {
            **pod_basics(images),
            **pin_to_node(instance.node, instance.node_class),
            "restartPolicy": "Always",
            "containers": [agent_container(images, (), ["--directory="], resources)],
            "volumes": [agent_volume(instance)],
        },
    }
    return (agent_service(owner, instance, labels), pod)
