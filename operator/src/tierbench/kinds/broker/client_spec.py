"""The clients of a BrokerBenchmark: where they run, as what program, and what they send."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from tierbench.api.benchmark import Clients
from tierbench.api.model import ClassName, Model, Rule, matching, rules
from tierbench.api.quantity import Size, distinct, is_size, parse_size


class EngineType(StrEnum):
    """The program that makes the load."""

    NATIVE = "Native"
    PAHO = "Paho"


class Connections(StrEnum):
    """How long the connections of publishers and subscribers last."""

    EACH_TRIAL = "EachTrial"
    KEPT = "Kept"


class NoSubscribers(Model):
    """There is no subscriber: the benchmark measures publishing alone."""


class Subscribers(Model):
    """Where subscribers run, if not in the publishers' pods: exactly one of the two."""

    node_class: ClassName | None = Field(
        default=None, description="A node class. Its subscribers send each message back."
    )
    none: NoSubscribers | None = Field(default=None, description="Nowhere: publishing alone is measured.")

    def __str__(self) -> str:
        """Where, in a word."""
        return self.node_class or "None"


_ONE_PLACE = Rule(
    "has(self.nodeClass) != has(self.none)",
    "give exactly one of nodeClass and none, for example {nodeClass: user} or {none: {}}",
)


class BrokerClients(Clients):
    """Where publishers and subscribers run."""

    pods: int = Field(
        default=1,
        ge=1,
        le=16,
        description="Over how many pods the pairs are spread, on as many nodes of the class as there are.",
    )
    subscribers: Subscribers | None = Field(
        default=None,
        json_schema_extra=rules(_ONE_PLACE),
        description="A node class for the subscribers; without it each pair is in one pod. Apart, a round trip is "
        "there and back: each message is sent back by its subscriber. With none: {} there are no subscribers.",
    )
    connections: Connections = Field(
        default=Connections.EACH_TRIAL,
        description="EachTrial: made anew for each trial. Kept: made for the first trial of a case, and kept for all "
        "others of the same client; what connecting takes is then known of that one alone.",
    )
    engine: EngineType = Field(
        default=EngineType.NATIVE,
        description="Native (one static program), or Paho (Python's client, for what a Python device sees).",
    )

    @property
    def alone(self) -> bool:
        """Whether there is no subscriber."""
        return self.subscribers is not None and self.subscribers.none is not None


_CONFIG_MAP_BYTES: Final = 2**20  # the API server takes no larger one


class ConfigMapReference(Model):
    """A ConfigMap in the benchmark's namespace."""

    name: str = Field(
        min_length=1,
        max_length=253,
        description="Its name. Each key is a message, of at least 9 bytes; they are sent in turn, sorted by key. "
        "Make it immutable, so that every trial sends the same.",
        json_schema_extra=rules(
            matching(
                r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "is not the name of a ConfigMap: see `kubectl get configmaps`"
            )
        ),
    )


class Messages(Model):
    """Messages of a user's own. The first 8 bytes of each give way to its number, the others are sent as they are."""

    name: str = Field(
        min_length=1,
        max_length=16,
        description="What the content is called in results and metrics.",
        json_schema_extra=rules(
            matching(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "must be lower-case letters, digits and hyphens")
        ),
    )
    config_map_ref: ConfigMapReference = Field(description="Where they are.")


class Payload(Model):
    """What messages carry."""

    sizes: Annotated[tuple[Size, ...], AfterValidator(distinct)] = Field(
        default=("1Ki",),
        min_length=1,
        max_length=16,
        description="Bytes of a message before compression and encryption (a factor): 2 to 16Mi. Without it 1Ki.",
        json_schema_extra={"default": None, "x-kubernetes-list-type": "set"}
        | rules(
            Rule(
                f"self.all(a, !(a in [dyn(1), dyn('1')]) && {is_size('a', '16Mi')})",
                "each size must be from 2 to 16Mi: the first bytes number the message",
            )
        ),
    )
    contents: tuple[
        Annotated[
            str,
            Field(
                max_length=16,
                json_schema_extra=rules(
                    matching(
                        "^(Random|Zeros|SensorJSON|Ratio[1-9]0)$",
                        "must be Random, Zeros, SensorJSON or Ratio10, Ratio20, … Ratio90",
                    )
                ),
            ),
        ],
        ...,
    ] = Field(
        default=("Random",),
        min_length=1,
        max_length=12,
        json_schema_extra={"x-kubernetes-list-type": "set", "default": None},
        description="Random, Zeros, SensorJSON (records of sensors), or RatioNN: gzip and zstd compress it to NN % "
        "(a factor). Without it Random.",
    )
    messages: tuple[Messages, ...] = Field(
        default=(),
        max_length=12,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        description="Messages of your own, instead of sizes and contents: the levels of the content (a factor).",
    )

    @property
    def largest_bytes(self) -> int:
        """Of a message, or more: how large a user's own are is not known."""
        return _CONFIG_MAP_BYTES if self.messages else max(map(parse_size, self.sizes))


PAYLOAD_RULES: Final = (
    Rule(
        "size(self.messages) == 0 || !(has(self.sizes) || has(self.contents))",
        "messages have sizes and contents of their own: take sizes and contents out, or make another benchmark of them",
    ),
)
PAYLOAD_CASES: Final = (
    "(size(self.payload.messages) > 0 ? size(self.payload.messages)"
    " : (has(self.payload.sizes) ? size(self.payload.sizes) : 1)"
    " * (has(self.payload.contents) ? size(self.payload.contents) : 1))"
)
