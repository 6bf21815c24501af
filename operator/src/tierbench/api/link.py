"""An imitated link between a client and the network: rate, delay, jitter, losses and queue of each direction."""

from typing import Annotated, Final

from pydantic import Field

from tierbench.api.model import Model, Rule, rules, text

LINK: Final = "link"
"""The factor whose levels are names of links, and the container of a client's pod that imitates one."""
USUAL_QUEUE_MILLISECONDS: Final = 50
_MOST_DELAY: Final = 500_000


class LinkPath(Model):
    """One direction of a link."""

    kilobits_per_second: int | None = Field(
        default=None,
        ge=100,
        le=1_000_000,
        description="Rate of Ethernet frames. Without it, and without a trace, only the network limits the rate.",
    )
    delay_microseconds: int = Field(default=0, ge=0, le=_MOST_DELAY, description="How long each packet is on its way.")
    jitter_microseconds: int = Field(
        default=0,
        ge=0,
        le=_MOST_DELAY,
        description="The delay varies by at most this, up and down. Packets stay in order.",
    )
    loss_parts_per_million: int = Field(
        default=0, ge=0, le=500_000, description="Share of the packets that are lost at random."
    )
    queue_milliseconds: int = Field(
        default=USUAL_QUEUE_MILLISECONDS,
        ge=1,
        le=10_000,
        description="How long the queue before the link is at its rate, or at the mean rate of the trace. Packets that "
        "find it full are dropped.",
    )


class TraceReference(Model):
    """A ConfigMap in the benchmark's namespace."""

    name: str = text(
        253,
        r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        "is not the name of a ConfigMap: see `kubectl get configmaps`",
        "Name of the ConfigMap. Its keys `up` and `down` are the traces of the directions. Make it immutable, so that "
        "every trial has the same link.",
        least=1,
    )


class LinkTrace(Model):
    """A recorded rate of each direction, which repeats. A trace has the format of mahimahi (in each line the
    millisecond of an opportunity to send 1500 bytes), or lines of "seconds,Mbit/s"."""

    config_map_ref: TraceReference = Field(description="The source of the traces.")


_STEADY: Final = Rule(
    # results leave out what has its default
    "!has(self.jitterMicroseconds)"
    " || (has(self.delayMicroseconds) ? self.delayMicroseconds : 0) >= self.jitterMicroseconds",
    "jitterMicroseconds is more than delayMicroseconds: raise the delay, or lower the jitter",
)
_PATH: Final = rules(_STEADY)


class Link(Model):
    """A link between each client and the network. With neither up, down nor trace, it is the network as it is."""

    name: str = text(
        16,
        r"^[a-z]([-a-z0-9]*[a-z0-9])?$",
        "must be lower-case letters, digits and hyphens, and begin with a letter",
        "Name of the link in results and metrics.",
        least=1,
    )
    up: LinkPath | None = Field(default=None, json_schema_extra=_PATH, description="From the client to the network.")
    down: LinkPath | None = Field(default=None, json_schema_extra=_PATH, description="From the network to the client.")
    trace: LinkTrace | None = Field(default=None, description="Recorded rates, in place of kilobitsPerSecond.")

    def __str__(self) -> str:
        """Returns what was set of it, as JSON."""
        return self.model_dump_json(by_alias=True, exclude_defaults=True)

    @property
    def is_direct(self) -> bool:
        """Whether it is the network as it is."""
        return self.up is None and self.down is None and self.trace is None

    @property
    def paths(self) -> tuple[LinkPath, LinkPath]:
        """Both directions, up and down."""
        return self.up or LinkPath(), self.down or LinkPath()


_ONE_RATE: Final = Rule(
    "self.all(l, !has(l.trace) || ((!has(l.up) || !has(l.up.kilobitsPerSecond))"
    " && (!has(l.down) || !has(l.down.kilobitsPerSecond))))",
    "a link has a trace or kilobitsPerSecond: remove one of them, or give the link without the trace another name",
)

Links = Annotated[
    tuple[Link, ...],
    Field(
        max_length=8,
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            **rules(_ONE_RATE),
        },
        description="Links between each client and the network, which each client's pod imitates (a factor). They need "
        "the chart value policy.links.",
    ),
]

LINKS_NEED_PODS: Final = Rule(
    "size(self.links) == 0 || self.access != 'HostNetwork'",
    "links are in the network of pods, and access: HostNetwork measures in that of nodes: write ClusterIP, PodIP or "
    "NodePort, or remove links",
)
LINK_CASES: Final = "(size(self.links) == 0 ? 1 : size(self.links))"
"""The CEL expression for the number of levels of the link."""
TRACE_CONFIG_MAPS: Final = "object.spec.links.filter(l, has(l.trace)).map(l, l.trace.configMapRef.name)"
"""The CEL expression for the ConfigMaps with traces."""
