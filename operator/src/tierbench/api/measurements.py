"""What a trial of each kind measures, and what the preflight measures of the network between two nodes."""

from typing import Annotated, Final

from pydantic import Field

from tierbench.api.model import Count, Model, Nanoseconds, OpenModel, PartsPerMillion, Reason

MAXIMUM_PAIRS: Final = 64


class Failure(Model):
    """Why something ended without what was asked for."""

    reason: Reason = Field(description="One CamelCase word that programs can compare.")
    message: str = Field(max_length=1024, description="The same for a person, and what to do next.")


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


class EchoSpread(Echoes):
    """Echo requests, with percentiles of their round trips."""

    p50_nanoseconds: Nanoseconds | None = Field(default=None, description="Median.")
    p90_nanoseconds: Nanoseconds | None = Field(default=None, description="90th percentile.")
    p99_nanoseconds: Nanoseconds | None = Field(default=None, description="99th percentile.")


class TcpRate(Model):
    """What one connection of TCP carried one way."""

    bits_per_second: Count = Field(description="Payload that the receiver got, a second.")
    retransmits: Count = Field(default=0, description="Segments that the sender sent again.")


class NodeNetwork(OpenModel):
    """The network between a server's and a client's node, each way by itself, and nothing else on the way."""

    server_node: str = Field(max_length=253, description="The server's node.")
    client_node: str = Field(max_length=253, description="The client's.")
    server_access_network: str = Field(default="", max_length=63, description="As the server's NodeClass says.")
    client_access_network: str = Field(default="", max_length=63, description="As the client's NodeClass says.")
    ping: EchoSpread | None = Field(default=None, description="Echo requests before the load.")
    upload: TcpRate | None = Field(default=None, description="From client to server.")
    download: TcpRate | None = Field(default=None, description="From server to client.")
    reason: Reason | None = Field(default=None, description="Why something is missing, as one CamelCase word.")
    message: Annotated[str, Field(max_length=512)] | None = Field(
        default=None, description="The same for a person, and what to do next."
    )
