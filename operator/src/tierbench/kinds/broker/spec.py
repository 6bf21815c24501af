"""The spec of a BrokerBenchmark: how fast and reliably brokers on node classes deliver messages."""

from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import Field, JsonValue

from tierbench.api.benchmark import (
    ACCESS,
    BENCHMARK_COLUMNS,
    Access,
    Benchmark,
    Delivery,
    PolicySubject,
    PolicySubjectCel,
    Servers,
    ServiceSpec,
    Tls,
)
from tierbench.api.link import LINK_CASES, LINKS_NEED_PODS, TRACE_CONFIG_MAPS
from tierbench.api.model import Kind, Model, Rule, factor, levels, rules, text
from tierbench.api.quantity import is_smaller
from tierbench.api.run_policy import SERVER_NODES, Timeouts, matrix_rule, preflight_rule, refine_rule
from tierbench.api.trial_plan import Encryption, PacingType
from tierbench.kinds.broker.client_spec import (
    GROUP_CASES,
    MQTT_CASES,
    MQTT_RULES,
    PAYLOAD_CASES,
    PAYLOAD_RULES,
    BrokerClients,
    Groups,
    MqttFactors,
    Payload,
    group_rules,
    groups_field,
)
from tierbench.kinds.broker.server_spec import BROKER_RULES, HTTP_PLACES, HTTP_RULES, Broker, KafkaFactors
from tierbench.kinds.broker.tls import TLS_CASES, TLS_RULES, TlsClients


class Pacing(Model):
    """When publishers send messages."""

    type: PacingType = Field(
        description="ClosedLoop: send the next message when one has returned. Acknowledged: when the broker has "
        "acknowledged one, whether or not it has returned. OpenLoop: by the clock. AsFastAsPossible: as fast as "
        "maxInFlight allows."
    )
    in_flight: int | None = Field(
        default=None,
        ge=1,
        le=10000,
        description="With ClosedLoop and Acknowledged: messages per publisher that have not returned, or are not "
        "acknowledged. The default is 1.",
    )
    interval_milliseconds: int | None = Field(
        default=None, ge=1, le=3_600_000, description="With OpenLoop: each publisher sends one message per interval."
    )
    messages_per_second: int | None = Field(
        default=None, ge=1, le=1_000_000, description="With OpenLoop: messages per second and publisher."
    )

    @property
    def window(self) -> int | None:
        """The messages of a publisher that wait for an answer, or None if it does not wait."""
        return (self.in_flight or 1) if self.type in {PacingType.CLOSED_LOOP, PacingType.ACKNOWLEDGED} else None

    @property
    def rate(self) -> float | None:
        """The messages per second of a publisher, or None without a clock."""
        return self.messages_per_second if self.interval_milliseconds is None else 1000 / self.interval_milliseconds

    @property
    def parameters(self) -> dict[str, str]:
        """The type of the pacing and its parameters. An interval is given as a rate."""
        return {
            "pacing": self.type.value,
            **({} if self.window is None else {"inFlight": str(self.window)}),
            **({} if self.rate is None else {"messagesPerSecond": _number(self.rate)}),
        }


def _number(rate: float) -> str:
    return str(rate) if isinstance(rate, int) else f"{rate:.6g}"


class Load(Model):
    """The load of a trial: exactly one of the two."""

    messages_per_publisher: int | None = Field(
        default=None, ge=1, le=100_000_000, description="Number of messages per publisher."
    )
    duration_seconds: int | None = Field(default=None, ge=1, le=86400, description="Duration of the load.")

    def __str__(self) -> str:
        """Returns the load in words."""
        if self.duration_seconds is not None:
            return f"{self.duration_seconds} s"
        return f"{self.messages_per_publisher} messages"


_PACE = (
    Rule(
        "self.type == 'OpenLoop' ? has(self.intervalMilliseconds) != has(self.messagesPerSecond)"
        " : !has(self.intervalMilliseconds) && !has(self.messagesPerSecond)",
        "type OpenLoop needs either intervalMilliseconds or messagesPerSecond, and no other type has them: write, for "
        "example, {type: OpenLoop, messagesPerSecond: 50} or {type: ClosedLoop}",
    ),
    Rule(
        "!has(self.inFlight) || self.type in ['ClosedLoop', 'Acknowledged']",
        "inFlight is only for the types ClosedLoop and Acknowledged: remove it, or write, for example, {type: "
        "ClosedLoop, inFlight: 10}",
    ),
)
_ARRIVALS = Rule(
    "self.pacing.type != 'ClosedLoop' || self.clients.subscribers.type != 'None'",
    "pacing ClosedLoop waits for messages to return, and with clients.subscribers: {type: None} none returns: write "
    "pacing: {type: Acknowledged} or {type: AsFastAsPossible}",
)
_ACKNOWLEDGEMENTS = Rule(
    "self.pacing.type != 'Acknowledged' || !self.delivery.exists(d, d == 'AtMostOnce')",
    "pacing Acknowledged waits for acknowledgements, and delivery AtMostOnce has none: remove AtMostOnce, or measure "
    "it in another benchmark with pacing: {type: AsFastAsPossible}",
)
_ONE_LOAD = Rule(
    "has(self.messagesPerPublisher) != has(self.durationSeconds)",
    "set exactly one of messagesPerPublisher and durationSeconds, for example {messagesPerPublisher: 100}",
)
_SERVERS_GIVEN = Rule(
    "has(self.servers) || self.brokers.all(b, has(b.external))",
    "spec.servers is missing: name the node classes that host the broker, for example {nodeClassNames: [cloud]}",
)
_EXTERNAL_TLS = Rule(
    "size(self.tls) == 1 || !self.brokers.exists(b, has(b.external))",
    "an external broker has one address: write one level of tls, and another benchmark for each other level",
)
_LIMIT = "self.servers.resources.limits.memory"
_HEAP_WITHIN = Rule(
    f"!has(self.servers) || !has(self.servers.resources) || !has({_LIMIT})"
    " || self.brokers.all(b, !has(b.kafka) || b.kafka.provider != 'Standalone' || !has(b.kafka.heap)"
    f" || {is_smaller('b.kafka.heap', _LIMIT)})",
    "kafka.heap does not fit into servers.resources.limits.memory: Java needs about 200Mi in addition to its heap",
)
_SPREAD = Rule(
    "self.pairs.all(p, p >= self.clients.pods)",
    "clients.pods is more than the smallest number in pairs: each pod needs at least one pair",
)
_KAFKA = "(has(b.kafka) || (has(b.external) && b.external.protocol == 'Kafka'))"
_PAHO = Rule(
    f"self.clients.engine != 'Paho' || !self.brokers.exists(b, {_KAFKA})",
    "clients.engine: Paho only supports MQTT: write Native or SINETStream, or measure Kafka in another benchmark",
)
_NO_TRANSACTIONS = Rule(
    f"self.clients.engine != 'SINETStream' || !self.brokers.exists(b, {_KAFKA})"
    " || !self.delivery.exists(d, d == 'ExactlyOnce')",
    "clients.engine: SINETStream has no delivery ExactlyOnce for Kafka: remove it, or write Native",
)
_NO_BATCHES = Rule(
    f"self.clients.engine != 'SINETStream' || !self.brokers.exists(b, {_KAFKA})"
    " || self.kafkaClients.codecs == ['None'] && self.kafkaClients.partitions == [1]"
    " && self.kafkaClients.lingerMilliseconds == [0] && size(self.kafkaClients.batchSizes) == 1",
    "clients.engine: SINETStream sends each message to Kafka by itself, to one partition: remove kafkaClients, or "
    "write Native",
)
_LEVELS_OF_ZSTD = Rule(
    "self.clients.engine != 'Native' || self.compression.all(c, !c.startsWith('Zstd:')"
    " || c in ['Zstd:1', 'Zstd:3', 'Zstd:7', 'Zstd:11'])",
    "clients.engine: Native supports four levels of Zstd: write Zstd:1, Zstd:3, Zstd:7 or Zstd:11, or clients.engine: "
    "Paho or SINETStream, which support all levels",
)
_CIPHERS = Rule(
    "self.clients.engine == 'SINETStream' || self.encryption.all(e, e in ['None', 'AES128GCM'])",
    "clients.engine: Native and Paho encrypt with AES128GCM only: write None or AES128GCM, or clients.engine: "
    "SINETStream, which has the other ciphers",
)
_ONE_AT_A_TIME = Rule(
    "self.clients.engine != 'SINETStream' || self.pacing.type != 'Acknowledged' || !has(self.pacing.inFlight)"
    " || self.pacing.inFlight == 1",
    "clients.engine: SINETStream waits for the acknowledgement of each message: write inFlight: 1, or add pairs",
)
_STRIMZI = "self.brokers.exists(b, has(b.kafka) && b.kafka.provider == 'Strimzi')"
_STRIMZI_HOST_NETWORK = Rule(
    f"self.access != 'HostNetwork' || !{_STRIMZI}",
    "Strimzi does not support access: HostNetwork: write ClusterIP, PodIP or NodePort, or provider: Standalone",
)
_STRIMZI_NODE_PORT = Rule(
    f"self.access != 'NodePort' || self.tls.all(t, t == 'None') || !{_STRIMZI}",
    "Strimzi's certificates do not contain nodes: with access: NodePort write tls: [None], or use ClusterIP or PodIP "
    "with TLS",
)
_CLIENT_NODES = (
    "(size(self.clients.nodeClassNames) + (self.clients.subscribers.type == 'Separate' ? 1 : 0)) * self.clients.pods"
)
_KAFKA_CASES = (
    "size(self.kafkaClients.codecs) * size(self.kafkaClients.partitions)"
    " * size(self.kafkaClients.lingerMilliseconds) * size(self.kafkaClients.batchSizes)"
)
_MOSQUITTOS = f"self.brokers.filter(b, has(b.mosquitto)).map(b, {levels('b.mosquitto.images')}).sum()"
_KAFKAS = f"self.brokers.filter(b, has(b.kafka)).map(b, {levels('b.kafka.images')}).sum()"
_PLACES = (
    f"{SERVER_NODES} * {_MOSQUITTOS} * {MQTT_CASES} + {SERVER_NODES} * {_KAFKAS} * {_KAFKA_CASES} + {HTTP_PLACES}"
    f" + size(self.brokers.filter(b, has(b.external) && b.external.protocol == 'MQTT')) * {MQTT_CASES}"
    f" + size(self.brokers.filter(b, has(b.external) && b.external.protocol == 'Kafka')) * {_KAFKA_CASES}"
)
_CASES = (
    f"({_PLACES}) * size(self.clients.nodeClassNames)"
    f" * {PAYLOAD_CASES} * size(self.delivery) * {TLS_CASES}"
    f" * size(self.encryption) * size(self.compression) * size(self.pairs) * {GROUP_CASES}"
    f" * {LINK_CASES}"
)

_SECRETS = (
    "object.spec.brokers.filter(b, has(b.external) && has(b.external.secretRef)).map(b, b.external.secretRef.name)"
)
_BY_NAME: dict[str, JsonValue] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
NO_SERVERS = Servers.model_construct(node_class_names=())


class BrokerTimeouts(Timeouts):
    """The time that a step can take before its cases fail, and that messages can take before they are lost."""

    first_message_seconds: int = Field(
        default=60,
        ge=1,
        le=3600,
        description="Time until a running broker delivers a first message from the client's node.",
    )
    delivery_milliseconds: int = Field(
        default=10000,
        ge=100,
        le=600000,
        description="Messages in flight are lost if none arrives for this long.",
    )


class BrokerSpec(ServiceSpec):
    """The messages and the brokers to measure on each server class, from and to each client class."""

    brokers: tuple[Broker, ...] = Field(
        min_length=1,
        max_length=8,
        description="The brokers (a factor).",
        json_schema_extra={**_BY_NAME, **rules(*BROKER_RULES)},
    )
    servers: Servers = Field(
        default=NO_SERVERS,
        description="The servers of the brokers. Required unless all brokers are external.",
        json_schema_extra={"default": None},
    )
    clients: BrokerClients = Field(description="Where publishers and subscribers run.")
    payload: Payload = Field(
        default=Payload(), json_schema_extra=rules(*PAYLOAD_RULES), description="Content of the messages."
    )
    delivery: tuple[Delivery, ...] = factor(
        (Delivery.AT_LEAST_ONCE,),
        "AtMostOnce, AtLeastOnce, ExactlyOnce: QoS 0, 1 and 2 of MQTT; acks=0, acks=all and transactions "
        "of Kafka (a factor). HTTP has AtLeastOnce alone.",
        most=3,
    )
    tls: tuple[Tls, ...] = factor((Tls.NONE,), "Protection of the connections (a factor).", most=3)
    tls_clients: TlsClients = Field(default=TlsClients(), description="What clients do with TLS.")
    encryption: tuple[Encryption, ...] = factor(
        (Encryption.NONE,),
        "End-to-end encryption of the payload (a factor). The engines Native and Paho support AES128GCM.",
        most=4,
    )
    compression: tuple[
        Annotated[
            str,
            text(
                8,
                "^(None|Gzip(:[1-9])?|Zstd(:([1-9]|1[0-9]|2[0-2]))?)$",
                "must be None, Gzip or Zstd, optionally with a level: Gzip:1 … Gzip:9, Zstd:1 … Zstd:22",
            ),
        ],
        ...,
    ] = factor(
        ("None",),
        "Compression of the payload before encryption: None, Gzip, Zstd, Gzip:9, Zstd:11 (a factor). The "
        "engine Native supports levels 1, 3, 7 and 11 of Zstd.",
        most=8,
    )
    pairs: tuple[Annotated[int, Field(ge=1, le=256)], ...] = factor(
        (1,),
        "Number of publishers, each with a subscriber of its own (a factor). With groups: number of groups.",
        most=8,
    )
    mqtt_clients: MqttFactors = Field(default=MqttFactors(), description="Settings of the clients of MQTT.")
    groups: Groups = groups_field()
    kafka_clients: KafkaFactors = Field(default=KafkaFactors(), description="Settings of the clients of Kafka.")
    pacing: Pacing = Field(
        default=Pacing(type=PacingType.CLOSED_LOOP),
        json_schema_extra=rules(*_PACE),
        description="When publishers send messages.",
    )
    max_in_flight: int = Field(
        default=512,
        ge=1,
        le=65000,
        description="Maximum number of messages in flight per publisher, whatever the pacing. With more, the broker "
        "would have to queue messages, and finally drop them.",
    )
    load: Load = Field(
        default=Load(messages_per_publisher=100),
        json_schema_extra=rules(_ONE_LOAD),
        description="Load of a trial.",
    )
    timeouts: BrokerTimeouts = BrokerTimeouts()
    access: Access = Field(default=Access.CLUSTER_IP, description=ACCESS % "clients to the broker")

    @property
    def policy_subject(self) -> PolicySubject:
        """What an administrator can refuse in this spec, including external brokers, accounts sent to them, and the
        subscribers' class."""
        given, subscribers = super().policy_subject, self.clients.subscribers
        apart = () if subscribers.node_class_name is None else (subscribers.node_class_name,)
        external = [broker.external for broker in self.brokers if broker.external is not None]
        secrets = tuple(each.secret_ref.name for each in external if each.secret_ref is not None)
        return replace(
            given,
            node_class_names=(*given.node_class_names, *apart),
            addresses=tuple(each.address for each in external),
            plain_secrets=secrets if Tls.NONE in self.tls else (),
        )

    @property
    def parameters(self) -> dict[str, str]:
        """The settings of pacing, load, window, clients and path."""
        return {
            **super().parameters,
            **self.pacing.parameters,
            "load": str(self.load),
            "maxInFlight": str(self.max_in_flight),
            "deliveryTimeoutMilliseconds": str(self.timeouts.delivery_milliseconds),
            "access": self.access.value,
            "engine": self.clients.engine.value,
            "clientPods": str(self.clients.pods),
            "connections": self.clients.connections.value,
            "subscribers": str(self.clients.subscribers),
        }


class BrokerBenchmark(Benchmark):
    """Measures how fast and how reliably message brokers on node classes deliver."""

    KIND: ClassVar[Kind] = Kind(
        kind="BrokerBenchmark",
        short_names=("tbb",),
        categories=("benchmarks",),
        columns=BENCHMARK_COLUMNS,
        description="BrokerBenchmark measures how fast and how reliably message brokers deliver from each node class: "
        "which broker, on which class, up to which load?",
    )
    PREFIX: ClassVar[str] = "bb"
    SPEC_RULES: ClassVar[tuple[Rule, ...]] = (
        _SERVERS_GIVEN,
        _EXTERNAL_TLS,
        _HEAP_WITHIN,
        _SPREAD,
        _PAHO,
        _NO_TRANSACTIONS,
        _NO_BATCHES,
        _LEVELS_OF_ZSTD,
        _CIPHERS,
        _ONE_AT_A_TIME,
        *MQTT_RULES,
        *HTTP_RULES,
        _ARRIVALS,
        _ACKNOWLEDGEMENTS,
        _STRIMZI_HOST_NETWORK,
        _STRIMZI_NODE_PORT,
        *TLS_RULES,
        *group_rules(_KAFKA),
        LINKS_NEED_PODS,
        preflight_rule(_CLIENT_NODES),
        matrix_rule(_CASES),
        refine_rule("payload.sizes"),
    )
    POLICY_SUBJECT: ClassVar[PolicySubjectCel] = PolicySubjectCel(
        node_class_names="(has(object.spec.servers) ? object.spec.servers.nodeClassNames : [])"
        " + object.spec.clients.nodeClassNames"
        " + (has(object.spec.clients.subscribers.nodeClassName)"
        " ? [object.spec.clients.subscribers.nodeClassName] : [])",
        addresses="object.spec.brokers.filter(b, has(b.external)).map(b, b.external.address)",
        plain_secrets=f"'None' in object.spec.tls ? {_SECRETS} : []",
        secrets=_SECRETS,
        config_maps=f"object.spec.payload.messages.map(m, m.configMapRef.name) + {TRACE_CONFIG_MAPS}",
    )

    spec: BrokerSpec
