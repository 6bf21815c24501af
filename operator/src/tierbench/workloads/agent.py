"""The agent beside a server: what it is started with, and how clients reach it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tierbench.api.compute import Resources
from tierbench.workloads.access import host_and_port, service
from tierbench.workloads.compute import beside
from tierbench.workloads.names import LABEL_ROLE, LABEL_RUN, LABEL_SLOT, ROLE_SERVER, Owner
from tierbench.workloads.pods import (
    NO_SIDECARS,
    POD_SECURITY,
    RESTRICTED,
    SERVER_READY_PERIOD_SECONDS,
    placement,
    pod_basics,
)
from tierbench.workloads.workload import Images, Manifest, RunningServer, ServerSite

AGENT_PORT: Final = 8090
CREDENTIALS: Final = "/credentials"
TOKEN_FILE: Final = f"{CREDENTIALS}/agent-token"
_REQUESTS: Final = {"cpu": "10m", "memory": "16Mi"}
CREDENTIALS_MOUNT: Final = {"name": "credentials", "mountPath": CREDENTIALS, "readOnly": True}


def agent_service(owner: Owner, site: ServerSite, labels: Mapping[str, str]) -> Manifest:
    """Where clients reach it."""
    return service(owner.metadata(f"{site.name}-agent", labels), labels, {"agent": AGENT_PORT}, "ClusterIP")


def agent_url(server: RunningServer) -> str:
    """The same as a URL. Its address, not its name: a lookup in mid-measurement would cost."""
    return f"http://{host_and_port(server.agent['spec']['clusterIP'], AGENT_PORT)}"


def agent_container(
    images: Images,
    ports: Iterable[int],
    arguments: Sequence[str],
    resources: Resources | None,
    mounts: Sequence[Manifest] = (),
) -> dict[str, Any]:
    """The container; `ports` and `resources` are the server's, `arguments` say what else it looks at. Of itself it has
    no limit of memory, as the page cache that it fills is charged to it."""
    listen = ["--listen", f":{AGENT_PORT}", "--token-file", TOKEN_FILE]
    return {
        "name": "agent",
        "image": images.client,
        "args": ["agent", *listen, "--ports", ",".join(map(str, ports)), *arguments],
        "ports": [{"name": "agent", "containerPort": AGENT_PORT}],
        "readinessProbe": {
            "httpGet": {"path": "/healthz", "port": AGENT_PORT},
            "periodSeconds": SERVER_READY_PERIOD_SECONDS,
            "failureThreshold": 30,
        },
        "resources": beside(resources, _REQUESTS),
        "securityContext": RESTRICTED,
        "volumeMounts": [*mounts, CREDENTIALS_MOUNT],
    }


def credentials_volume(site: ServerSite) -> dict[str, Any]:
    """The Secret of a server, for its pod."""
    return {"name": "credentials", "secret": {"secretName": site.attached, "defaultMode": 0o440}}


def agent_manifests(
    owner: Owner, images: Images, site: ServerSite, resources: Resources | None
) -> tuple[Manifest, ...]:
    """The agent in a pod of its own, where the server is not in a pod of ours: clients meet at it, and it tells of the
    node."""
    labels = {LABEL_RUN: str(site.run), LABEL_ROLE: ROLE_SERVER, LABEL_SLOT: str(site.slot_index)}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**owner.metadata(site.name, labels), "annotations": NO_SIDECARS},
        "spec": {
            **pod_basics(images.pull_secrets, images.priority_class),
            **placement(site.node, site.node_class),
            "restartPolicy": "Always",
            "securityContext": POD_SECURITY,
            "containers": [agent_container(images, (), ["--directory="], resources)],
            "volumes": [credentials_volume(site)],
        },
    }
    return (agent_service(owner, site, labels), pod)
