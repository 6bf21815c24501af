"""The spec of a NetworkBenchmark: throughput and latency of the network between node classes."""

from dataclasses import replace
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import Field

from tierbench.api.benchmark import (
    ACCESS,
    BENCHMARK_COLUMNS,
    Access,
    Benchmark,
    BenchmarkSpec,
    ClientPlacement,
    Clients,
    PolicySubject,
    PolicySubjectCel,
    Servers,
)
from tierbench.api.link import LINK_CASES, LINKS_NEED_PODS
from tierbench.api.model import ClassNames, Kind, Model, Rule, factor, is_address, rules, text
from tierbench.api.run_policy import Ping, Trim, matrix_rule
from tierbench.api.trial_plan import Direction, Protocol

MAXIMUM_CLIENTS: Final = 16


class ClientMode(StrEnum):
    """Whether clients measure alone or at the same time."""

    ALONE = "Alone"
    SIMULTANEOUS = "Simultaneous"


CLIENT_MODE: Final = "clientMode"
"""The factor whose levels are those of ClientMode."""


class Udp(Model):
    """The sending of UDP. Unlike TCP, UDP does not adapt to the rate of the network."""

    kilobits_per_second: int = Field(
        ge=10,
        le=400_000_000,
        description="Payload per second in each direction, all streams together. Packets that the network does not "
        "carry are lost, and counted.",
    )


class Tcp(Model):
    """Settings of TCP."""

    congestion_control: tuple[
        Annotated[
            str,
            text(
                15,
                "^[a-z0-9_]+$",
                "is not the name of an algorithm: see `sysctl net.ipv4.tcp_allowed_congestion_control`",
            ),
        ],
        ...,
    ] = factor(
        ...,
        "Congestion control algorithms at both ends, as in cubic, reno, bbr (a factor). The kernels of "
        "both nodes must allow them.",
        most=8,
    )


class ExternalServer(Model):
    """An existing iperf3 server. tierbench uses it, and neither deploys nor observes it."""

    address: str = Field(
        min_length=3,
        max_length=280,
        description="Host and port as the clients reach the server. The host must answer ping unless `ping.count` is "
        "0.",
        json_schema_extra=rules(is_address(5201)),
    )


class NetworkPing(Ping):
    """Echo requests before the load of each trial, while the network is idle, and during it."""

    under_load: bool = Field(
        default=False,
        description="Sends as many echo requests during the load, too, from its fourth second on. The load must last 4 "
        "seconds and count × (intervalMilliseconds + 10 milliseconds).",
    )


class NetworkServers(Servers):
    """The iperf3 servers."""

    node_class_names: ClassNames = Field(
        default=(),
        json_schema_extra={"default": None},
        description="Names of the node classes that host an iperf3 server. Required unless `external` is set.",
    )
    external: ExternalServer | None = Field(
        default=None,
        description="An iperf3 server outside the cluster, measured in addition to the others. Its class is "
        "`external`.",
    )


class NetworkClients(Clients):
    """The clients of the iperf3 servers."""

    node_class_names: ClassNames = Field(description="Names of the node classes of the clients.")
    nodes_per_class: int = Field(default=1, ge=1, le=16, description="Number of nodes per class with a client.")
    modes: tuple[ClientMode, ...] = factor(
        (ClientMode.ALONE,),
        "Alone: each client measures in turn, in a case of its own. Simultaneous: all clients measure at the "
        "same time, in one case (a factor).",
        most=2,
    )

    @property
    def number(self) -> int:
        """The number of clients."""
        return len(self.node_class_names) * self.nodes_per_class

    @property
    def most_at_once(self) -> int:
        """The maximum number of clients that measure at the same time."""
        return self.number if ClientMode.SIMULTANEOUS in self.modes else 1

    @property
    def placements(self) -> tuple[ClientPlacement, ...]:
        """The places of clients. A case of all clients has the place of the first one."""
        return tuple(seat for level in self.modes for seat in self._placements(level))

    def _placements(self, level: ClientMode) -> tuple[ClientPlacement, ...]:
        levels = ((CLIENT_MODE, level.value),)
        if level is ClientMode.SIMULTANEOUS:
            return (ClientPlacement(self.node_class_names[0], levels=levels),)
        ordinals = range(self.nodes_per_class)
        return tuple(ClientPlacement(name, ordinal, levels) for name in self.node_class_names for ordinal in ordinals)


_SOME_SERVER = Rule(
    "has(self.nodeClassNames) || has(self.external)",
    "names no server: set nodeClassNames, for example [cloud], or external, or both",
)
_SIMULTANEOUS = "modes.exists(t, t == 'Simultaneous')"
_BOUNDED_CLIENTS = Rule(
    f"!self.{_SIMULTANEOUS} || size(self.nodeClassNames) * self.nodesPerClass <= {MAXIMUM_CLIENTS}",
    f"more than {MAXIMUM_CLIENTS} clients would measure at the same time: name fewer classes, or lower nodesPerClass",
)
_UDP_RATE = Rule(
    "!self.protocols.exists(p, p == 'UDP') || has(self.udp)",
    "UDP needs a rate: write, for example, udp: {kilobitsPerSecond: 10000}",
)
_TCP_ALONE = Rule(
    "!has(self.tcp) || self.protocols.all(p, p == 'TCP')",
    "tcp.congestionControl is only for TCP: write protocols: [TCP], and measure UDP in another benchmark",
)
_ONE_AT_A_TIME = Rule(
    f"!has(self.servers.external) || !self.clients.{_SIMULTANEOUS}",
    "an external server serves one client at a time: remove Simultaneous from clients.modes, or remove "
    "servers.external",
)
_FITTING_TRIM = Rule(
    "self.trim.lowest + self.trim.highest < self.repetitions",
    "trim leaves no trial: raise repetitions above the sum of trim.lowest and trim.highest",
)
_TRIM_BY_CLIENT = Rule(
    "self.trim.scope != 'Client' || self.clients.modes.all(t, t == 'Simultaneous')",
    "trim.scope: Client needs clients that measure at the same time: write clients.modes: [Simultaneous], or remove "
    "trim.scope",
)
_TIME = "self.durationSeconds + self.ping.count * self.ping.intervalMilliseconds / 1000"
_FITTING_TIME = Rule(
    f"{_TIME} + (self.ping.underLoad ? 20 : 10) <= self.timeouts.trialSeconds",
    "a trial takes longer than timeouts.trialSeconds: raise it to the time of load and ping plus 10 seconds, or 20 "
    "seconds with ping.underLoad",
)
_SPARING = Rule(
    "!self.underLoad || (self.count > 0 && self.intervalMilliseconds >= 10)",
    "underLoad needs a count above 0, and an intervalMilliseconds of at least 10: with less, ping uses a whole CPU and "
    "disturbs the load",
)
_SETTLED = Rule(
    "!self.ping.underLoad"
    " || 4000 + self.ping.count * (self.ping.intervalMilliseconds + 10) <= 1000 * self.durationSeconds",
    "the load is too short for ping.underLoad: raise durationSeconds to at least 4 seconds plus ping.count × "
    "(ping.intervalMilliseconds + 10 milliseconds)",
)
_CASES = (
    f"{LINK_CASES} * size(self.protocols) * size(self.directions) * size(self.streams)"
    " * (has(self.tcp) ? size(self.tcp.congestionControl) : 1)"
    " * ((has(self.servers.nodeClassNames) ? size(self.servers.nodeClassNames) * self.servers.nodesPerClass : 0)"
    " + (has(self.servers.external) ? 1 : 0))"
    " * ((self.clients.modes.exists(t, t == 'Alone') ? size(self.clients.nodeClassNames) * self.clients.nodesPerClass"
    f" : 0) + (self.clients.{_SIMULTANEOUS} ? 1 : 0))"
)
_NOT_REFINED = Rule(
    "!has(self.runPolicy) || !has(self.runPolicy.refine)",
    "runPolicy.refine is not available for a NetworkBenchmark: remove it, and list all levels that you want to measure",
)


class NetworkSpec(BenchmarkSpec):
    """The measurement between each server class and each client class."""

    servers: NetworkServers = Field(json_schema_extra=rules(_SOME_SERVER), description="The iperf3 servers.")
    clients: NetworkClients = Field(
        json_schema_extra=rules(_BOUNDED_CLIENTS), description="The clients of the iperf3 servers."
    )
    protocols: tuple[Protocol, ...] = factor((Protocol.TCP,), "Protocol of the load (a factor).", most=2)
    directions: tuple[Direction, ...] = factor(
        (Direction.UPLOAD, Direction.DOWNLOAD),
        "Upload from client to server, Download, or Bidirectional: both at the same time (a factor).",
        most=3,
    )
    streams: tuple[Annotated[int, Field(ge=1, le=64)], ...] = factor(
        (1,), "Connections that share the load, in each direction (a factor).", most=8
    )
    duration_seconds: int = Field(default=10, ge=1, le=3600, description="Duration of the load of a trial.")
    tcp: Tcp | None = Field(default=None, description="Settings of TCP. The defaults are those of the nodes' kernels.")
    udp: Udp | None = Field(default=None, description="Settings of UDP. Required for UDP.")
    ping: NetworkPing = Field(
        default=NetworkPing(),
        json_schema_extra=rules(_SPARING),
        description="Echo requests before the load of each trial, and during it.",
    )
    trace_interval_milliseconds: int = Field(
        default=100,
        ge=0,
        le=60000,
        description="For TCP: time between samples of the sender's connections (congestion window, round trip, "
        "congestion state and others). The samples are in the BenchmarkRecord. 0 for none.",
    )
    trim: Trim = Field(default=Trim(), description="Trials to leave out of the statistics, by throughput.")
    access: Access = Field(default=Access.POD_IP, description=ACCESS % "client to server")

    @property
    def policy_subject(self) -> PolicySubject:
        """What an administrator can refuse in this spec, including the address of the external server."""
        external = self.servers.external
        return replace(super().policy_subject, addresses=() if external is None else (external.address,))

    @property
    def active_trim(self) -> Trim | None:
        """The trials to leave out of the statistics, or None."""
        return self.trim if self.trim.lowest + self.trim.highest else None

    @property
    def parameters(self) -> dict[str, str]:
        """The settings of path, load and ping, and how many clients measure at the same time."""
        return {
            **super().parameters,
            "access": self.access.value,
            "durationSeconds": str(self.duration_seconds),
            "udpKilobitsPerSecond": "None" if self.udp is None else str(self.udp.kilobits_per_second),
            "pingIntervalMilliseconds": str(self.ping.interval_milliseconds),
            "pingSize": str(self.ping.size),
            **({"pingUnderLoad": "True"} if self.ping.under_load else {}),
            "simultaneousClients": str(self.clients.most_at_once),
        }


class NetworkBenchmark(Benchmark):
    """Measures the network between node classes."""

    KIND: ClassVar[Kind] = Kind(
        kind="NetworkBenchmark",
        short_names=("tbn",),
        categories=("benchmarks",),
        columns=BENCHMARK_COLUMNS,
        description="NetworkBenchmark measures the network between node classes with iperf3 and ping: throughput, "
        "loss, jitter and round trip.",
    )
    PREFIX: ClassVar[str] = "nb"
    SPEC_RULES: ClassVar[tuple[Rule, ...]] = (
        _UDP_RATE,
        _TCP_ALONE,
        _ONE_AT_A_TIME,
        _FITTING_TRIM,
        _TRIM_BY_CLIENT,
        _FITTING_TIME,
        _SETTLED,
        LINKS_NEED_PODS,
        matrix_rule(_CASES),
        _NOT_REFINED,
    )
    POLICY_SUBJECT: ClassVar[PolicySubjectCel] = PolicySubjectCel(
        node_class_names="(has(object.spec.servers.nodeClassNames) ? object.spec.servers.nodeClassNames : [])"
        " + object.spec.clients.nodeClassNames",
        addresses="has(object.spec.servers.external) ? [object.spec.servers.external.address] : []",
    )

    spec: NetworkSpec
