"""NetworkBenchmark: how fast does the network between two classes of node carry data, and how far apart are they?"""

from dataclasses import replace
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import Field, JsonValue

from tierbench.api.benchmark import (
    BENCHMARK_COLUMNS,
    Access,
    Benchmark,
    BenchmarkSpec,
    ClientPlacement,
    Clients,
    Ping,
    PolicySubject,
    PolicySubjectCel,
    Servers,
)
from tierbench.api.model import ClassNames, Kind, Model, Rule, is_address, matching, rules
from tierbench.api.run_policy import FITTING_TRIM, MAXIMUM_CASES, TRIM_BY_CLIENT, Trim

MAXIMUM_CLIENTS: Final = 16


class Protocol(StrEnum):
    """What carries the load."""

    TCP = "TCP"
    UDP = "UDP"


class Direction(StrEnum):
    """Which way the load goes, as the client sees it."""

    UPLOAD = "Upload"
    DOWNLOAD = "Download"
    BOTH = "Both"


class Together(StrEnum):
    """How many clients measure at a time."""

    ALONE = "Alone"
    ALL_AT_ONCE = "AllAtOnce"


TOGETHER: Final = "together"
"""The factor whose levels these are."""


class Udp(Model):
    """How UDP is sent: unlike TCP it does not find the network's rate by itself."""

    kilobits_per_second: int = Field(
        ge=10,
        le=400_000_000,
        description="Payload a second of each direction, all streams together. What the network does not carry of it "
        "is lost, and counted.",
    )


class Tcp(Model):
    """How TCP is sent."""

    congestion_control: tuple[
        Annotated[
            str,
            Field(
                max_length=15,
                json_schema_extra=rules(
                    matching(
                        "^[a-z0-9_]+$",
                        "is not the name of an algorithm: see `sysctl net.ipv4.tcp_allowed_congestion_control`",
                    )
                ),
            ),
        ],
        ...,
    ] = Field(
        min_length=1,
        max_length=8,
        json_schema_extra={"x-kubernetes-list-type": "set"},
        description="Algorithms of congestion control at both ends, as in cubic, reno, bbr (a factor). The kernels of "
        "both nodes must allow them.",
    )


class ExternalServer(Model):
    """An iperf3 server that is there already: it is used, and neither deployed nor observed."""

    address: str = Field(
        min_length=3,
        max_length=280,
        description="Host and port as the clients reach it. Its host answers ping, too, or `ping.count` is 0.",
        json_schema_extra=rules(is_address(5201)),
    )


class NetworkServers(Servers):
    """Where one end is."""

    node_classes: ClassNames = Field(
        default=(),
        json_schema_extra={"default": None},
        description="The node classes that host an iperf3 server. Needed unless there is an external one.",
    )
    external: ExternalServer | None = Field(
        default=None,
        description="An iperf3 server outside the cluster, measured beside these. Its class is `external`.",
    )


class NetworkClients(Clients):
    """Where the other ends are."""

    node_classes: ClassNames = Field(description="Their node classes.")
    nodes_per_class: int = Field(
        default=1, ge=1, le=16, description="How many nodes of each class take part, a client on each."
    )
    together: tuple[Together, ...] = Field(
        default=(Together.ALONE,),
        min_length=1,
        max_length=2,
        json_schema_extra={"x-kubernetes-list-type": "set"},
        description="Alone: each client in turn, a case each. AllAtOnce: all of them at once, in one case (a factor).",
    )

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.node_classes) * self.nodes_per_class

    @property
    def most_at_once(self) -> int:
        """How many of them measure at once, at most."""
        return self.number if Together.ALL_AT_ONCE in self.together else 1

    @property
    def placements(self) -> tuple[ClientPlacement, ...]:
        """All at once are one case, which bears the name of the first class."""
        return tuple(seat for level in self.together for seat in self._placements(level))

    def _placements(self, level: Together) -> tuple[ClientPlacement, ...]:
        levels = ((TOGETHER, level.value),)
        if level is Together.ALL_AT_ONCE:
            return (ClientPlacement(self.node_classes[0], levels=levels),)
        ordinals = range(self.nodes_per_class)
        return tuple(ClientPlacement(name, ordinal, levels) for name in self.node_classes for ordinal in ordinals)


_SOME_SERVER = Rule(
    "has(self.nodeClasses) || has(self.external)",
    "names no server: give nodeClasses, for example [cloud], or external, or both",
)
_ALL_AT_ONCE = "together.exists(t, t == 'AllAtOnce')"
_BOUNDED_CLIENTS = Rule(
    f"!self.{_ALL_AT_ONCE} || size(self.nodeClasses) * self.nodesPerClass <= {MAXIMUM_CLIENTS}",
    f"more than {MAXIMUM_CLIENTS} clients would measure at once: name fewer classes, or lower nodesPerClass",
)
_UDP_RATE = Rule(
    "!self.protocols.exists(p, p == 'UDP') || has(self.udp)",
    "UDP needs a rate to send at: write, for example, udp: {kilobitsPerSecond: 10000}",
)
_TCP_ALONE = Rule(
    "!has(self.tcp) || self.protocols.all(p, p == 'TCP')",
    "tcp.congestionControl is of TCP alone: write protocols: [TCP], and measure UDP in another benchmark",
)
_ONE_AT_A_TIME = Rule(
    f"!has(self.servers.external) || !self.clients.{_ALL_AT_ONCE}",
    "an external server serves one client at a time: take AllAtOnce out of clients.together, or servers.external out",
)
_TIME = "self.durationSeconds + self.ping.count * self.ping.intervalMilliseconds / 1000"
_FITTING_TIME = Rule(
    f"{_TIME} + 10 <= self.timeouts.trialSeconds",
    "a trial takes longer than timeouts.trialSeconds: raise it to 10 more than load and ping take together",
)
_CASES = (
    "size(self.protocols) * size(self.directions) * size(self.streams)"
    " * (has(self.tcp) ? size(self.tcp.congestionControl) : 1)"
    " * ((has(self.servers.nodeClasses) ? size(self.servers.nodeClasses) * self.servers.nodesPerClass : 0)"
    " + (has(self.servers.external) ? 1 : 0))"
    " * ((self.clients.together.exists(t, t == 'Alone') ? size(self.clients.nodeClasses) * self.clients.nodesPerClass"
    f" : 0) + (self.clients.{_ALL_AT_ONCE} ? 1 : 0))"
)
_BOUNDED_MATRIX = Rule(
    f"{_CASES} <= {MAXIMUM_CASES}",
    f"the matrix has more than {MAXIMUM_CASES} cases: take levels out, or make several benchmarks",
    f"'the matrix has %d cases, at most {MAXIMUM_CASES} are allowed: "
    f"take levels out, or make several benchmarks'.format([{_CASES}])",
)
_NOT_REFINED = Rule(
    "!has(self.runPolicy) || !has(self.runPolicy.refine)",
    "runPolicy.refine is of FileTransferBenchmarks and BrokerBenchmarks alone: take it out, and name the levels that "
    "are to be measured",
)
_SET: dict[str, JsonValue] = {"x-kubernetes-list-type": "set"}


class NetworkSpec(BenchmarkSpec):
    """Data of these kinds, between each server class and each client class."""

    servers: NetworkServers = Field(json_schema_extra=rules(_SOME_SERVER), description="Where one end is.")
    clients: NetworkClients = Field(json_schema_extra=rules(_BOUNDED_CLIENTS), description="Where the other ends are.")
    protocols: tuple[Protocol, ...] = Field(
        default=(Protocol.TCP,),
        min_length=1,
        max_length=2,
        json_schema_extra=_SET,
        description="What carries the load (a factor).",
    )
    directions: tuple[Direction, ...] = Field(
        default=(Direction.UPLOAD, Direction.DOWNLOAD),
        min_length=1,
        max_length=3,
        json_schema_extra=_SET,
        description="Upload from client to server, Download, or Both at once (a factor).",
    )
    streams: tuple[Annotated[int, Field(ge=1, le=64)], ...] = Field(
        default=(1,),
        min_length=1,
        max_length=8,
        json_schema_extra=_SET,
        description="Connections that share the load, in each direction (a factor).",
    )
    duration_seconds: int = Field(default=10, ge=1, le=3600, description="How long the load of a trial lasts.")
    tcp: Tcp | None = Field(
        default=None, description="How TCP is sent; without it as the nodes' kernels do by default."
    )
    udp: Udp | None = Field(default=None, description="Needed for UDP.")
    ping: Ping = Field(default=Ping(), description="Echo requests before the load of each trial.")
    trace_interval_milliseconds: int = Field(
        default=100,
        ge=0,
        le=60000,
        description="Of TCP: the time between samples of the sender's connections (congestion window, round trip, "
        "congestion state …), kept as a BenchmarkTrace; 0 for none.",
    )
    trim: Trim = Field(default=Trim(), description="What is left out of the statistics, by throughput.")
    access: Access = Field(default=Access.POD_IP, description="The path from client to server.")

    @property
    def policy_subject(self) -> PolicySubject:
        """The server that is there already."""
        external = self.servers.external
        return replace(super().policy_subject, addresses=() if external is None else (external.address,))

    @property
    def trimmed(self) -> Trim | None:
        """Nothing, unless it was asked for."""
        return self.trim if self.trim.lowest + self.trim.highest else None

    @property
    def parameters(self) -> dict[str, str]:
        """The path, the load, the echo requests before it, and how many clients measure where all do at once."""
        return {
            **super().parameters,
            "access": self.access.value,
            "durationSeconds": str(self.duration_seconds),
            "udpKilobitsPerSecond": "None" if self.udp is None else str(self.udp.kilobits_per_second),
            "pingIntervalMilliseconds": str(self.ping.interval_milliseconds),
            "pingSize": str(self.ping.size),
            "simultaneousClients": str(self.clients.most_at_once),
        }


class NetworkBenchmark(Benchmark):
    """How fast does the network between two classes of node carry data, and how far apart are they?"""

    KIND: ClassVar[Kind] = Kind(
        kind="NetworkBenchmark",
        plural="networkbenchmarks",
        singular="networkbenchmark",
        short_names=("nb",),
        namespaced=True,
        columns=BENCHMARK_COLUMNS,
        description="NetworkBenchmark measures the network between classes of node with iperf3 and ping: "
        "throughput, loss, jitter and round trip.",
    )
    PREFIX: ClassVar[str] = "nb"
    SPEC_RULES: ClassVar[tuple[Rule, ...]] = (
        _UDP_RATE,
        _TCP_ALONE,
        _ONE_AT_A_TIME,
        FITTING_TRIM,
        TRIM_BY_CLIENT,
        _FITTING_TIME,
        _BOUNDED_MATRIX,
        _NOT_REFINED,
    )
    POLICY_SUBJECT: ClassVar[PolicySubjectCel] = PolicySubjectCel(
        node_classes="(has(object.spec.servers.nodeClasses) ? object.spec.servers.nodeClasses : [])"
        " + object.spec.clients.nodeClasses",
        addresses="has(object.spec.servers.external) ? [object.spec.servers.external.address] : []",
    )

    spec: NetworkSpec
