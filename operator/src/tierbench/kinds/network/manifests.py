"""The Pods and Jobs of a network: iperf3 on the server's side, ping and iperf3 on the client's."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tierbench.api.benchmark import Access
from tierbench.api.policy import Policy
from tierbench.kinds.network.spec import NetworkSpec, Protocol
from tierbench.workloads.access import access_services, address
from tierbench.workloads.agent import CLIENT_KEYS, agent_container, agent_service, agent_volume
from tierbench.workloads.client_job import client_job, flags, series_options
from tierbench.workloads.compute import measured
from tierbench.workloads.credentials import secret_items
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
from tierbench.workloads.workload import ClientSite, Images, Manifest, RunningServer, ServerSite, Target

PROCESS: Final = "iperf3"
IMAGE: Final = "network"
_FIRST_PORT: Final = 5201
# Where iperf3 keeps what it sends.
TMP: Final = ScratchDirectory("tmp", "/tmp", "64Mi")  # noqa: S108 (the container's own)
# Where the agent has an iperf3 listen while the client that it is for is there.
GATES: Final = ScratchDirectory("gates", "/gates", "1Mi")
_OBSERVED: Final = ("--directory=", "--process", PROCESS, "--gates", GATES.path)
CONGESTION_CONTROL: Final = "congestionControl"
# Lets any group open ICMP sockets, which need no capability: the pod's may be the platform's choice. It holds in the
# pod's network alone, and Kubernetes counts it among the safe sysctls.
PING_SYSCTL: Final = {"name": "net.ipv4.ping_group_range", "value": "0 2147483647"}


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
        **images.pulled(images.programs[IMAGE]),
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


def arguments(spec: NetworkSpec, policy: Policy, parts: int, site: ClientSite, targets: Sequence[Target]) -> list[str]:
    """The command line of the engine of one of so many parts."""
    part, levels = site.part.index, targets[0].case.levels
    options: dict[str, Any] = {
        **_ends(spec, part, targets),
        "protocol": levels["protocol"],
        "direction": levels["direction"],
        "streams": levels["streams"],
        "duration-seconds": spec.duration_seconds,
        "ping-count": spec.ping.count,
        "ping-interval-milliseconds": spec.ping.interval_milliseconds,
        "ping-size": spec.ping.size,
        "trace-milliseconds": spec.trace_interval_milliseconds,
        "barrier": f"r{site.run}-c{site.block}-a{site.attempt}",
        "part": part,
        "parts": parts,
        **series_options(site, spec.warmup, targets),
    }
    if targets[0].case.server.external:  # it has no agent
        options = {name: value for name, value in options.items() if not name.startswith("agent")}
        options["refused-networks"] = ",".join(policy.refused_networks)
    if spec.udp is not None:
        options["kilobits-per-second"] = spec.udp.kilobits_per_second
    if CONGESTION_CONTROL in levels:
        options["congestion-control"] = levels[CONGESTION_CONTROL]
    return ["network", *flags(options)]


def _ends(spec: NetworkSpec, part: int, targets: Sequence[Target]) -> dict[str, list[str]]:
    """Where iperf3 goes, and ping if that is elsewhere."""
    external = spec.servers.external
    if external is not None and targets[0].case.server.external:
        return {"server": [external.address]}
    return {
        "server": [address(spec.access, target.server, port_name(part), port(part)) for target in targets],
        "ping-host": [_ping_host(spec.access, target.server) for target in targets],
    }


def _ping_host(access: Access, server: RunningServer) -> str:
    """Who answers echo requests: the pod, or the node where that is the address. A Service's address does not."""
    return server.host_ip if access in (Access.NODE_PORT, Access.HOST_NETWORK) else server.pod_ip


def transmission_job(
    owner: Owner,
    spec: NetworkSpec,
    images: Images,
    policy: Policy,
    parts: int,
    site: ClientSite,
    targets: Sequence[Target],
) -> Manifest:
    """The Job of one of so many parts."""
    return client_job(
        owner,
        images,
        site,
        targets,
        images.programs[IMAGE],
        arguments(spec, policy, parts, site, targets),
        spec.clients.resources,
        [(secret_items(target.server.site.attached, *CLIENT_KEYS),) for target in targets],
        sysctls=(PING_SYSCTL,) if spec.ping.count else (),
        directories=(TMP,),
    )
