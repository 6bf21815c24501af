"""The pod of a server with the agent next to it, and its Services."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tierbench.api.benchmark import Access
from tierbench.api.quantity import Resources
from tierbench.workloads.names import Owner, server_labels
from tierbench.workloads.networking import access_services, host_and_port, service
from tierbench.workloads.pods import (
    AGENT_KEY,
    AGENT_PIN,
    AGENT_TOKEN,
    NO_SIDECARS,
    POD_IP,
    POD_IP_VARIABLE,
    RESTRICTED,
    SERVER_READY_PERIOD_SECONDS,
    pin_to_node,
    pod_basics,
    secret_volume,
    sidecar_resources,
)
from tierbench.workloads.workload import Images, Manifest, RunningServer, ServerInstance

AGENT_PORT: Final = 8090
CLIENT_KEYS: Final = (AGENT_TOKEN, AGENT_PIN)
"""The keys of a server's Secret that clients need to talk to its agent."""

_CREDENTIALS: Final = "/agent"
_REQUESTS: Final = {"cpu": "10m", "memory": "16Mi"}


def agent_url(server: RunningServer) -> str:
    """Returns the URL of a server's agent. It has the IP address, because a name lookup would cost time while
    measuring."""
    return f"https://{host_and_port(server.agent['spec']['clusterIP'], AGENT_PORT)}"


def agent_container(
    images: Images,
    ports: Iterable[int],
    arguments: Sequence[str],
    resources: Resources | None,
    mounts: Sequence[Manifest] = (),
) -> dict[str, Any]:
    """Returns the container of an agent.

    `ports` and `resources` are those of the server, `arguments` say what else the agent samples. The container has no
    memory limit of its own, because the page cache that it fills is charged to it.
    """
    listen = ["--address", POD_IP, "--port", str(AGENT_PORT)]
    credentials = ["--token-file", f"{_CREDENTIALS}/{AGENT_TOKEN}", "--key-file", f"{_CREDENTIALS}/{AGENT_KEY}"]
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
        "resources": sidecar_resources(resources, _REQUESTS),
        "securityContext": RESTRICTED,
        "volumeMounts": [*mounts, {"name": "agent", "mountPath": _CREDENTIALS, "readOnly": True}],
    }


def server_manifests(
    owner: Owner,
    images: Images,
    instance: ServerInstance,
    access: Access,
    ports: Mapping[str, int],
    agent: Manifest,
    *,
    containers: Sequence[Manifest],
    volumes: Sequence[Manifest],
    before: Sequence[Manifest] = (),
    share_processes: bool = False,
    protocols: Sequence[str] = ("TCP",),
) -> tuple[Manifest, ...]:
    """Returns the Services of a server and its agent, and last the pod with both.

    `ports` are those that clients connect to, `before` are init containers. With `share_processes`, the agent can
    measure the CPU time of the server's processes.
    """
    labels = server_labels(instance.run, instance.slot)
    services = access_services(owner.metadata(instance.name, labels), labels, access, ports, protocols)
    fields = {
        **({"hostNetwork": True} if access is Access.HOST_NETWORK else {}),
        **({"shareProcessNamespace": True} if share_processes else {}),
        **({"initContainers": list(before)} if before else {}),
    }
    return (*services, *_agent_and_pod(owner, images, instance, [*containers, agent], volumes, fields))


def agent_manifests(
    owner: Owner, images: Images, instance: ServerInstance, resources: Resources | None
) -> tuple[Manifest, ...]:
    """Returns an agent in a pod of its own, for a server that is not in one of tierbench's pods.

    Clients synchronize through the agent, and it samples the node.
    """
    agent = agent_container(images, (), ["--directory="], resources)
    return _agent_and_pod(owner, images, instance, [agent], (), {})


def _agent_and_pod(
    owner: Owner,
    images: Images,
    instance: ServerInstance,
    containers: Sequence[Manifest],
    volumes: Sequence[Manifest],
    fields: Manifest,
) -> tuple[Manifest, Manifest]:
    """Returns the Service of an agent, and the pod with these containers, volumes and further fields."""
    labels = server_labels(instance.run, instance.slot)
    credentials = secret_volume("agent", instance, (AGENT_TOKEN, AGENT_KEY))
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**owner.metadata(instance.name, labels), "annotations": NO_SIDECARS},
        "spec": {
            **pod_basics(images),
            **pin_to_node(instance.node, instance.node_class),
            **fields,
            "restartPolicy": "Always",
            "containers": list(containers),
            "volumes": [*volumes, credentials],
        },
    }
    return service(owner.metadata(f"{instance.name}-agent", labels), labels, {"agent": AGENT_PORT}, "ClusterIP"), pod
