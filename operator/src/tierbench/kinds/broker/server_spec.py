"""The brokers of a BrokerBenchmark, and their providers."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from tierbench.api.model import ImageNames, Model, Rule, StorageClassName, factor, is_address, levels, rules, text
from tierbench.api.quantity import REQUESTS_WITHIN_LIMITS, Compute, Size, distinct, is_size, is_smaller, quantity_of
from tierbench.api.run_policy import SERVER_NODES


class Resources(Model):
    """Resource requests and limits of the broker's container."""

    requests: Compute = Field(default=Compute(cpu="50m", memory="128Mi"), description="Resource requests.")
    limits: Compute = Field(
        default=Compute(), description="Resource limits. Without a limit, the container can use all that the node has."
    )


class BrokerVolume(Model):
    """A volume of a storage class. It is created for each server and deleted with it."""

    storage_class_name: StorageClassName
    size: Size = Field(description="Size of the volume.")


class Strimzi(Model):
    """The deployment of Kafka by Strimzi."""

    version: str | None = text(
        16,
        r"^[0-9]+\.[0-9]+\.[0-9]+$",
        "is not a version of Kafka: write three numbers, as in 4.1.0",
        "Version of Kafka, of those that the installed Strimzi supports. The default is that of Strimzi.",
        default=None,
    )
    resources: Resources = Field(
        default=Resources(),
        description="CPU and memory of the broker's container.",
        json_schema_extra=REQUESTS_WITHIN_LIMITS,
    )
    volume_claim_template: BrokerVolume | None = Field(
        default=None,
        description="A volume for the broker's log. Without it, the log is in a directory that is deleted with the "
        "pod.",
    )


class Mosquitto(Model):
    """Eclipse Mosquitto, deployed on each server class."""

    images: ImageNames = ()
    persistence: bool = Field(
        default=False,
        description="Whether Mosquitto keeps sessions and messages on the node's disk, in a volume that is deleted "
        "with the server pod.",
    )
    max_inflight_messages: int = Field(
        default=0,
        ge=0,
        le=65535,
        description="Maximum number of messages of QoS 1 and 2 in flight to one client. 0 means no limit but the "
        "client's window.",
    )
    max_queued_messages: int = Field(
        default=0,
        ge=0,
        le=10_000_000,
        description="Maximum number of messages queued for one client, in addition to those in flight. More are lost. "
        "0 means no limit.",
    )
    message_size_limit: int = Field(
        default=0, ge=0, le=268_435_455, description="Maximum size of a payload in bytes. 0 means no limit."
    )


class KafkaProvider(StrEnum):
    """The software that deploys Kafka."""

    STANDALONE = "Standalone"
    STRIMZI = "Strimzi"


class Kafka(Model):
    """Apache Kafka, deployed on each server class: one broker that is its own controller."""

    provider: KafkaProvider = Field(
        default=KafkaProvider.STANDALONE,
        description="Standalone: tierbench, which needs nothing else. Strimzi: the Strimzi operator, which must watch "
        "the benchmark's namespace.",
    )
    images: ImageNames = ()
    heap: Size | None = Field(
        default=None,
        description="Java heap of the broker. The default is a quarter of the node's memory, at least 128Mi and at "
        "most 1Gi.",
    )
    strimzi: Strimzi | None = Field(
        default=None, description="The deployment of Kafka by Strimzi. Only with provider: Strimzi."
    )


class Http(Model):
    """nginx, deployed on each server class: it answers each message that is posted to it, and keeps none."""

    images: ImageNames = ()


class Protocol(StrEnum):
    """The protocol of a broker."""

    MQTT = "MQTT"
    KAFKA = "Kafka"
    HTTP = "HTTP"


class SecretReference(Model):
    """A Secret in the benchmark's namespace."""

    name: str = text(
        253,
        r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        "is not the name of a Secret: see `kubectl get secrets`",
        "Name of the Secret. Its keys are username and password, if the broker needs them, and ca.crt for TLS: the CA "
        "that signed the certificate of the broker. With tlsClients.certificates, tls.crt and tls.key are the "
        "certificate of the client and its key.",
        least=1,
    )


class External(Model):
    """An existing broker. tierbench uses it, and neither deploys nor observes it."""

    address: str = Field(
        min_length=3,
        max_length=280,
        description="Host and port as the clients reach the broker.",
        json_schema_extra=rules(is_address(1883)),
    )
    protocol: Protocol = Field(
        default=Protocol.MQTT,
        description="MQTT, Kafka or HTTP. For Kafka, the address is that of a bootstrap broker. It authenticates the "
        "user of the Secret with SCRAM-SHA-512, and the user may create, read, write and delete topics that begin with "
        "tierbench. For HTTP, each message is posted with the user's basic authentication, and every status of 2xx "
        "acknowledges it.",
    )
    path: str | None = text(
        200,
        "^/[-A-Za-z0-9._~/=?&]*$",
        "is not a path: begin with /, and write letters, digits and the characters - . _ ~ / = ? &",
        "With protocol: HTTP: path of the requests, with the query if there is one. The default is /.",
        default=None,
    )
    secret_ref: SecretReference | None = Field(
        default=None, description="Credentials, and the CA for TLS. Required with TLS."
    )


class Broker(Model):
    """A broker: exactly one of the types below."""

    name: str = text(
        20,
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        "must be lower-case letters, digits and hyphens",
        "Name of the broker in results and metrics.",
        least=1,
    )
    mosquitto: Mosquitto | None = Field(default=None, description="Eclipse Mosquitto, deployed on each server class.")
    kafka: Kafka | None = Field(default=None, description="Apache Kafka, deployed on each server class.")
    http: Http | None = Field(
        default=None, description="nginx, to which messages are posted, deployed on each server class."
    )
    external: External | None = Field(default=None, description="An existing broker.")

    @property
    def protocol(self) -> Protocol:
        """The protocol of the broker."""
        if self.external is not None:
            return self.external.protocol
        if self.http is not None:
            return Protocol.HTTP
        return Protocol.MQTT if self.kafka is None else Protocol.KAFKA

    @property
    def images(self) -> tuple[str, ...]:
        """The images that the spec names."""
        ours = self.mosquitto or self.kafka or self.http
        return () if ours is None else ours.images


class Codec(StrEnum):
    """Kafka's own compression of whole batches."""

    NONE = "None"
    GZIP = "Gzip"
    SNAPPY = "Snappy"
    LZ4 = "Lz4"
    ZSTD = "Zstd"


class KafkaFactors(Model):
    """Factors that only the clients of Kafka have."""

    codecs: tuple[Codec, ...] = factor(
        (Codec.NONE,),
        "Kafka's own compression of batches, in addition to that of payloads: None, Gzip, Snappy, Lz4, Zstd (a "
        "factor).",
        most=5,
    )
    partitions: tuple[Annotated[int, Field(ge=1, le=256)], ...] = factor(
        (1,), "Partitions of each pair's topic (a factor).", most=8
    )
    linger_milliseconds: tuple[Annotated[int, Field(ge=0, le=60000)], ...] = factor(
        (0,), "Time for which a batch waits for more messages (a factor).", most=8
    )
    batch_sizes: Annotated[tuple[Size, ...], AfterValidator(distinct)] = factor(
        ("1Mi",),
        "Maximum size of a batch in bytes: 1 to 16Mi. A larger message is a batch of its own (a factor).",
        most=8,
        rule=Rule(f"self.all(a, {is_size('a', '16Mi')})", "each size must be at most 16Mi"),
    )


_HEAP = "b.kafka.heap"
_STRIMZI_LIMIT = "b.kafka.strimzi.resources.limits.memory"
BROKER_RULES = (
    Rule(
        "self.all(b, !has(b.external) || !has(b.external.path) || b.external.protocol == 'HTTP')",
        "external.path is only for protocol: HTTP: set this protocol, or remove external.path",
    ),
    Rule(
        "self.all(b, [has(b.mosquitto), has(b.kafka), has(b.http), has(b.external)].filter(x, x).size() == 1)",
        "set exactly one of mosquitto, kafka, http and external for each broker, for example {name: mosquitto, "
        "mosquitto: {}}",
    ),
    Rule(
        f"self.all(b, !has(b.kafka) || !has(b.kafka.heap) || {is_size(_HEAP, '64Gi')}"
        f" && {quantity_of(_HEAP)}.compareTo(quantity('96Mi')) >= 0)",
        "kafka.heap must be from 96Mi to 64Gi: with less a broker does not start",
    ),
    Rule(
        "self.all(b, !has(b.kafka) || !has(b.kafka.strimzi) || b.kafka.provider == 'Strimzi')",
        "kafka.strimzi is only for provider: Strimzi: set this provider, or remove kafka.strimzi",
    ),
    Rule(
        "self.all(b, !has(b.kafka) || size(b.kafka.images) == 0 || b.kafka.provider == 'Standalone')",
        "kafka.images is only for provider: Standalone, because Strimzi has images of its own: set "
        "kafka.strimzi.version, and add a broker for each further version",
    ),
    Rule(
        "self.all(b, !has(b.kafka) || !has(b.kafka.heap) || !has(b.kafka.strimzi)"
        f" || !has({_STRIMZI_LIMIT}) || {is_smaller(_HEAP, _STRIMZI_LIMIT)})",
        "kafka.heap does not fit into kafka.strimzi.resources.limits.memory: Java needs about 200Mi in addition to "
        "its heap",
    ),
)


PROTOCOL: Final = "protocol"
"""The setting of an HTTP server that results keep. Those of brokers do not have it."""

_POSTS: Final = "self.brokers.exists(b, has(b.http) || (has(b.external) && b.external.protocol == 'HTTP'))"
HTTP_RULES: Final = (
    Rule(
        f"!{_POSTS} || self.clients.subscribers.type == 'None'",
        "an HTTP server passes no message on, so only publishing is measured: write clients.subscribers: {type: "
        "None} and, for example, pacing: {type: Acknowledged}",
    ),
    Rule(
        f"!{_POSTS} || self.delivery == ['AtLeastOnce']",
        "an HTTP server answers each message, which is AtLeastOnce: write delivery: [AtLeastOnce], and measure other "
        "deliveries of MQTT and Kafka in another benchmark",
    ),
    Rule(
        f"!{_POSTS} || self.clients.engine == 'Native'",
        "clients.engine: Native alone posts messages over HTTP: write Native, or measure HTTP in another benchmark",
    ),
    Rule(
        f"!{_POSTS} || self.tlsClients.handshakes == ['Full'] && self.tlsClients.certificates == ['None']",
        "clients of HTTP make full handshakes and present no certificate: remove tlsClients, or measure HTTP in "
        "another benchmark",
    ),
    Rule(
        f"!{_POSTS} || !has(self.pacing.inFlight) || self.pacing.inFlight == 1",
        "a connection of HTTP/1.1 carries one message at a time: write inFlight: 1, or add pairs",
    ),
)
"""What a spec with an HTTP server must say."""
HTTP_PLACES: Final = (
    f"{SERVER_NODES} * self.brokers.filter(b, has(b.http)).map(b, {levels('b.http.images')}).sum()"
    " + size(self.brokers.filter(b, has(b.external) && b.external.protocol == 'HTTP'))"
)
"""CEL: how many HTTP servers there are, on all nodes and outside."""
