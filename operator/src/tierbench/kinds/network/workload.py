"""NetworkBenchmark as a workload, and as the preflight of other kinds."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tierbench.api.benchmark import Access, Ping, Preflight, ServiceSpec
from tierbench.api.measurements import NodeNetwork
from tierbench.api.policy import Policy
from tierbench.api.result import ServiceFacts
from tierbench.api.run_policy import Timeouts
from tierbench.kinds.network.manifests import CONGESTION_CONTROL, IMAGE, PROCESS, iperf3_manifests, transmission_job
from tierbench.kinds.network.spec import TOGETHER, Direction, NetworkClients, NetworkServers, NetworkSpec, Together
from tierbench.kinds.registry import Probe
from tierbench.workloads.agent import agent_manifests
from tierbench.workloads.names import Owner
from tierbench.workloads.plan import EXTERNAL, Case, Factor, Slot, slots
from tierbench.workloads.workload import (
    ClientSite,
    Credentials,
    Images,
    Manifest,
    NodeSize,
    Part,
    Role,
    ServerSite,
    Target,
    Workload,
    secret,
)

# Beside load and ping: iperf3 may find the server busy for 30 s, and is given up a minute after its load.
_SLACK_SECONDS: Final = 120


@dataclass(frozen=True)
class NetworkWorkload:
    """iperf3 servers on the servers' nodes or outside, iperf3 and ping on the clients'."""

    owner: Owner
    spec: NetworkSpec
    images: Images
    policy: Policy = field(default_factory=Policy)

    def slots(self) -> tuple[Slot, ...]:
        """One server pod a node, and the external server."""
        external = () if self.spec.servers.external is None else (Slot(EXTERNAL, 0, provider=EXTERNAL),)
        return (*slots(self.spec), *external)

    def unlisted_image(self, slot: Slot) -> str:
        """There is one image of iperf3."""
        return ""

    def factors(self, slot: Slot) -> tuple[Factor, ...]:
        """Protocol, direction, streams; congestion control where it is asked for."""
        tcp = self.spec.tcp
        return (
            Factor("protocol", tuple(level.value for level in self.spec.protocols)),
            Factor("direction", tuple(level.value for level in self.spec.directions)),
            Factor("streams", tuple(str(number) for number in self.spec.streams)),
            *(() if tcp is None else (Factor(CONGESTION_CONTROL, tcp.congestion_control),)),
        )

    def parts(self, case: Case) -> tuple[Part, ...]:
        """One pod, or one on each node that measures at once."""
        clients = self.spec.clients
        if case.levels.get(TOGETHER) != Together.ALL_AT_ONCE:
            return (Part(0, case.client_class),)
        classes = [name for name in clients.node_classes for _ in range(clients.nodes_per_class)]
        return tuple(Part(index, name, Role.SHARE) for index, name in enumerate(classes))

    def service(self, slot: Slot, size: NodeSize) -> ServiceFacts | None:
        """Which image iperf3 and ping are from; nothing is known of an external server."""
        return ServiceFacts(name=PROCESS, image="" if slot.external else self.images.programs[IMAGE])

    def credentials(self, site: ServerSite) -> Credentials:
        """The agent's token."""
        return Credentials(secret(self.owner, site), certificate=False)

    def server(self, site: ServerSite) -> tuple[Manifest, ...]:
        """iperf3, and the agent beside it; where it is there already an agent alone, for the life cycle knows a server
        by a pod."""
        if site.slot.external:
            return agent_manifests(self.owner, self.images, site, self.spec.clients.resources)
        return iperf3_manifests(self.owner, self.spec, self.images, site)

    def client(self, site: ClientSite, targets: Sequence[Target]) -> Manifest:
        """The Job that runs ping and iperf3."""
        parts = len(self.parts(targets[0].case))
        return transmission_job(self.owner, self.spec, self.images, self.policy, parts, site, targets)

    def deadline_seconds(self, trials: int) -> int:
        """Trials, warm-up ones included, times the time that one may take."""
        return (trials + self.spec.warmup) * self.spec.timeouts.trial_seconds

    def weight(self, case: Case) -> float:
        """Seconds of load and ping: the same in every case."""
        spec = self.spec
        trial = spec.duration_seconds + spec.ping.count * spec.ping.interval_milliseconds / 1000
        return (spec.repetitions + spec.warmup) * trial

    def preflight(self) -> tuple[Workload, ...]:
        """Nothing: the network is what the cases measure."""
        return ()


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
