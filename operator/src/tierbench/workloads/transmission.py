"""The client of a network: a Job that runs ping and iperf3, trial after trial."""

from typing import Any, Final

from tierbench.api.benchmark import Access
from tierbench.api.network import NetworkSpec
from tierbench.workloads.access import address
from tierbench.workloads.agent import TOKEN_FILE, agent_url
from tierbench.workloads.client_job import client_job, secret_items
from tierbench.workloads.iperf3 import TMP, port, port_name
from tierbench.workloads.names import Owner
from tierbench.workloads.plan import Case
from tierbench.workloads.pods import NONROOT
from tierbench.workloads.workload import ClientSite, Images, Manifest, RunningServer

# Lets the pod's group open ICMP sockets, which need no capability. Kubernetes counts it among the safe sysctls.
PING_SYSCTL: Final = {"name": "net.ipv4.ping_group_range", "value": f"{NONROOT} {NONROOT}"}


def arguments(spec: NetworkSpec, case: Case, parts: int, site: ClientSite, server: RunningServer) -> list[str]:
    """The command line of the engine of one of so many parts."""
    part = site.part.index
    options: dict[str, Any] = {
        "server": address(spec.access, server, port_name(part), port(part)),
        "trials": f"{site.trials[0]}-{site.trials[-1]}",
        "warmup": spec.warmup,
        "protocol": case.levels["protocol"],
        "direction": case.levels["direction"],
        "streams": case.levels["streams"],
        "duration-seconds": spec.duration_seconds,
        "ping-host": _ping_host(spec.access, server),
        "ping-count": spec.ping.count,
        "ping-interval-milliseconds": spec.ping.interval_milliseconds,
        "ping-size": spec.ping.size,
        "trace-milliseconds": spec.trace_interval_milliseconds,
        "agent": agent_url(server),
        "agent-token-file": TOKEN_FILE,
        "barrier": f"r{site.run}-c{case.number}-a{site.attempt}",
        "part": part,
        "parts": parts,
        "output": "json",
        "termination-log": "/dev/termination-log",
    }
    if spec.udp is not None:
        options["kilobits-per-second"] = spec.udp.kilobits_per_second
    return ["network", *(f"--{name}={value}" for name, value in options.items())]


def _ping_host(access: Access, server: RunningServer) -> str:
    """Who answers echo requests: the pod, or the node where that is the address. A Service's address does not."""
    return server.host_ip if access in (Access.NODE_PORT, Access.HOST_NETWORK) else server.pod_ip


def transmission_job(
    owner: Owner,
    spec: NetworkSpec,
    images: Images,
    parts: int,
    site: ClientSite,
    case: Case,
    server: RunningServer,
) -> Manifest:
    """The Job of one of so many parts."""
    return client_job(
        owner,
        images,
        site,
        case,
        images.network,
        arguments(spec, case, parts, site, server),
        (secret_items(server.site.attached, "agent-token"),),
        sysctls=(PING_SYSCTL,) if spec.ping.count else (),
        scratch=(TMP,),
    )
