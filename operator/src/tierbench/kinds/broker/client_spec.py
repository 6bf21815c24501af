"""The clients of a BrokerBenchmark: where they run, their engine, and what they send."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from tierbench.api.benchmark import Clients
from tierbench.api.model import SET, ClassName, Model, Rule, rules, text
from tierbench.api.quantity import Size, distinct, is_size, parse_size
from tierbench.api.trial_plan import Connections


class EngineType(StrEnum):
    """The program that makes the load."""

    NATIVE = "Native"
    PAHO = "Paho"
    SINETSTREAM = "SINETStream"


class SubscribersType(StrEnum):
    """The place of the subscribers."""

    WITH_PUBLISHERS = "WithPublishers"
    SEPARATE = "Separate"
    NONE = "None"


class Subscribers(Model):
    """The subscribers of the publishers."""

    type: SubscribersType = Field(
        description="WithPublishers: each pair is in one pod. Separate: subscribers are on another node class, and "
        "send each message back, so a round trip is there and back. None: only publishing is measured."
    )
    node_class_name: ClassName | None = Field(
        default=None, description="With Separate: name of the node class of the subscribers."
    )

    def __str__(self) -> str:
        """Returns the name of the node class, or the type."""
        return self.node_class_name or self.type.value


_SEPARATE = Rule(
    "(self.type == 'Separate') == has(self.nodeClassName)",
    "type Separate needs a nodeClassName, and no other type has one: write, for example, {type: Separate, "
    "nodeClassName: user} or {type: None}",
)


class BrokerClients(Clients):
    """The place of publishers and subscribers."""

    pods: int = Field(
        default=1,
        ge=1,
        le=16,
        description="Number of pods that share the pairs, on as many nodes of the class as possible.",
    )
    subscribers: Subscribers = Field(
        default=Subscribers(type=SubscribersType.WITH_PUBLISHERS),
        json_schema_extra=rules(_SEPARATE),
        description="Where the subscribers are, if there are any.",
    )
    connections: Connections = Field(
        default=Connections.EACH_TRIAL,
        description="EachTrial: connections are established for each trial. Kept: they are established for the first "
        "trial of a case, and kept for its other trials with the same client. Only the first trial then measures "
        "connecting. EachMessage: a publisher connects for each message, and disconnects when the broker has "
        "acknowledged it, as a device that sleeps in between. Only for MQTT, with the engine Native.",
    )
    engine: EngineType = Field(
        default=EngineType.NATIVE,
        description="Native (one static program), Paho (the Python client, for a device that runs Python), or "
        "SINETStream (NII's library, in Python).",
    )

    @property
    def alone(self) -> bool:
        """Whether there are no subscribers."""
        return self.subscribers.type is SubscribersType.NONE


_CONFIG_MAP_BYTES: Final = 2**20  # the maximum size in Kubernetes


class ConfigMapReference(Model):
    """A ConfigMap in the benchmark's namespace."""

    name: str = text(
        253,
        r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        "is not the name of a ConfigMap: see `kubectl get configmaps`",
        "Name of the ConfigMap. Each key is a message of at least 9 bytes. They are sent in turn, sorted by key. Make "
        "it immutable, so that every trial sends the same.",
        least=1,
    )


class Messages(Model):
    """Messages of your own. A number replaces the first 8 bytes of each message."""

    name: str = text(
        16,
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        "must be lower-case letters, digits and hyphens",
        "Name of the content in results and metrics.",
        least=1,
    )
    config_map_ref: ConfigMapReference = Field(description="The source of the messages.")


class Payload(Model):
    """The content of messages."""

    sizes: Annotated[tuple[Size, ...], AfterValidator(distinct)] = Field(
        default=("1Ki",),
        min_length=1,
        max_length=16,
        description="Bytes of a message before compression and encryption (a factor): 2 to 16Mi. The default is 1Ki.",
        json_schema_extra={"default": None}
        | SET
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
            text(
                16,
                "^(Random|Zeros|SensorJSON|Ratio[1-9]0)$",
                "must be Random, Zeros, SensorJSON or Ratio10, Ratio20, … Ratio90",
            ),
        ],
        ...,
    ] = Field(
        default=("Random",),
        min_length=1,
        max_length=12,
        json_schema_extra={"default": None} | SET,
        description="Random, Zeros, SensorJSON (records of sensors), or RatioNN, which gzip and zstd compress to NN% "
        "(a factor). The default is Random.",
    )
    messages: tuple[Messages, ...] = Field(
        default=(),
        max_length=12,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        description="Messages of your own, in place of sizes and contents. Their names are the levels of the content "
        "(a factor).",
    )

    @property
    def largest_bytes(self) -> int:
        """The maximum size of a message. Of your own messages, it is the maximum size of a ConfigMap."""
        return _CONFIG_MAP_BYTES if self.messages else max(map(parse_size, self.sizes))


PAYLOAD_RULES: Final = (
    Rule(
        "size(self.messages) == 0 || !(has(self.sizes) || has(self.contents))",
        "messages have sizes and contents of their own: remove sizes and contents, or measure messages in another "
        "benchmark",
    ),
)
PAYLOAD_CASES: Final = (
    "(size(self.payload.messages) > 0 ? size(self.payload.messages)"
    " : (has(self.payload.sizes) ? size(self.payload.sizes) : 1)"
    " * (has(self.payload.contents) ? size(self.payload.contents) : 1))"
)
