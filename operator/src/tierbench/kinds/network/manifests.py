"""The iperf3 server: a process and a port for each client that may measure at once, the agent beside them."""

from collections.abc import Mapping
from typing import Any, Final

from tierbench.api.benchmark import Access
from tierbench.kinds.network.spec import NetworkSpec, Protocol
from tierbench.workloads.access import access_services
from tierbench.workloads.agent import agent_container, agent_service, agent_volume
from tierbench.workloads.compute import measured
from tierbench.workloads.names import Owner, server_labels
from tierbench.workloads.pods import (
    NO_SIDECARS,
    POD_IP,
    POD_IP_VARIABLE,
    RESTRICTED,
    SERVER_READY_PERIOD_SECONDS,
    ScratchDirectory,
    placement,
    pod_basics,
)
from tierbench.workloads.workload import Images, Manifest, ServerSite

PROCESS: Final = "iperf3"
_FIRST_PORT: Final = 5201
# Where iperf3 keeps what it sends.
TMP: Final = ScratchDirectory("tmp", "/tmp", "64Mi")  # noqa: S108 (the container's own)
# Where the agent has an iperf3 listen while the client that it is for is there.
GATES: Final = ScratchDirectory("gates", "/gates", "1Mi")
_OBSERVED: Final = ("--directory=", "--process", PROCESS, "--gates", GATES.path)


def port_name(part: int) -> str:
    """The name of the port, and of the container, that serves a part of the client."""
    return f"{PROCESS}-{part + 1}"


def port(part: int) -> int:
    """Its number."""
    return _FIRST_PORT + part


def iperf3_manifests(owner: Owner, spec: NetworkSpec, images: Images, site: ServerSite) -> tuple[Manifest, ...]:
    """Services, and last the pod."""
    ports = {port_name(part): port(part) for part in range(spec.clients.most_at_once)}
    labels = server_labels(site.run, site.slot_index)
    metadata = owner.metadata(site.name, labels)
    return (
        *access_services(metadata, labels, spec.access, ports, tuple(Protocol)),
        agent_service(owner, site, labels),
        _pod(metadata, spec, images, site, ports),
    )


def _pod(metadata: Manifest, spec: NetworkSpec, images: Images, site: ServerSite, ports: Mapping[str, int]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "annotations": NO_SIDECARS},
        "spec": {
            **pod_basics(images),
            **placement(site.node, site.node_class),
            **({"hostNetwork": True} if spec.access is Access.HOST_NETWORK else {}),
            # The agent tells what CPU the servers' processes take.
            "shareProcessNamespace": True,
            "restartPolicy": "Always",
            "containers": [
                *(_iperf3(spec, images, part) for part in range(len(ports))),
                agent_container(images, ports.values(), _OBSERVED, spec.servers.resources, [GATES.mount]),
            ],
            "volumes": [agent_volume(site), GATES.volume, TMP.volume],
        },
    }


def _iperf3(spec: NetworkSpec, images: Images, part: int) -> dict[str, Any]:
    gate = f"{GATES.path}/{part}"
    server = ["iperf3", "--server", "--forceflush", "--bind", POD_IP, "--port", str(port(part))]
    return {
        "name": port_name(part),
        **images.pulled(images.network),
        "command": ["tierbench-client", "gate", "--socket", gate, "--", *server],
        "env": [POD_IP_VARIABLE],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "ports": [{"name": port_name(part), "containerPort": port(part)}],
        "startupProbe": {
            "exec": {"command": ["test", "-S", gate]},
            "periodSeconds": SERVER_READY_PERIOD_SECONDS,
            "failureThreshold": 60,
        },
        "resources": measured(spec.servers.resources),
        "securityContext": RESTRICTED,
        "volumeMounts": [TMP.mount, GATES.mount],
    }
