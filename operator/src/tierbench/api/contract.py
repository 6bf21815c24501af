"""What a client prints: the contract between engine and operator, version 1.

A client writes one JSON object a line to standard output: `TrialStarted`, then `Trial`, for each trial. Its termination
message is the `Seal`: how many Trial lines there were and their digest, so that a log cut short is seen. All times are
integer nanoseconds, ratios integer parts per million, sizes integer bytes. Fields that do not apply are left out.
"""

from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from tierbench.api.computer import Computer
from tierbench.api.model import Model

CONTRACT_VERSION: Final = 1
HISTOGRAM_SCHEMA: Final = 6

Count = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]
Nanoseconds = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]
PartsPerMillion = Annotated[int, Field(ge=0, le=1_000_000)]
Reason = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Z][A-Za-z0-9]*$")]


class Outcome(StrEnum):
    """How a trial ended."""

    COMPLETED = "Completed"
    FAILED = "Failed"


CaseNumber = Annotated[
    int,
    Field(
        default=0,
        ge=0,
        json_schema_extra={"format": "int64"},
        description="Of a client of several cases: which it is of.",
    ),
]


class Failure(Model):
    """Why something ended without what was asked for."""

    reason: Reason = Field(description="One CamelCase word that programs can compare.")
    message: str = Field(max_length=1024, description="The same for a person, and what to do next.")


class ClientSample(Model):
    """What a trial cost the client."""

    cpu_nanoseconds: Nanoseconds = Field(default=0, description="User and system time of the engine's process.")
    cpu_limit_millicores: Count | None = Field(
        default=None,
        description="CPU that the engine could use at once, in thousandths: its node's, its cgroup's, its thread's.",
    )
    tuning: str | None = Field(
        default=None, max_length=63, description="What the engine was tuned for, the same in all cases of a benchmark."
    )
    computer: Computer | None = Field(default=None, description="The state of the client's computer.")


class ServerSample(Model):
    """What the agent beside the server saw during a trial. Absent fields are what the node's kernel does not tell."""

    resident_before_parts_per_million: PartsPerMillion | None = Field(
        default=None, description="Share of the served file in the page cache when the trial began."
    )
    resident_after_parts_per_million: PartsPerMillion | None = Field(
        default=None, description="The same when it ended."
    )
    device_read_bytes: Count | None = Field(
        default=None, description="Bytes that the block device of the served files read."
    )
    io_wait_parts_per_million: PartsPerMillion | None = Field(
        default=None, description="Share of CPU time that the node waited for I/O."
    )
    io_pressure_parts_per_million: PartsPerMillion | None = Field(
        default=None, description="Share of time in which some task of the node waited for I/O (PSI)."
    )
    cpu_parts_per_million: PartsPerMillion | None = Field(
        default=None, description="Share of CPU time that the node was busy, I/O wait not counted."
    )
    process_cpu_nanoseconds: Nanoseconds | None = Field(
        default=None, description="User and system time of the server's process; of several, of the one that took most."
    )
    tcp_retransmits: Count | None = Field(default=None, description="Segments that the sending side sent again.")
    tcp_segments_sent: Count | None = Field(default=None, description="Segments that the sending side sent.")
    round_trip_nanoseconds: Nanoseconds | None = Field(
        default=None, description="Mean of the sampled smoothed round-trip times of the sending side."
    )
    round_trip_maximum_nanoseconds: Nanoseconds | None = Field(default=None, description="The largest of them.")
    cpu_limit_millicores: Count | None = Field(
        default=None, description="CPU that the server could use at once, in thousandths: its quota's, else its node's."
    )
    memory_available_bytes: Count | None = Field(
        default=None,
        description="What the page cache could take when the trial began: the node's available memory, or the agent's "
        "limit, to which pages are charged, where that is less.",
    )
    computer: Computer | None = Field(default=None, description="The state of the server's computer.")


class RetryCauses(Model):
    """Retries by cause."""

    stalled: Count = Field(default=0, alias="Stalled", description="No data for longer than the read timeout.")
    truncated: Count = Field(default=0, alias="Truncated", description="The connection ended before the content did.")
    reset: Count = Field(default=0, alias="Reset", description="The connection was reset.")
    refused: Count = Field(default=0, alias="Refused", description="The connection was refused.")
    unreachable: Count = Field(default=0, alias="Unreachable", description="No connection within the read timeout.")
    server_error: Count = Field(default=0, alias="ServerError", description="An answer of the 500s.")
    corrupt: Count = Field(default=0, alias="Corrupt", description="Content with another digest.")


class Transfer(Model):
    """What the downloads of one trial did."""

    bytes: Count = Field(default=0, description="Bytes of content received, each counted once.")
    downloads: Count = Field(default=0, description="Downloads of the trial, all at the same time.")
    retries: Count = Field(default=0, description="Further attempts of all downloads.")
    retry_causes: RetryCauses = Field(default=RetryCauses(), description="The same by cause.")
    errors: Count = Field(default=0, description="Downloads that did not end with every byte.")
    dns_nanoseconds: Nanoseconds = Field(
        default=0,
        description="Lookup of the server's name, once for all downloads and attempts, before the trial's time begins. "
        "0: the client was given an address.",
    )
    connect_nanoseconds: Nanoseconds = Field(
        default=0, description="TCP connection of the first attempt, mean of downloads."
    )
    tls_nanoseconds: Nanoseconds = Field(default=0, description="TLS handshake, likewise.")
    first_byte_nanoseconds: Nanoseconds = Field(
        default=0, description="From the request written to the first byte of the answer, likewise."
    )
    longest_stall_nanoseconds: Nanoseconds = Field(default=0, description="The longest time without data.")
    digest_verified: bool = Field(default=False, description="Whether the content's digest was compared.")
    copied: bool | None = Field(
        default=None, description="Whether the client copied the content out of the kernel, as TLS and digests need it."
    )
    cipher: str | None = Field(default=None, max_length=63, description="The cipher suite, with TLS.")


class ExchangeErrors(Model):
    """Errors of publishers and subscribers, by cause."""

    disconnected: Count = Field(default=0, alias="Disconnected", description="A connection that broke off.")
    refused: Count = Field(default=0, alias="Refused", description="An operation that the broker refused.")
    timed_out: Count = Field(default=0, alias="TimedOut", description="An acknowledgement that never came.")
    corrupt: Count = Field(default=0, alias="Corrupt", description="A message with other content than was sent.")


class Exchange(Model):
    """What the publishers and subscribers of one trial did, all pairs together. sent = received + lost.

    Without subscribers nothing is known of what they would have received: those fields are absent.
    """

    pairs: Count = Field(default=0, description="Publisher/subscriber pairs.")
    sent: Count = Field(default=0, description="Messages that publishers sent, each counted once.")
    received: Count | None = Field(
        default=None, description="Of these, those that their subscriber received; absent if there was none."
    )
    lost: Count = Field(default=0, description="Of these, those that it did not.")
    acknowledged: Count = Field(
        default=0,
        description="Of these, those that the broker acknowledged. Without subscribers, and with AtMostOnce, those "
        "that it had taken when it was asked after the last.",
    )
    acknowledged_bytes: Count = Field(
        default=0,
        description="Without subscribers: payload of what was acknowledged, before compression and encryption.",
    )
    acknowledged_lost: Count = Field(default=0, description="Acknowledged by the broker, and never received.")
    duplicated: Count = Field(default=0, description="Further copies that subscribers received.")
    out_of_order: Count = Field(default=0, description="Messages received after one that was sent later.")
    retried: Count = Field(default=0, description="Messages that were sent again.")
    reconnects: Count = Field(default=0, description="Connections that were made anew.")
    errors: Count = Field(default=0, description="Errors of all causes.")
    error_causes: ExchangeErrors = Field(default=ExchangeErrors(), description="The same by cause.")
    late_sends: Count = Field(
        default=0, description="Messages sent later than intended, by more than a tenth of the interval, or 1 ms."
    )
    unsent: Count = Field(
        default=0, description="Messages that were due before the load ended, and were not sent. They are not in sent."
    )
    discarded: Count = Field(
        default=0,
        description="Messages received, without subscribers acknowledged, before the trial was steady: counted, and in "
        "no distribution.",
    )
    steady: bool | None = Field(
        default=None, description="Whether the trial came to a steady state; not of few messages."
    )
    cipher: str | None = Field(default=None, max_length=63, description="The cipher suite, with TLS.")
    batches: Count = Field(
        default=0, description="Of a broker that takes messages in batches: those that it took, of all publishers."
    )
    batch_bytes: Count = Field(default=0, description="Bytes of their messages, after the broker's own codec.")
    sent_bytes: Count = Field(default=0, description="Payload sent, before compression and encryption.")
    received_bytes: Count = Field(default=0, description="Payload received, after decryption and decompression.")
    encoded_bytes: Count = Field(default=0, description="Payload sent, after compression and encryption.")
    wire_sent_bytes: Count = Field(
        default=0,
        description="Bytes that the clients' connections sent, from the first SYN to the last acknowledgement before "
        "the connection is closed, of kept ones from the trial's beginning to its end: Ethernet, IP and TCP headers, "
        "TLS and retransmissions included.",
    )
    wire_received_bytes: Count = Field(default=0, description="Bytes that they received, likewise.")
    wire_sent_packets: Count = Field(
        default=0,
        description="TCP segments that made up the bytes that they sent: the SYN, acknowledgements without data and "
        "what was sent again included.",
    )
    wire_received_packets: Count = Field(default=0, description="Segments that they received, likewise.")
    connections: Count = Field(
        default=0,
        description="Connections that publishers and subscribers began with, made for the trial or kept; several that "
        "a client of Kafka makes are one.",
    )
    setup_bytes: Count | None = Field(
        default=None,
        description="Bytes on the wire, both ways, of all connections together, from the first SYN until all were "
        "ready for messages: TCP, TLS, the protocol's login, and subscriptions. Absent, as all that connecting took, "
        "in a trial whose connections were made for an earlier one.",
    )
    setup_packets: Count | None = Field(default=None, description="Segments of them.")
    load_bytes: Count = Field(
        default=0,
        description="Bytes on the wire, both ways, of all connections together, from the start of the load to its "
        "end: messages, acknowledgements, and connections that were made anew.",
    )
    load_packets: Count = Field(default=0, description="Segments of them.")
    tcp_retransmits: Count = Field(default=0, description="Segments that the clients' connections sent again.")
    connect_nanoseconds: Nanoseconds | None = Field(
        default=None, description="From the start of the TCP connection to the broker's consent, TLS left out: mean."
    )
    tls_nanoseconds: Nanoseconds | None = Field(default=None, description="TLS handshake, mean of the connections.")
    session_nanoseconds: Nanoseconds = Field(
        default=0,
        description="From the first connection's start to the last message received; of kept ones from when the trial "
        "began.",
    )
    compress_nanoseconds: Nanoseconds = Field(default=0, description="Spent in compression, all messages.")
    encrypt_nanoseconds: Nanoseconds = Field(default=0, description="Spent in encryption, all messages.")
    decrypt_nanoseconds: Nanoseconds = Field(default=0, description="Spent in decryption, all messages.")
    decompress_nanoseconds: Nanoseconds = Field(default=0, description="Spent in decompression, all messages.")


class TcpActivity(Model):
    """What TCP did at the side that sent. The time in a state is an estimate from samples; events are counted."""

    samples: Count = Field(default=0, description="Samples of all connections.")
    states_parts_per_million: dict[Annotated[str, Field(max_length=16)], PartsPerMillion] = Field(
        default_factory=dict,
        json_schema_extra={"maxProperties": 5},
        description="Share of the samples in each state of congestion control: Open, Disorder, CWR, Recovery, Loss.",
    )
    events: dict[Annotated[str, Field(max_length=32)], Count] = Field(
        default_factory=dict,
        json_schema_extra={"maxProperties": 16},
        description="Counters of TcpExt in the sender's network namespace, by the kernel's names; zeros left out.",
    )


class Flow(Model):
    """What went one way in a trial, all streams together, as iperf3 says it. UDP's figures are absent with TCP."""

    bits_per_second: Count = Field(default=0, description="Payload that the receiver got, a second.")
    sent_bits_per_second: Count | None = Field(
        default=None, description="Payload that the sender gave to its kernel, a second."
    )
    received_bytes: Count = Field(default=0, description="Payload that the receiver got.")
    sent_bytes: Count = Field(default=0, description="Payload that the sender gave to its kernel.")
    retransmits: Count | None = Field(default=None, description="TCP segments that the sender sent again.")
    packets: Count | None = Field(default=None, description="UDP packets that the sender sent.")
    lost_packets: Count | None = Field(default=None, description="Of these, those that the receiver did not get.")
    out_of_order_packets: Count | None = Field(default=None, description="UDP packets received after a later one.")
    jitter_nanoseconds: Nanoseconds | None = Field(
        default=None, description="Of UDP, as RFC 3550 smooths it (section 6.4.1), mean of the streams."
    )
    tcp: TcpActivity | None = Field(default=None, description="What TCP did at the sender, where that was traced.")


class Echoes(Model):
    """What ping says of the requests of a trial, to three digits as it prints them."""

    sent: Count = Field(default=0, description="Echo requests sent.")
    received: Count = Field(default=0, description="Of these, those that were answered.")
    duplicated: Count = Field(default=0, description="Further answers.")
    minimum_nanoseconds: Nanoseconds | None = Field(default=None, description="The shortest round trip.")
    mean_nanoseconds: Nanoseconds | None = Field(default=None, description="Their mean.")
    maximum_nanoseconds: Nanoseconds | None = Field(default=None, description="The longest.")
    standard_deviation_nanoseconds: Nanoseconds | None = Field(
        default=None, description="Their standard deviation (of all, divided by n): what ping calls mdev."
    )


class ClientShare(Model):
    """What one of several clients that measured at once got."""

    client: int = Field(ge=0, le=15, description="Its place among the clients, from 0.")
    bits_per_second: Count = Field(default=0, description="Payload that its receivers got, both ways together.")
    retransmits: Count | None = Field(default=None, description="TCP segments that were sent again.")
    lost_packets: Count | None = Field(default=None, description="UDP packets that were lost.")
    failure: Failure | None = Field(default=None, description="Why it has no figures, if it has none.")


class Network(Model):
    """What the network did in one trial."""

    upload: Flow | None = Field(default=None, description="From client to server.")
    download: Flow | None = Field(default=None, description="From server to client.")
    ping: Echoes | None = Field(default=None, description="Echo requests before the load.")
    start_nanoseconds: Nanoseconds | None = Field(
        default=None, description="Of one of several clients: from their common start to the start of its load."
    )
    shares: tuple[ClientShare, ...] = Field(
        default=(), max_length=16, description="Of several clients together: what each got. No client prints it."
    )
    overlap_parts_per_million: PartsPerMillion | None = Field(
        default=None, description="Of several clients together: the share of the longest load in which all sent."
    )


class Histogram(Model):
    """A distribution of nanoseconds in sparse exponential buckets.

    Bucket `i` holds values v with 2^((i-1)/64) < v <= 2^(i/64): the indexing of Prometheus native histograms at
    schema 6, about 1 % wide.
    """

    scheme: Literal[6] = Field(default=HISTOGRAM_SCHEMA, alias="schema", description="Buckets a doubling: 2^schema.")
    count: Count = Field(default=0, description="Observations.")
    sum_nanoseconds: Nanoseconds = Field(default=0, description="Their sum.")
    indexes: tuple[Annotated[int, Field(ge=-512, le=4096)], ...] = Field(
        default=(), max_length=2048, description="Buckets that are not empty, ascending."
    )
    counts: tuple[Count, ...] = Field(default=(), max_length=2048, description="Observations in each of them.")

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if len(self.indexes) != len(self.counts) or self.count != sum(self.counts):
            raise ValueError("indexes, counts and count do not belong together")
        if any(one >= next_one for one, next_one in pairwise(self.indexes)):
            raise ValueError("indexes are not ascending")
        return self


class Distributions(Model):
    """Distributions within a trial."""

    download_duration: Histogram | None = Field(default=None, description="Time of each download that got every byte.")
    round_trip: Histogram | None = Field(
        default=None, description="From a message's intended send time to its arrival, on one clock."
    )
    round_trip_actual: Histogram | None = Field(
        default=None, description="The same from the time at which it was sent."
    )
    acknowledge: Histogram | None = Field(
        default=None, description="From the time at which a message was sent to the broker's acknowledgement."
    )
    ping: Histogram | None = Field(default=None, description="Round trip of each echo request that was answered.")


class PairShares(Model):
    """What each pair of publisher and subscriber had, in the order of their numbers."""

    received: tuple[Count, ...] = Field(
        default=(), max_length=256, description="Messages that the pair's subscriber received."
    )
    nanoseconds: tuple[Nanoseconds, ...] = Field(
        default=(), max_length=256, description="From the start of the load to the last of them."
    )

    @model_validator(mode="after")
    def _of_the_same_pairs(self) -> Self:
        if len(self.received) != len(self.nanoseconds):
            raise ValueError("received and nanoseconds are not of the same pairs")
        return self


class TrialFields(Model):
    """One repetition of a case."""

    trial: int = Field(ge=1, le=1000, description="Counts from 1, warm-up trials apart.")
    warmup: bool = Field(default=False, description="Whether it is one that is not counted.")
    outcome: Outcome = Field(description="Completed, however many retries it took, or Failed.")
    failure: Failure | None = Field(default=None, description="Why it failed.")
    start_time: str = Field(json_schema_extra={"format": "date-time"}, description="By the client's clock.")
    duration_nanoseconds: Nanoseconds = Field(
        description="Of a file transfer: from the first connection's start, names being known, to the slowest "
        "download's last byte; stalls, waits and retries included. Of an exchange: from the start of the load to the "
        "last message received, without subscribers acknowledged. Of a network: how long the sender sent."
    )
    client: ClientSample = Field(default=ClientSample(), description="What the trial cost the client.")
    server: ServerSample | None = Field(default=None, description="What the agent beside the server saw.")
    transfer: Transfer | None = Field(default=None, description="Of a file transfer: what the downloads did.")
    exchange: Exchange | None = Field(default=None, description="Of a broker: what publishers and subscribers did.")
    network: Network | None = Field(default=None, description="Of a network: what it carried.")


class Trace(Model):
    """TCP over time at one side that sent: JSON of a list for each figure of each connection, gzip, base64."""

    side: Literal["Client", "Server"] = Field(description="Which side it is of.")
    client: int = Field(default=0, ge=0, le=15, description="Of several clients which, from 0.")
    data: str = Field(max_length=262144, description="The samples.")


class TrialLine(TrialFields):
    """A trial, as the client prints it when it has ended."""

    contract: Literal[1]
    record: Literal["Trial"]
    case: CaseNumber
    distributions: Distributions = Field(default=Distributions(), description="Distributions within the trial.")
    pair_shares: PairShares | None = Field(default=None, description="Of a broker: what each pair had.")
    traces: tuple[Trace, ...] = Field(default=(), max_length=32, description="TCP over time, where that was traced.")


class TrialStartedLine(Model):
    """Printed when a trial begins, for those who watch."""

    contract: Literal[1]
    record: Literal["TrialStarted"]
    case: CaseNumber
    trial: int = Field(ge=1, le=1000)
    warmup: bool = False
    time: str = Field(json_schema_extra={"format": "date-time"})


class Engine(Model):
    """The program that made the load."""

    name: str = Field(max_length=63, description="Its name.")
    version: str = Field(max_length=63, description="Its version.")
    architecture: str = Field(max_length=32, description="As Go says it: amd64, arm64, arm.")


class Ending(Failure):
    """What ended a client early."""

    case: CaseNumber


class Seal(Model):
    """The termination message of a client: what its log must hold."""

    contract: Literal[1]
    trials: Count = Field(description="How many Trial lines were printed, warm-up included.")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="Of all Trial lines in order, newlines included.")
    failure: Ending | None = Field(default=None, description="What ended the program early.")
    engine: Engine


Line = Annotated[TrialLine | TrialStartedLine, Field(discriminator="record")]
