"""NetworkBenchmark as a workload and as the preflight of other kinds: iperf3 servers, and Jobs of ping and iperf3."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tierbench.api.benchmark import Access, ServiceSpec
from tierbench.api.canonical import fingerprint
from tierbench.api.measurements import NodeNetwork
from tierbench.api.policy import Policy
from tierbench.api.result import ServiceFacts
from tierbench.api.run_policy import Ping, Preflight, Timeouts
from tierbench.api.trial_plan import Direction, NetworkPlan, NetworkTarget, PlannedPing, Protocol
from tierbench.kinds.network.spec import (
    CLIENT_MODE,
    ClientMode,
    NetworkClients,
    NetworkPing,
    NetworkServers,
    NetworkSpec,
)
from tierbench.kinds.registry import Probe
from tierbench.workloads.manifests import (
    CLIENT_KEYS,
    agent_container,
    agent_manifests,
    client_job,
    meeting_fields,
    series_fields,
    server_manifests,
    target_fields,
)
from tierbench.workloads.networking import address
from tierbench.workloads.plan import EXTERNAL, Case, Factor, ServerPlacement, link_factors, link_of, server_placements
from tierbench.workloads.pods import (
    PING_SYSCTL,
    POD_IP,
    POD_IP_VARIABLE,
    RESTRICTED,
    SERVER_READY_PERIOD_SECONDS,
    ScratchDirectory,
    measured_resources,
    secret_items,
)
from tierbench.workloads.workload import (
    ClientInstance,
    ClientPart,
    Credentials,
    Images,
    Manifest,
    NodeSize,
    Owner,
    Role,
    RunningServer,
    ServerInstance,
    Target,
    TrialLoad,
    Workload,
    secret,
)

PROCESS: Final = "iperf3"
IMAGE: Final = "network"
_FIRST_PORT: Final = 5201
# iperf3 stores here what it sends.
TMP: Final = ScratchDirectory("tmp", "/tmp", "64Mi")  # noqa: S108 (the container's own)
# Through these sockets the agent lets an iperf3 listen while its client is present.
GATES: Final = ScratchDirectory("gates", "/gates", "1Mi")
_OBSERVED: Final = ("--directory=", "--process", PROCESS, "--gates", GATES.path)
CONGESTION_CONTROL: Final = "congestionControl"
# In addition to load and ping: the server can be busy for 30 s, and iperf3 is stopped a minute after its load.
_SLACK_SECONDS: Final = 120


@dataclass(frozen=True)
class NetworkWorkload:
    """iperf3 servers on the servers' nodes or outside the cluster, and iperf3 and ping on the clients' nodes."""

    owner: Owner
    spec: NetworkSpec
    images: Images
    policy: Policy = field(default_factory=Policy)

    def server_placements(self) -> tuple[ServerPlacement, ...]:
        """Returns one server per node, and the external server."""
        external = () if self.spec.servers.external is None else (ServerPlacement(EXTERNAL, 0, provider=EXTERNAL),)
        return (*server_placements(self.spec), *external)

    def image_problem(self, placement: ServerPlacement) -> str:
        """Returns an empty string, because there is one image of iperf3."""
        return ""

    def factors(self, placement: ServerPlacement) -> tuple[Factor, ...]:
        """Returns protocol, direction, streams, and congestion control if the spec names algorithms."""
        tcp = self.spec.tcp
        return (
            Factor("protocol", tuple(level.value for level in self.spec.protocols)),
            Factor("direction", tuple(level.value for level in self.spec.directions)),
            Factor("streams", tuple(str(number) for number in self.spec.streams)),
            *(() if tcp is None else (Factor(CONGESTION_CONTROL, tcp.congestion_control),)),
            *link_factors(self.spec),
        )

    def parts(self, case: Case) -> tuple[ClientPart, ...]:
        """Returns one pod, or one per node if all clients measure at the same time."""
        clients = self.spec.clients
        if case.levels.get(CLIENT_MODE) != ClientMode.SIMULTANEOUS:
            return (ClientPart(0, case.client_class),)
        classes = [name for name in clients.node_class_names for _ in range(clients.nodes_per_class)]
        return tuple(ClientPart(index, name, Role.SHARE) for index, name in enumerate(classes))

    def service(self, placement: ServerPlacement, size: NodeSize) -> ServiceFacts | None:
        """Returns the image of iperf3 and ping; for an external server, a fingerprint of its address."""
        external = self.spec.servers.external
        if placement.external and external is not None:
            return ServiceFacts(name=PROCESS, settings={"address": fingerprint(external.address)})
        return ServiceFacts(name=PROCESS, image=self.images.programs[IMAGE])

    def credentials(self, instance: ServerInstance) -> Credentials:
        """Returns a Secret with the agent's token."""
        return Credentials(secret(self.owner, instance), certificate=False)

    def server(self, instance: ServerInstance) -> tuple[Manifest, ...]:
        """Returns iperf3 and its agent. For an external server it is the agent alone, because every server needs a
        pod."""
        if instance.placement.external:
            return agent_manifests(self.owner, self.images, instance, self.spec.access, self.spec.clients.resources)
        return iperf3_manifests(self.owner, self.spec, self.images, instance)

    def client(self, instance: ClientInstance, targets: Sequence[Target]) -> Manifest:
        """Returns the Job of one part, which runs ping and iperf3."""
        parts = len(self.parts(targets[0].case))
        return client_job(
            self.owner,
            self.images,
            instance,
            targets,
            self.images.programs[IMAGE],
            trial_plan(self.spec, self.policy, parts, instance, targets),
            self.spec.access,
            self.spec.clients.resources,
            [(secret_items(target.server.instance.attached, *CLIENT_KEYS),) for target in targets],
            sysctls=(PING_SYSCTL,) if self.spec.ping.count else (),
            directories=(TMP,),
            link=link_of(self.spec, targets[0].case),
        )

    def deadline_seconds(self, trials: int) -> int:
        """Returns the number of trials, including warm-up trials, multiplied by the time limit of one."""
        return (trials + self.spec.warmup_trials) * self.spec.timeouts.trial_seconds

    def load(self, case: Case) -> TrialLoad:
        """Returns the seconds of load and ping, which are the same for every case."""
        spec = self.spec
        return TrialLoad(seconds=spec.duration_seconds + spec.ping.count * spec.ping.interval_milliseconds / 1000)

    def preflight(self) -> tuple[Workload, ...]:
        """Returns nothing, because the cases measure the network."""
        return ()


def port_name(part: int) -> str:
    """Returns the name of the port and of the container that serve one part of the client."""
    return f"{PROCESS}-{part + 1}"


def port(part: int) -> int:
    """Returns the number of the port that serves one part of the client."""
    return _FIRST_PORT + part


def iperf3_manifests(owner: Owner, spec: NetworkSpec, images: Images, instance: ServerInstance) -> tuple[Manifest, ...]:
    """Returns the Services and, last, the pod."""
    ports = {port_name(part): port(part) for part in range(spec.clients.most_at_once)}
    return server_manifests(
        owner,
        images,
        instance,
        spec.access,
        ports,
        agent_container(images, ports.values(), _OBSERVED, spec.servers.resources, [GATES.mount]),
        containers=[_iperf3(spec, images, part) for part in range(len(ports))],
        volumes=[GATES.volume, TMP.volume],
        share_processes=True,
        protocols=tuple(Protocol),
    )


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
        "resources": measured_resources(spec.servers.resources),
        "securityContext": RESTRICTED,
        "volumeMounts": [TMP.mount, GATES.mount],
    }


def trial_plan(
    spec: NetworkSpec, policy: Policy, parts: int, instance: ClientInstance, targets: Sequence[Target]
) -> NetworkPlan:
    """Returns the plan of one of `parts` parts."""
    levels = targets[0].case.levels
    return NetworkPlan(
        **series_fields(instance, spec.warmup_trials, link_of(spec, targets[0].case)),
        **meeting_fields(instance, parts),
        kind="Network",
        targets=tuple(_target(spec, instance.part.index, target) for target in targets),
        refused_networks=policy.refused_networks if targets[0].case.server.external else (),
        protocol=Protocol(levels["protocol"]),
        direction=Direction(levels["direction"]),
        streams=int(levels["streams"]),
        congestion_control=levels.get(CONGESTION_CONTROL, ""),
        duration_seconds=spec.duration_seconds,
        kilobits_per_second=0 if spec.udp is None else spec.udp.kilobits_per_second,
        ping=PlannedPing(
            count=spec.ping.count,
            interval_milliseconds=spec.ping.interval_milliseconds,
            size_bytes=spec.ping.size,
            under_load=spec.ping.under_load,
        ),
        trace_interval_milliseconds=spec.trace_interval_milliseconds,
    )


def _target(spec: NetworkSpec, part: int, target: Target) -> NetworkTarget:
    """Returns the iperf3 server of a part, and the host of ping if it differs. An external server has no agent."""
    fields, external = target_fields(spec.access, target), spec.servers.external
    if external is not None and target.case.server.external:
        return NetworkTarget(**{**fields, "agent": None}, server=external.address)
    server = address(spec.access, target.server, port_name(part), port(part))
    return NetworkTarget(**fields, server=server, ping_host=_ping_host(spec.access, target.server))


def _ping_host(access: Access, server: RunningServer) -> str:
    """Returns the host that answers echo requests: the pod, or the node if its address is used. A Service does not
    answer."""
    return server.host_ip if access in (Access.NODE_PORT, Access.HOST_NETWORK) else server.pod_ip


def preflight(owner: Owner, spec: ServiceSpec, access: Access, images: Images) -> tuple[NetworkWorkload, ...]:
    """Returns an upload with echo requests before it, and a download. Returns nothing if the spec has no preflight."""
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
        clients=NetworkClients(node_class_names=spec.clients.node_class_names, resources=spec.clients.resources),
        directions=(direction,),
        duration_seconds=asked.duration_seconds,
        ping=NetworkPing(**dict(ping)),
        repetitions=1,
        trace_interval_milliseconds=0,
        access=access,
        timeouts=Timeouts(trial_seconds=seconds),
    )


def _is_known(network: NodeNetwork, case: Case) -> bool:
    return (network.upload if case.levels["direction"] == Direction.UPLOAD else network.download) is not None


PROBE: Final = Probe("ping and iperf3", "iperf3", preflight, _is_known)
