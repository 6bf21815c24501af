"""The clients of a BrokerBenchmark: where they run, their engine, what they send, their MQTT, and their groups."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from tierbench.api.benchmark import Clients
from tierbench.api.model import SET, ClassName, Model, Rule, factor, levels, rules, text
from tierbench.api.quantity import Size, distinct, is_size, parse_size
from tierbench.api.trial_plan import Connections, MqttSettings, MqttVersion, PlannedGroup, Subscription
from tierbench.workloads.plan import Case, Factor


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


_VERSION: Final = "mqttVersion"


class MqttFactors(Model):
    """Factors that only the clients of MQTT have."""

    versions: tuple[MqttVersion, ...] = factor(
        (MqttVersion.V3_1_1,),
        'Versions of the protocol: "3.1.1", "5" (a factor). Write quotes, because 5 is a number.',
        most=2,
    )


MQTT_CASES: Final = "size(self.mqttClients.versions)"
_EACH_MESSAGE: Final = "self.clients.connections != 'EachMessage' || "
MQTT_RULES: Final = (
    Rule(
        "self.clients.engine != 'SINETStream' || self.mqttClients.versions == ['3.1.1']",
        "clients.engine: SINETStream measures MQTT 3.1.1 only: remove mqttClients, or write Native or Paho",
    ),
    Rule(
        f"{_EACH_MESSAGE}self.clients.engine == 'Native' && self.brokers.all(b, has(b.mosquitto)"
        " || has(b.external) && b.external.protocol == 'MQTT')",
        "clients.connections: EachMessage is only for MQTT and the engine Native: write EachTrial, or measure Kafka "
        "and other engines in another benchmark",
    ),
    Rule(
        f"{_EACH_MESSAGE}!has(self.pacing.inFlight) || self.pacing.inFlight == 1",
        "clients.connections: EachMessage has one message of a publisher in flight: remove pacing.inFlight, or add "
        "pairs",
    ),
)


def mqtt_factors(factors: MqttFactors) -> tuple[Factor, ...]:
    """Returns the factors that only the clients of MQTT have, if the spec names their levels."""
    return () if factors == MqttFactors() else (Factor(_VERSION, tuple(level.value for level in factors.versions)),)


def mqtt_settings(case: Case) -> dict[str, MqttSettings]:
    """Returns the field of a trial plan for the version of a case, if the case has one."""
    version = case.levels.get(_VERSION)
    return {} if version is None else {"mqtt": MqttSettings(version=MqttVersion(version))}


GROUPS: Final = "groups"
_MOST_CONNECTIONS: Final = 1024
_SHORT: Final = [size for number in range(2, 8) for size in (f"dyn({number})", f"dyn('{number}')")]


class Group(PlannedGroup):
    """The publishers and subscribers of a topic."""

    def __str__(self) -> str:
        """Returns the level: 8:1 for eight publishers and a subscriber, 4:2 Shared."""
        shared = f" {self.subscription}" if self.subscription is Subscription.SHARED else ""
        return f"{self.publishers}:{self.subscribers}{shared}"

    @property
    def deliveries(self) -> int:
        """The deliveries of a message of each publisher, all publishers together."""
        return self.publishers * (1 if self.subscription is Subscription.SHARED else self.subscribers)


Groups = tuple[Group, ...]
PAIR: Final = Group()


def groups_field() -> Any:
    """Returns the field for groups."""
    return Field(
        default=(),
        max_length=8,
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["publishers", "subscribers", "subscription"],
        },
        description="Numbers of publishers and subscribers that have one topic (a factor). pairs is then the "
        "number of such groups. Without groups, a topic has one publisher and one subscriber.",
    )


def group_factors(groups: Groups) -> tuple[Factor, ...]:
    """Returns the groups as a factor. Without groups there is none."""
    return (Factor(GROUPS, tuple(map(str, groups))),) if groups else ()


def group_of(groups: Groups, case: Case) -> Group:
    """Returns the group of a case, which is a pair if the spec has no groups."""
    return next((group for group in groups if str(group) == case.levels.get(GROUPS)), PAIR)


def most_publishers(groups: Groups) -> int:
    """Returns the maximum number of publishers of a topic."""
    return max((group.publishers for group in groups), default=1)


def most_deliveries(groups: Groups) -> int:
    """Returns the maximum number of deliveries that a message of each publisher of a topic makes."""
    return max((group.deliveries for group in groups), default=1)


def group_rules(is_kafka: str) -> Sequence[Rule]:
    """Returns the rules on groups. `is_kafka` is the CEL expression that the broker `b` is a Kafka."""
    return (
        Rule(
            "size(self.groups) == 0 || self.clients.engine == 'Native'",
            "groups need clients.engine: Native: write Native, or remove groups",
        ),
        Rule(
            "size(self.groups) == 0 || self.clients.subscribers.type == 'WithPublishers'",
            "groups have their subscribers in the pods of their publishers: remove clients.subscribers, or remove "
            "groups",
        ),
        Rule(
            f"!self.groups.exists(g, g.subscription == 'Shared') || !self.brokers.exists(b, {is_kafka})",
            "groups with subscription: Shared are only for MQTT: write subscription: Each, or measure Kafka in another "
            "benchmark",
        ),
        Rule(
            f"self.groups.all(g, self.pairs.all(p, p * (g.publishers + g.subscribers) <= {_MOST_CONNECTIONS}))",
            f"pairs and groups make more than {_MOST_CONNECTIONS} connections in a case: lower pairs, or the numbers "
            "of publishers and subscribers",
        ),
        Rule(
            "!self.groups.exists(g, g.publishers > 1) || !has(self.payload.sizes)"
            f" || self.payload.sizes.all(a, !(a in [{', '.join(_SHORT)}]))",
            "messages of several publishers need 8 bytes, to say whose they are: write payload.sizes of at least 8, or "
            "groups with one publisher",
        ),
    )


GROUP_CASES: Final = levels("self.groups")
"""The CEL expression for the number of levels of the groups."""
