"""The client of a network: a Job that runs ping and iperf3, trial after trial."""

from collections.abc import Sequence
from typing import Any, Final

from tierbench.api.benchmark import Access
from tierbench.api.policy import Policy
from tierbench.kinds.network.manifests import TMP, port, port_name
from tierbench.kinds.network.spec import NetworkSpec
from tierbench.workloads.access import address
from tierbench.workloads.agent import CLIENT_KEYS
from tierbench.workloads.client_job import client_job, flags, series_options
from tierbench.workloads.credentials import secret_items
from tierbench.workloads.names import Owner
from tierbench.workloads.workload import ClientSite, Images, Manifest, RunningServer, Target

CONGESTION_CONTROL: Final = "congestionControl"
# Lets any group open ICMP sockets, which need no capability: the pod's may be the platform's choice. It holds in the
# pod's network alone, and Kubernetes counts it among the safe sysctls.
PING_SYSCTL: Final = {"name": "net.ipv4.ping_group_range", "value": "0 2147483647"}


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
    if targets[0].case.server.external:  # nobody is beside it
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
        images.network,
        arguments(spec, policy, parts, site, targets),
        spec.clients.resources,
        [(secret_items(target.server.site.attached, *CLIENT_KEYS),) for target in targets],
        sysctls=(PING_SYSCTL,) if spec.ping.count else (),
        directories=(TMP,),
    )
