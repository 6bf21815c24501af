"""What a client does: the trial plan, the part of the contract that the operator writes.

The operator gives a client one plan as a JSON document, and the client measures all trials of its schedule. A client
refuses a plan with an unknown field. Every duration has its unit in its name.
"""

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field, Strict

from tierbench.api.benchmark import Delivery, Tls
from tierbench.api.contract import MAXIMUM_TRIALS, TrialNumber
from tierbench.api.measurements import TransferDirection
from tierbench.api.model import Model

MAXIMUM_TARGETS: Final = 128
"""The maximum number of targets of a client. Its plan is an argument of a program, which has at most 128 KiB."""

_INT32: Final = 2**31 - 1

Word = Annotated[str, Field(default="", max_length=63)]
Path = Annotated[str, Field(default="", max_length=253)]
Address = Annotated[str, Field(min_length=1, max_length=512)]
CaseNumber = Annotated[
    int,
    Strict(),
    Field(default=0, ge=0, le=_INT32, description="Number of the case. 0: there is only one."),
]
Whole = Annotated[int, Strict(), Field(ge=0, le=_INT32)]
Positive = Annotated[int, Strict(), Field(ge=1, le=_INT32)]


class AgentAccess(Model):
    """The agent of a server, and the files that a client needs to talk to it."""

    url: Address = Field(description="https://HOST:PORT.")
    token_file: Path = Field(description="File with the agent's token.")
    pin_file: Path = Field(description="File with the pin of the agent's key, sha256//BASE64.")


class PlannedTrial(Model):
    """A trial of a case."""

    case: CaseNumber
    trial: TrialNumber = Field(description="Number of the trial, counted from 1.")


class TargetFields(Model):
    """What every target has: a case with its server."""

    case: CaseNumber
    deadline_seconds: Whole = Field(default=0, description="Time limit for all of its trials together. 0: none.")
    agent: AgentAccess | None = Field(default=None, description="The agent of the server.")


class PlannedLink(Model):
    """The imitated link of the client, which it measures before the first trial."""

    name: Word = Field(description="Name of the link.")
    up_kilobits_per_second: Whole = Field(default=0, description="Its rate from the client. 0: not measured.")
    down_kilobits_per_second: Whole = Field(default=0, description="Its rate to the client. 0: not measured.")


class PlanFields(Model):
    """What every plan has."""

    contract: Literal[1] = Field(description="Version of the contract.")
    warmup_trials: int = Field(default=0, ge=0, le=1000, description="Warm-up trials of each target before all others.")
    schedule: tuple[PlannedTrial, ...] = Field(
        min_length=1, max_length=MAXIMUM_TRIALS, description="The other trials, in order."
    )
    link: PlannedLink | None = Field(default=None, description="The imitated link of the client, if it has one.")


class MeetingFields(PlanFields):
    """What the plan of a client with several parts has. The parts meet at the agent of the first target."""

    barrier: Word = Field(description="Name of the barrier at which the parts meet.")
    part: int = Field(default=0, ge=0, le=255, description="Number of this part, counted from 0.")
    parts: int = Field(default=1, ge=1, le=256, description="Number of parts.")
    refused_networks: tuple[Annotated[str, Field(max_length=63)], ...] = Field(
        default=(), max_length=256, description="Networks that no name of a server may lead to."
    )


class CacheState(StrEnum):
    """The content of the page cache of the server's node at the start of a trial."""

    UNCHANGED = "Unchanged"
    WARM = "Warm"
    COLD = "Cold"


class TransferTarget(TargetFields):
    """A file of a server, or the place of files that it receives."""

    url: Address = Field(
        description="http://HOST:PORT/PATH or https://HOST:PORT/PATH. Upload number n, counted from 0, goes to PATH/n."
    )
    ca_file: Path = Field(description="The CA to trust instead of those of the system.")


class TransferPlan(PlanFields):
    """Transfer a file over HTTP, with the semantics of wget."""

    kind: Literal["Transfer"] = Field(description="Transfer: a file over HTTP.")
    direction: TransferDirection = Field(
        default=TransferDirection.DOWNLOAD, description="Download by GET, or Upload by PUT."
    )
    targets: tuple[TransferTarget, ...] = Field(
        min_length=1, max_length=MAXIMUM_TARGETS, description="The file on each server."
    )
    engine: Word = Field(description="The program that transfers files: wget or curl. Empty: the client itself.")
    size_bytes: int = Field(ge=1, le=2**50, description="Size of the file.")
    concurrency: Positive = Field(default=1, description="Transfers at the same time.")
    cache_state: CacheState = Field(default=CacheState.UNCHANGED, description="Page cache before each trial.")
    read_timeout_milliseconds: Positive = Field(default=1000, description="Retry after this time without data.")
    attempts: Positive = Field(default=20, description="Maximum number of connections of a transfer.")
    wait_milliseconds: Whole = Field(default=1000, description="Pause before a retry.")
    max_wait_milliseconds: Whole = Field(
        default=0, description="Maximum pause. Each pause is longer by the first one. 0: all are the same."
    )
    trial_seconds: Whole = Field(default=0, description="Time limit of a trial. 0: none.")
    tls: Tls = Field(default=Tls.NONE, description="Exactly this version.")
    server_name: Path = Field(description="Name in the server's certificate. Empty: the host of the URL.")
    verify_digest: bool = Field(
        default=False,
        description="Compare the content with the SHA-256 at URL.sha256. Of uploads, read back what the server stored.",
    )
    copy_content: bool = Field(
        default=False, description="Copy plain content out of the kernel, as TLS has to, instead of dropping it there."
    )


class Encryption(StrEnum):
    """Encryption of the payload from publisher to subscriber. The broker sees only the ciphertext."""

    NONE = "None"
    AES128GCM = "AES128GCM"
    AES256GCM = "AES256GCM"
    AES128EAX = "AES128EAX"
    AES256EAX = "AES256EAX"
    AES128CTR = "AES128CTR"
    AES256CTR = "AES256CTR"
    AES128CBC = "AES128CBC"
    AES256CBC = "AES256CBC"


class PacingType(StrEnum):
    """What a publisher waits for before it sends the next message."""

    CLOSED_LOOP = "ClosedLoop"
    ACKNOWLEDGED = "Acknowledged"
    OPEN_LOOP = "OpenLoop"
    AS_FAST_AS_POSSIBLE = "AsFastAsPossible"


class PlannedPacing(Model):
    """When publishers send messages."""

    type: PacingType = Field(
        description="ClosedLoop: when a message has returned. Acknowledged: when one is acknowledged. OpenLoop: by the "
        "clock. AsFastAsPossible: as fast as maxInFlight allows."
    )
    in_flight: int = Field(
        default=0,
        ge=0,
        le=65000,
        description="With ClosedLoop and Acknowledged: messages per publisher that have not returned, or are not "
        "acknowledged.",
    )
    interval_nanoseconds: int = Field(
        default=0, ge=0, le=3_600_000_000_000, description="With OpenLoop: time between messages of a publisher."
    )


class PlannedLoad(Model):
    """The load of a trial: exactly one of the two."""

    messages: Whole = Field(default=0, description="Number of messages per publisher.")
    duration_seconds: Whole = Field(default=0, description="Duration of the load.")


class Connections(StrEnum):
    """The lifetime of the connections of publishers and subscribers."""

    EACH_TRIAL = "EachTrial"
    KEPT = "Kept"
    EACH_MESSAGE = "EachMessage"


class MqttVersion(StrEnum):
    """The version of MQTT."""

    V3_1_1 = "3.1.1"
    V5 = "5"


class MqttSettings(Model):
    """The settings of the clients of MQTT."""

    version: MqttVersion = Field(default=MqttVersion.V3_1_1, description="Version of the protocol.")


class KafkaSettings(Model):
    """The settings of Kafka's clients."""

    codec: Literal["None", "Gzip", "Snappy", "Lz4", "Zstd"] = Field(default="None", description="Codec of batches.")
    partitions: int = Field(default=1, ge=1, le=256, description="Partitions of each topic.")
    linger_milliseconds: int = Field(default=0, ge=0, le=60_000, description="How long batches wait for more messages.")
    batch_bytes: int = Field(default=1 << 20, ge=1, le=16 << 20, description="Maximum size of a batch.")
    allowed_hosts: tuple[Annotated[str, Field(max_length=253)], ...] = Field(
        default=(), max_length=256, description="Networks and names that it may send its clients to. Empty: all."
    )


class Subscription(StrEnum):
    """Who of several subscribers receives a message."""

    EACH = "Each"
    SHARED = "Shared"


class PlannedGroup(Model):
    """The publishers and subscribers of a topic."""

    publishers: int = Field(default=1, ge=1, le=64, description="Number of publishers.")
    subscribers: int = Field(default=1, ge=1, le=64, description="Number of subscribers.")
    subscription: Subscription = Field(
        default=Subscription.EACH,
        description="Each: every subscriber receives every message. Shared: one of the subscribers receives it, by a "
        "shared subscription of MQTT.",
    )


class Role(StrEnum):
    """The role of the pairs: both sides, only publishers, only echoes, or publishers without subscribers."""

    BOTH = "Both"
    PUBLISHER = "Publisher"
    ECHO = "Echo"
    ALONE = "Alone"


class BrokerTarget(TargetFields):
    """A broker."""

    url: Address = Field(description="mqtt, mqtts, kafka or kafkas://HOST:PORT; http or https://HOST:PORT/PATH.")
    topic: str = Field(default="tierbench", min_length=1, max_length=200, description="Prefix of all topics.")
    username_file: Path = Field(
        description="File with the user's name. With TLS it need not exist: then the client has no account."
    )
    password_file: Path = Field(description="File with the password. It need not exist.")
    ca_file: Path = Field(description="The CA to trust instead of those of the system.")
    client_certificate_file: Path = Field(description="The certificate that the client presents. Empty: none.")
    client_key_file: Path = Field(description="The private key of this certificate.")


class BrokerPlan(MeetingFields):
    """Publish messages to a broker and receive them again."""

    kind: Literal["Broker"] = Field(description="Broker: messages through MQTT, Kafka or HTTP.")
    targets: tuple[BrokerTarget, ...] = Field(min_length=1, max_length=MAXIMUM_TARGETS, description="The brokers.")
    engine: Word = Field(
        description="The engine that makes the load: the program tierbench-engine-NAME. Empty: the client itself."
    )
    tls: Tls = Field(default=Tls.NONE, description="Exactly this version.")
    server_name: Path = Field(
        description="Name in the broker's certificate, in the addresses that Kafka advertises, and in requests over "
        "HTTP. Empty: the host of the URL."
    )
    resume_sessions: bool = Field(
        default=False, description="Resume the TLS session of an earlier connection, instead of a full handshake."
    )
    pairs: int = Field(default=1, ge=1, le=256, description="Number of pairs, or of groups.")
    first_pair: Whole = Field(default=0, description="Number of the first pair.")
    group: PlannedGroup = Field(default=PlannedGroup(), description="The publishers and subscribers of each pair.")
    role: Role = Field(default=Role.BOTH, description="Role of the pairs.")
    size_bytes: int = Field(
        default=1024, ge=2, le=_INT32, description="Size of a message before compression and encryption."
    )
    content: str = Field(
        default="Random", max_length=63, description="Random, Zeros, SensorJSON, or Ratio10 to Ratio90."
    )
    content_folder: Path = Field(description="Send the files of this folder in turn, instead of generated content.")
    seed: Whole = Field(default=1, description="Seed of the content, and of the phases at which pairs begin.")
    delivery: Delivery = Field(
        default=Delivery.AT_MOST_ONCE, description="QoS 0, 1 or 2; Kafka's counterparts; AtLeastOnce of HTTP."
    )
    compression: str = Field(
        default="None", max_length=63, description="None, Gzip or Zstd, optionally with a level, as in Zstd:11."
    )
    encryption: Encryption = Field(default=Encryption.NONE, description="Encryption of the payload.")
    key_file: Path = Field(description="File with the 16 bytes of the key, or of what an engine derives it from.")
    pacing: PlannedPacing = Field(description="When publishers send messages.")
    load: PlannedLoad = Field(description="The load of a trial.")
    max_in_flight: int = Field(
        default=512, ge=1, le=65000, description="Maximum number of messages of a publisher in flight, at any pace."
    )
    tuning: Literal["Light", "Heavy"] = Field(
        default="Heavy", description="Light: the shortest path of a message on one CPU. Heavy: the highest rate."
    )
    delivery_timeout_milliseconds: Positive = Field(
        default=10_000, description="Messages in flight count as lost if none arrives for this time."
    )
    ready_milliseconds: Whole = Field(default=60_000, description="Time for the broker and other parts to be ready.")
    warm_rounds: int = Field(
        default=20, ge=0, le=1000, description="Maximum number of warm-up rounds before the first trial of a target."
    )
    connections: Connections = Field(
        default=Connections.EACH_TRIAL,
        description="EachTrial: new ones for each trial of a target. Kept: from trial to trial. EachMessage: new ones "
        "for each trial, and publishers connect for each message.",
    )
    mqtt: MqttSettings = Field(default=MqttSettings(), description="The settings of the clients of MQTT.")
    kafka: KafkaSettings = Field(default=KafkaSettings(), description="The settings of Kafka's clients.")


class Protocol(StrEnum):
    """The protocol of the load."""

    TCP = "TCP"
    UDP = "UDP"


class Direction(StrEnum):
    """The direction of the load, as the client sees it."""

    UPLOAD = "Upload"
    DOWNLOAD = "Download"
    BIDIRECTIONAL = "Bidirectional"


class PlannedPing(Model):
    """The echo requests before each load."""

    count: Whole = Field(default=10, description="Number of requests. 0: none.")
    interval_milliseconds: Positive = Field(default=200, description="Time from one request to the next.")
    size_bytes: Positive = Field(default=56, description="Payload of a request.")
    under_load: bool = Field(default=False, description="Send as many requests during each load, too.")


class NetworkTarget(TargetFields):
    """An iperf3 server."""

    server: Address = Field(description="HOST:PORT.")
    ping_host: Path = Field(description="Where echo requests go. Empty: the host of the server.")


class NetworkPlan(MeetingFields):
    """Measure a network with ping, then iperf3."""

    kind: Literal["Network"] = Field(description="Network: ping, then iperf3.")
    targets: tuple[NetworkTarget, ...] = Field(
        min_length=1, max_length=MAXIMUM_TARGETS, description="The iperf3 servers."
    )
    protocol: Protocol = Field(default=Protocol.TCP, description="Protocol of the load.")
    direction: Direction = Field(default=Direction.UPLOAD, description="Direction of the load.")
    streams: int = Field(default=1, ge=1, le=128, description="Connections that share the load of a direction.")
    congestion_control: Word = Field(description="TCP's algorithm at both ends. Empty: that of their kernels.")
    duration_seconds: Positive = Field(default=10, description="Duration of the load.")
    kilobits_per_second: Whole = Field(
        default=0, description="With UDP: payload per second of a direction, all streams together."
    )
    ready_milliseconds: Whole = Field(
        default=30_000, description="How long the server may refuse a trial, or be busy, before the trial has failed."
    )
    ping: PlannedPing = Field(default=PlannedPing(), description="The echo requests before each load.")
    trace_interval_milliseconds: Whole = Field(
        default=0, description="Time between samples of TCP at the sender. 0: no trace."
    )


TrialPlan = Annotated[TransferPlan | BrokerPlan | NetworkPlan, Field(discriminator="kind")]
"""The plan of a client, by its kind."""

PLANS: Final[tuple[type[PlanFields], ...]] = (TransferPlan, BrokerPlan, NetworkPlan)
