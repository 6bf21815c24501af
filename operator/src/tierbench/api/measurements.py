"""The measurements of a trial of each kind, and what the preflight measures of the network between two nodes."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from tierbench.api.model import Count, Model, Nanoseconds, OpenModel, PartsPerMillion, Printable, Reason, Time

MAXIMUM_PAIRS: Final = 64
MAXIMUM_OUTAGES: Final = 32


class Failure(Model):
    """The reason for a failure."""

    reason: Reason = Field(description="Reason as one CamelCase word that programs can compare.")
    message: Printable = Field(max_length=1024, description="Details for a person, and what to do next.")


class TransferDirection(StrEnum):
    """The direction of a file, as the client sees it."""

    UPLOAD = "Upload"
    DOWNLOAD = "Download"


class RetryCauses(Model):
    """Retries by cause."""

    stalled: Count = Field(
        default=0,
        alias="Stalled",
        description="For longer than the read timeout, no data came, or the server acknowledged none.",
    )
    truncated: Count = Field(
        default=0,
        alias="Truncated",
        description="The connection ended before the content did, or before the server answered.",
    )
    reset: Count = Field(default=0, alias="Reset", description="The connection was reset.")
    refused: Count = Field(default=0, alias="Refused", description="The connection was refused.")
    unreachable: Count = Field(default=0, alias="Unreachable", description="No connection within the read timeout.")
    server_error: Count = Field(default=0, alias="ServerError", description="A response with a status from 500 to 599.")
    corrupt: Count = Field(default=0, alias="Corrupt", description="Content with a wrong digest.")


class Transfer(Model):
    """The transfers of one trial: downloads or uploads."""

    direction: TransferDirection = Field(
        default=TransferDirection.DOWNLOAD, description="Direction of the file, as the client sees it."
    )
    bytes: Count = Field(
        default=0,
        description="Bytes of content received, each counted once. Of uploads, those of the files that the server has "
        "confirmed.",
    )
    downloads: Count = Field(default=0, description="Number of downloads or uploads, all at the same time.")
    retries: Count = Field(default=0, description="Retries of all transfers.")
    retry_causes: RetryCauses = Field(default=RetryCauses(), description="Retries by cause.")
    errors: Count = Field(default=0, description="Transfers that ended without all bytes.")
    lookup_nanoseconds: Nanoseconds = Field(
        default=0,
        description="Time to look up the server's name, once for all transfers and attempts, before the time of the "
        "trial starts. 0 if the client has an IP address.",
    )
    connect_nanoseconds: Nanoseconds | None = Field(
        default=None, description="Time to establish the TCP connection of the first attempt, mean of the transfers."
    )
    tls_nanoseconds: Nanoseconds | None = Field(
        default=None,
        description="Time of the TLS handshake of the first attempt, mean of the transfers. Absent without TLS.",
    )
    first_byte_nanoseconds: Nanoseconds | None = Field(
        default=None,
        description="Time from the written request to the first byte of the response, mean of the downloads. Absent "
        "for uploads: their response begins after the last byte.",
    )
    longest_stall_nanoseconds: Nanoseconds | None = Field(
        default=None,
        description="The longest time without data. Of uploads, the longest time in which the server acknowledged no "
        "data or wrote no response, to 10 ms.",
    )
    digest_verified: bool = Field(default=False, description="Whether the digest of the content was compared.")
    copied: bool | None = Field(
        default=None,
        description="Whether the client copied the content from the kernel, which TLS and digests need. Absent for "
        "uploads.",
    )
    cipher: Printable | None = Field(default=None, max_length=63, description="Cipher suite of TLS.")


class ExchangeErrors(Model):
    """Errors of publishers and subscribers, by cause."""

    disconnected: Count = Field(default=0, alias="Disconnected", description="Connections that broke.")
    refused: Count = Field(default=0, alias="Refused", description="Operations that the broker refused.")
    timed_out: Count = Field(default=0, alias="TimedOut", description="Acknowledgements that did not arrive in time.")
    corrupt: Count = Field(default=0, alias="Corrupt", description="Messages whose content differs from what was sent.")
    status_3xx: Count = Field(
        default=0, alias="Status3xx", description="Messages that an HTTP server answered by a redirection."
    )
    status_4xx: Count = Field(
        default=0,
        alias="Status4xx",
        description="Messages that an HTTP server answered by an error of the client, such as 404 or 429.",
    )
    status_5xx: Count = Field(
        default=0,
        alias="Status5xx",
        description="Messages that an HTTP server answered by an error of its own, such as 503.",
    )


class Exchange(Model):
    """The work of the publishers and subscribers of one trial, all pairs together. sent = received + lost.

    If several subscribers receive every message, it counts once for each of them: received + lost = sent × subscribers.
    Without subscribers, the fields about receiving are absent.
    """

    pairs: Count = Field(default=0, description="Number of pairs of publisher and subscriber, or of groups.")
    sent: Count = Field(default=0, description="Messages that publishers sent, each counted once.")
    received: Count | None = Field(
        default=None, description="Sent messages that subscribers received. Absent without subscribers."
    )
    lost: Count = Field(default=0, description="Sent messages that subscribers did not receive.")
    acknowledged: Count = Field(
        default=0,
        description="Sent messages that the broker acknowledged. Without subscribers, and with AtMostOnce, those that "
        "the broker had received when the client asked after the last message.",
    )
    acknowledged_bytes: Count = Field(
        default=0,
        description="Without subscribers: payload of the acknowledged messages, before compression and encryption.",
    )
    acknowledged_lost: Count = Field(
        default=0, description="Messages that the broker acknowledged and that never arrived."
    )
    duplicated: Count = Field(default=0, description="Further copies of messages that subscribers received.")
    out_of_order: Count = Field(default=0, description="Messages received after one that was sent later.")
    retried: Count = Field(default=0, description="Messages that were sent again.")
    reconnects: Count = Field(default=0, description="Connections that were established again.")
    errors: Count = Field(default=0, description="Errors of all causes.")
    error_causes: ExchangeErrors = Field(default=ExchangeErrors(), description="Errors by cause.")
    late_sends: Count = Field(
        default=0, description="Messages sent later than intended, by more than a tenth of the interval or by 1 ms."
    )
    unsent: Count = Field(
        default=0,
        description="Messages that were due before the load ended and were not sent. `sent` does not contain them.",
    )
    discarded: Count = Field(
        default=0,
        description="Messages received, or without subscribers acknowledged, before the steady state. They are "
        "counted, and no distribution contains them.",
    )
    steady: bool | None = Field(
        default=None, description="Whether the trial reached a steady state. Absent for few messages."
    )
    cipher: Printable | None = Field(default=None, max_length=63, description="Cipher suite of TLS.")
    tls_handshakes: Count = Field(
        default=0,
        description="TLS handshakes of the clients' connections, including those of reconnects. Only the engine Native "
        "counts them.",
    )
    resumed_handshakes: Count = Field(
        default=0, description="TLS handshakes that resumed the session of an earlier connection."
    )
    batches: Count = Field(default=0, description="Batches that a broker with batches accepted, of all publishers.")
    batch_bytes: Count = Field(
        default=0, description="Bytes of the messages in batches, after compression by the broker's codec."
    )
    sent_bytes: Count = Field(default=0, description="Payload sent, before compression and encryption.")
    received_bytes: Count = Field(default=0, description="Payload received, after decryption and decompression.")
    encoded_bytes: Count = Field(default=0, description="Payload sent, after compression and encryption.")
    wire_sent_bytes: Count = Field(
        default=0,
        description="Bytes that the clients' connections sent, with the headers of Ethernet, IP and TCP, TLS and "
        "retransmissions. They count from the first SYN to the last acknowledgement before the close. For "
        "kept connections they count from the start to the end of the trial.",
    )
    wire_received_bytes: Count = Field(
        default=0, description="Bytes that these connections received, counted in the same way."
    )
    wire_sent_packets: Count = Field(
        default=0,
        description="TCP segments that these connections sent, including the SYN, acknowledgements without data and "
        "retransmissions.",
    )
    wire_received_packets: Count = Field(default=0, description="TCP segments that these connections received.")
    connections: Count = Field(
        default=0,
        description="Connections at the start of the trial, new or kept, and those for a single message. Several "
        "connections of one Kafka client count as one.",
    )
    setup_bytes: Count | None = Field(
        default=None,
        description="Bytes on the wire in both directions from the first SYN until all connections were ready for "
        "messages. They include TCP, TLS, the login of the protocol, and subscriptions. A connection for a "
        "single message counts here until it is ready, and in the load as a whole. Absent in a trial that uses the "
        "connections of an earlier one.",
    )
    setup_packets: Count | None = Field(default=None, description="TCP segments of the connection setup.")
    load_bytes: Count = Field(
        default=0,
        description="Bytes on the wire in both directions from the start to the end of the load: messages, "
        "acknowledgements, and reconnects.",
    )
    load_packets: Count = Field(default=0, description="TCP segments of the load.")
    tcp_retransmits: Count = Field(default=0, description="TCP segments that the clients' connections retransmitted.")
    connect_nanoseconds: Nanoseconds | None = Field(
        default=None,
        description="Time from the start of the TCP connection until the broker accepts it, without TLS, as the mean "
        "of the connections.",
    )
    tls_nanoseconds: Nanoseconds | None = Field(
        default=None, description="Time of the TLS handshake, mean of the connections."
    )
    session_nanoseconds: Nanoseconds = Field(
        default=0,
        description="Time from the start of the first connection to the last received message. For kept connections it "
        "counts from the start of the trial.",
    )
    compress_nanoseconds: Nanoseconds = Field(default=0, description="Time spent compressing all messages.")
    encrypt_nanoseconds: Nanoseconds = Field(default=0, description="Time spent encrypting all messages.")
    decrypt_nanoseconds: Nanoseconds = Field(default=0, description="Time spent decrypting all messages.")
    decompress_nanoseconds: Nanoseconds = Field(default=0, description="Time spent decompressing all messages.")


class TcpActivity(Model):
    """TCP at the sender. Times in a state are estimates from samples; events are counted."""

    samples: Count = Field(default=0, description="Samples of all connections.")
    states_parts_per_million: dict[Annotated[Printable, Field(max_length=16)], PartsPerMillion] = Field(
        default_factory=dict,
        json_schema_extra={"maxProperties": 5},
        description="Share of the samples in each state of congestion control: Open, Disorder, CWR, Recovery, Loss.",
    )
    events: dict[Annotated[Printable, Field(max_length=32)], Count] = Field(
        default_factory=dict,
        json_schema_extra={"maxProperties": 16},
        description="Counters of TcpExt in the sender's network namespace, by the names of the kernel, without zeros.",
    )


class Flow(Model):
    """The traffic in one direction of a trial, all streams or connections together.

    Fields about UDP are absent with TCP.
    """

    bits_per_second: Count = Field(default=0, description="Payload that the receiver got, per second.")
    sent_bits_per_second: Count | None = Field(default=None, description="Payload that the sender wrote, per second.")
    received_bytes: Count = Field(default=0, description="Payload that the receiver got.")
    sent_bytes: Count = Field(default=0, description="Payload that the sender wrote.")
    retransmits: Count | None = Field(default=None, description="TCP segments that the sender retransmitted.")
    packets: Count | None = Field(default=None, description="UDP packets that the sender sent.")
    lost_packets: Count | None = Field(default=None, description="UDP packets that the receiver did not get.")
    out_of_order_packets: Count | None = Field(default=None, description="UDP packets received after a later one.")
    jitter_nanoseconds: Nanoseconds | None = Field(
        default=None, description="Jitter of UDP with the smoothing of RFC 3550 (section 6.4.1), mean of the streams."
    )
    tcp: TcpActivity | None = Field(default=None, description="TCP at the sender, if it was traced.")


class Echoes(Model):
    """Statistics of the echo requests of a trial, with the three digits that ping prints."""

    sent: Count = Field(default=0, description="Echo requests sent.")
    received: Count = Field(default=0, description="Echo requests that were answered.")
    duplicated: Count = Field(default=0, description="Duplicate answers.")
    min_nanoseconds: Nanoseconds | None = Field(default=None, description="The shortest round trip.")
    mean_nanoseconds: Nanoseconds | None = Field(default=None, description="The mean round trip.")
    max_nanoseconds: Nanoseconds | None = Field(default=None, description="The longest round trip.")
    standard_deviation_nanoseconds: Nanoseconds | None = Field(
        default=None, description="Standard deviation of the round trips, divided by n: mdev in the output of ping."
    )


class ClientShare(Model):
    """The share of one of several clients that measured at the same time."""

    client: int = Field(ge=0, le=15, description="Number of the client, counted from 0.")
    bits_per_second: Count = Field(
        default=0, description="Payload that its receivers got, in both directions, per second."
    )
    retransmits: Count | None = Field(default=None, description="TCP segments that were retransmitted.")
    lost_packets: Count | None = Field(default=None, description="UDP packets that were lost.")
    failure: Failure | None = Field(default=None, description="Why the client has no measurements.")


class Network(Model):
    """The network in one trial."""

    upload: Flow | None = Field(default=None, description="Traffic from client to server.")
    download: Flow | None = Field(default=None, description="Traffic from server to client.")
    ping: Echoes | None = Field(default=None, description="Echo requests before the load.")
    ping_under_load: Echoes | None = Field(default=None, description="Echo requests during the load.")
    start_nanoseconds: Nanoseconds | None = Field(
        default=None, description="For one of several clients: time from the common start to the start of its load."
    )
    shares: tuple[ClientShare, ...] = Field(
        default=(),
        max_length=16,
        description="For several clients together: the share of each one. Clients do not print it.",
    )
    overlap_parts_per_million: PartsPerMillion | None = Field(
        default=None, description="For several clients together: share of the longest load in which all clients sent."
    )


class EchoSpread(Echoes):
    """Echo requests, with percentiles of their round trips."""

    p50_nanoseconds: Nanoseconds | None = Field(default=None, description="Median round trip.")
    p90_nanoseconds: Nanoseconds | None = Field(default=None, description="90th percentile of the round trips.")
    p99_nanoseconds: Nanoseconds | None = Field(default=None, description="99th percentile of the round trips.")


class TcpRate(Model):
    """The traffic of one TCP connection in one direction."""

    bits_per_second: Count = Field(description="Payload that the receiver got, per second.")
    retransmits: Count = Field(default=0, description="TCP segments that the sender retransmitted.")


class NodeNetwork(OpenModel):
    """The network between the nodes of a server and a client. Each direction is measured while the network is idle."""

    server_node: str = Field(max_length=253, description="Node of the server.")
    client_node: str = Field(max_length=253, description="Node of the client.")
    server_access_network: str = Field(
        default="", max_length=63, description="Access network in the server's NodeClass."
    )
    client_access_network: str = Field(
        default="", max_length=63, description="Access network in the client's NodeClass."
    )
    ping: EchoSpread | None = Field(default=None, description="Echo requests before the load.")
    upload: TcpRate | None = Field(default=None, description="Traffic from client to server.")
    download: TcpRate | None = Field(default=None, description="Traffic from server to client.")
    reason: Reason | None = Field(default=None, description="Why a measurement is missing, as one CamelCase word.")
    message: Annotated[str, Field(max_length=512)] | None = Field(
        default=None, description="Details for a person, and what to do next."
    )


class Outage(OpenModel):
    """A time for which a node of the run was not Ready."""

    node: str = Field(max_length=253, description="Name of the node.")
    start_time: Time = Field(description="When it stopped being Ready, by the clock of the control plane.")
    end_time: Time | None = Field(default=None, description="When it was Ready again. Absent while it is not.")
