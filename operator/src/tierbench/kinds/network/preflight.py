"""The preflight as workloads: those of a NetworkBenchmark, each way by itself."""

from typing import Final

from tierbench.api.benchmark import Access, Timeouts
from tierbench.api.node_network import NodeNetwork
from tierbench.api.preflight import Ping, Preflight, ServiceSpec
from tierbench.kinds.network.spec import Direction, NetworkClients, NetworkServers, NetworkSpec
from tierbench.kinds.network.workload import NetworkWorkload
from tierbench.kinds.registry import Probe
from tierbench.workloads.names import Owner
from tierbench.workloads.plan import Case
from tierbench.workloads.workload import Images

# Beside load and ping: iperf3 may find the server busy for 30 s, and is given up a minute after its load.
_SLACK_SECONDS: Final = 120


def preflight(owner: Owner, spec: ServiceSpec, access: Access, images: Images) -> tuple[NetworkWorkload, ...]:
    """Upload with echo requests before it, then download; nothing, unless the spec asks for a preflight."""
    asked = spec.preflight
    if asked is None:
        return ()
    echoes = {Direction.UPLOAD: asked.ping, Direction.DOWNLOAD: Ping(count=0)}
    return tuple(
        NetworkWorkload(owner, _network(spec, asked, access, direction, ping), images)
        for direction, ping in echoes.items()
    )


def _network(spec: ServiceSpec, asked: Preflight, access: Access, direction: Direction, ping: Ping) -> NetworkSpec:
    seconds = asked.duration_seconds + ping.count * ping.interval_milliseconds // 1000 + _SLACK_SECONDS
    return NetworkSpec(
        servers=NetworkServers.model_construct(**dict(spec.servers)),
        clients=NetworkClients(node_classes=spec.clients.node_classes, resources=spec.clients.resources),
        directions=(direction,),
        duration_seconds=asked.duration_seconds,
        ping=ping,
        repetitions=1,
        trace_interval_milliseconds=0,
        access=access,
        timeouts=Timeouts(trial_seconds=seconds),
    )


def _is_known(network: NodeNetwork, case: Case) -> bool:
    return (network.upload if case.levels["direction"] == Direction.UPLOAD else network.download) is not None


PROBE: Final = Probe("ping and iperf3", "iperf3", preflight, _is_known)
