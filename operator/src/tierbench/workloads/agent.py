"""The agent beside a server: what it is started with, and how clients reach it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tierbench.workloads.access import service
from tierbench.workloads.names import Owner
from tierbench.workloads.pods import RESTRICTED, SERVER_READY_PERIOD_SECONDS
from tierbench.workloads.workload import Images, Manifest, RunningServer, ServerSite

AGENT_PORT: Final = 8090
CREDENTIALS: Final = "/credentials"
TOKEN_FILE: Final = f"{CREDENTIALS}/agent-token"
CA_FILE: Final = f"{CREDENTIALS}/ca.crt"
CREDENTIALS_MOUNT: Final = {"name": "credentials", "mountPath": CREDENTIALS, "readOnly": True}


def agent_service(owner: Owner, site: ServerSite, labels: Mapping[str, str]) -> Manifest:
    """Where clients reach it."""
    return service(owner.metadata(f"{site.name}-agent", labels), labels, {"agent": AGENT_PORT}, "ClusterIP")


def agent_url(server: RunningServer) -> str:
    """The same as a URL. Its address, not its name: a lookup in mid-measurement would cost."""
    return f"http://{server.agent['spec']['clusterIP']}:{AGENT_PORT}"


def agent_container(
    images: Images, ports: Iterable[int], arguments: Sequence[str], mounts: Sequence[Manifest]
) -> dict[str, Any]:
    """The container; `ports` are the server's, `arguments` say what else it looks at."""
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
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        "securityContext": RESTRICTED,
        "volumeMounts": [*mounts, CREDENTIALS_MOUNT],
    }
