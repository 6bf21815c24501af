"""The brokers of a BrokerBenchmark, and who brings them up."""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from tierbench.api.model import ImageNames, Model, Rule, StorageClassName, is_address, matching, rules
from tierbench.api.quantity import FITTING, Compute, Size, distinct, is_size, is_smaller, quantity_of


class Resources(Model):
    """What the broker's container asks for, and may use at most."""

    requests: Compute = Field(default=Compute(cpu="50m", memory="128Mi"), description="What it asks for.")
    limits: Compute = Field(default=Compute(), description="What it may use at most; without it, what the node has.")


class BrokerVolume(Model):
    """A volume of a storage class, made for each server and deleted with it."""

    storage_class_name: StorageClassName
    size: Size = Field(description="How large it is.")


class Strimzi(Model):
    """How Strimzi is to bring Kafka up."""

    version: str | None = Field(
        default=None,
        max_length=16,
        description="Kafka's version, of those that the Strimzi there supports; without it, its default.",
        json_schema_extra=rules(
            matching(r"^[0-9]+\.[0-9]+\.[0-9]+$", "is not a version of Kafka: write three numbers, as in 4.1.0")
        ),
    )
    resources: Resources = Field(
        default=Resources(),
        description="CPU and memory of the broker's container.",
        json_schema_extra=FITTING,
    )
    persistent_volume_claim: BrokerVolume | None = Field(
        default=None,
        description="Where it keeps its log; without it, in a directory that comes and goes with the pod.",
    )


class Mosquitto(Model):
    """Eclipse Mosquitto, deployed on each server class."""

    images: ImageNames = ()
    persistence: bool = Field(
        default=False,
        description="Whether it keeps sessions and messages on the node's disk, in a volume that comes and goes with "
        "the server pod.",
    )
    max_inflight_messages: int = Field(
        default=0,
        ge=0,
        le=65535,
        description="Messages of QoS 1 and 2 under way to one client at once; 0 for no limit but the client's window.",
    )
    max_queued_messages: int = Field(
        default=0,
        ge=0,
        le=10_000_000,
        description="Messages kept for one client beyond those under way; 0 for no limit. What is beyond it is lost.",
    )
    message_size_limit: int = Field(
        default=0, ge=0, le=268_435_455, description="Bytes of the largest payload that it takes; 0 for no limit."
    )


class KafkaProvider(StrEnum):
    """Who brings Kafka up."""

    STANDALONE = "Standalone"
    STRIMZI = "Strimzi"


class Kafka(Model):
    """Apache Kafka, deployed on each server class: one broker that is its own controller."""

    provider: KafkaProvider = Field(
        default=KafkaProvider.STANDALONE,
        description="Standalone: tierbench itself; nothing has to be installed. Strimzi: the Strimzi operator, which "
        "has to watch the benchmark's namespace.",
    )
    images: ImageNames = ()
    heap: Size | None = Field(
        default=None,
        description="The broker's Java heap. Without it a quarter of the node's memory, at least 128Mi, at most 1Gi.",
    )
    strimzi: Strimzi | None = Field(default=None, description="With provider: Strimzi alone: how it is to do so.")


class Protocol(StrEnum):
    """How a broker is spoken to."""

    MQTT = "MQTT"
    KAFKA = "Kafka"


class SecretReference(Model):
    """A Secret in the benchmark's namespace."""

    name: str = Field(
        min_length=1,
        max_length=253,
        description="Its name. Keys: username and password, if the broker asks for them; ca.crt for TLS.",
        json_schema_extra=rules(
            matching(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "is not the name of a Secret: see `kubectl get secrets`")
        ),
    )


class External(Model):
    """A broker that is there already: it is driven, and neither deployed nor observed."""

    address: str = Field(
        min_length=3,
        max_length=280,
        description="Host and port as the clients reach it.",
        json_schema_extra=rules(is_address(1883)),
    )
    protocol: Protocol = Field(
        default=Protocol.MQTT,
        description="MQTT, or Kafka: then the address is a bootstrap broker's, and the Secret's user is known by "
        "SCRAM-SHA-512 and may create, read, write and delete topics that begin with tierbench.",
    )
    secret_ref: SecretReference | None = Field(default=None, description="Credentials, and the CA for TLS.")


class Broker(Model):
    """A broker: exactly one of the kinds below."""

    name: str = Field(
        min_length=1,
        max_length=20,
        description="What it is called in results and metrics.",
        json_schema_extra=rules(
            matching(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "must be lower-case letters, digits and hyphens")
        ),
    )
    mosquitto: Mosquitto | None = Field(default=None, description="Eclipse Mosquitto, deployed on each server class.")
    kafka: Kafka | None = Field(default=None, description="Apache Kafka, deployed on each server class.")
    external: External | None = Field(default=None, description="A broker that is there already.")

    @property
    def protocol(self) -> Protocol:
        """How it is spoken to."""
        if self.external is not None:
            return self.external.protocol
        return Protocol.MQTT if self.kafka is None else Protocol.KAFKA

    @property
    def images(self) -> tuple[str, ...]:
        """The images that are asked for by name."""
        ours = self.mosquitto or self.kafka
        return () if ours is None else ours.images


class Codec(StrEnum):
    """Kafka's own compression, of whole batches."""

    NONE = "None"
    GZIP = "Gzip"
    SNAPPY = "Snappy"
    LZ4 = "Lz4"
    ZSTD = "Zstd"


class KafkaFactors(Model):
    """How Kafka's brokers are used: factors of theirs alone."""

    codecs: tuple[Codec, ...] = Field(
        default=(Codec.NONE,),
        min_length=1,
        max_length=5,
        json_schema_extra={"x-kubernetes-list-type": "set"},
        description="Kafka's own compression of batches, apart from that of payloads: None, Gzip, Snappy, Lz4, Zstd "
        "(a factor).",
    )
    partitions: tuple[Annotated[int, Field(ge=1, le=256)], ...] = Field(
        default=(1,),
        min_length=1,
        max_length=8,
        json_schema_extra={"x-kubernetes-list-type": "set"},
        description="Partitions of each pair's topic (a factor).",
    )
    linger_milliseconds: tuple[Annotated[int, Field(ge=0, le=60000)], ...] = Field(
        default=(0,),
        min_length=1,
        max_length=8,
        json_schema_extra={"x-kubernetes-list-type": "set"},
        description="How long a batch waits for more messages (a factor).",
    )
    batch_sizes: Annotated[tuple[Size, ...], AfterValidator(distinct)] = Field(
        default=("1Mi",),
        min_length=1,
        max_length=8,
        description="Bytes of the largest batch: 1 to 16Mi; a larger message is a batch of its own (a factor).",
        json_schema_extra={"x-kubernetes-list-type": "set"}
        | rules(Rule(f"self.all(a, {is_size('a', '16Mi')})", "each size must be at most 16Mi")),
    )


_HEAP = "b.kafka.heap"
_STRIMZI_LIMIT = "b.kafka.strimzi.resources.limits.memory"
BROKER_RULES = (
    Rule(
        "self.all(b, [has(b.mosquitto), has(b.kafka), has(b.external)].filter(x, x).size() == 1)",
        "give each broker exactly one of mosquitto, kafka and external, for example {name: mosquitto, mosquitto: {}}",
    ),
    Rule(
        f"self.all(b, !has(b.kafka) || !has(b.kafka.heap) || {is_size(_HEAP, '64Gi')}"
        f" && {quantity_of(_HEAP)}.compareTo(quantity('96Mi')) >= 0)",
        "kafka.heap must be from 96Mi to 64Gi: with less a broker does not start",
    ),
    Rule(
        "self.all(b, !has(b.kafka) || !has(b.kafka.strimzi) || b.kafka.provider == 'Strimzi')",
        "kafka.strimzi is for provider: Strimzi alone: write that beside it, or take kafka.strimzi out",
    ),
    Rule(
        "self.all(b, !has(b.kafka) || size(b.kafka.images) == 0 || b.kafka.provider == 'Standalone')",
        "kafka.images is for provider: Standalone alone, since Strimzi has images of its own: name the version in "
        "kafka.strimzi.version instead, and a broker for each further one",
    ),
    Rule(
        "self.all(b, !has(b.kafka) || !has(b.kafka.heap) || !has(b.kafka.strimzi)"
        f" || !has({_STRIMZI_LIMIT}) || {is_smaller(_HEAP, _STRIMZI_LIMIT)})",
        "kafka.heap does not fit into kafka.strimzi.resources.limits.memory: Java needs about 200Mi beside its heap",
    ),
)
