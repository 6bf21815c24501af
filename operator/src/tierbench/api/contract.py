"""What a client prints: the contract between engine and operator, version 1.

For each trial a client writes two JSON objects to standard output, one per line: `TrialStarted`, then `Trial`. Its
termination message is the `Seal`, with the number of Trial lines and their digest, so that a truncated log is detected.
It also holds the last Trial lines, for a node whose logs cannot be read. The termination message of a check pod of
`kubectl tierbench doctor` is a `CheckLine`.
Times are integer nanoseconds, ratios integer parts per million, sizes integer bytes. Fields that do not apply are
absent.
"""

from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Final, Literal, Self

from pydantic import Field, Strict, model_validator

from tierbench.api.measurements import Exchange, Failure, Network, Transfer
from tierbench.api.model import Count, Model, Nanoseconds, PartsPerMillion, Printable, Time
from tierbench.stats.distributions import SCHEMA

CONTRACT_VERSION: Final = 1

MAXIMUM_OUTPUT_BYTES: Final = 8 << 20
"""The part of a client's log that the operator reads. A kubelet keeps 10 MiB by default."""
MAXIMUM_TRIALS: Final = MAXIMUM_OUTPUT_BYTES // (40 << 10)
"""The maximum number of trials of a client, with its warm-up trials. A line with wide distributions has 40 KiB."""

MAXIMUM_SEAL_BYTES: Final = 4096
"""The part of a termination message that a kubelet keeps."""

ShortText = Annotated[Printable, Field(min_length=1, max_length=63)]


class Outcome(StrEnum):
    """How a trial ended."""

    COMPLETED = "Completed"
    FAILED = "Failed"


CaseNumber = Annotated[
    int,
    Strict(),
    Field(
        default=0,
        ge=0,
        json_schema_extra={"format": "int64"},
        description="Number of the case, if the client measures several cases.",
    ),
]

TrialNumber = Annotated[int, Strict(), Field(ge=1, le=1000)]


class Computer(Model):
    """The state of a computer during a trial. Fields that its kernel does not report are absent."""

    cpu_frequency_kilohertz: Count | None = Field(
        default=None, description="Mean frequency of the processors at the end of the load."
    )
    cpu_max_kilohertz: Count | None = Field(
        default=None, description="Mean of the maximum frequencies of the processors."
    )
    cpu_governor: ShortText | None = Field(
        default=None, description="Frequency governor of the processors, as the kernel names it."
    )
    power_mode: ShortText | None = Field(default=None, description="Power mode of a Jetson, as nvpmodel names it.")
    temperature_millidegrees: Count | None = Field(
        default=None,
        description="Temperature of the hottest thermal zone at the end of the load, in thousandths of a degree "
        "Celsius.",
    )
    thermal_throttles: Count | None = Field(
        default=None,
        description="How often processors were throttled because of heat during the trial, summed over the processors.",
    )
    quota_throttled_nanoseconds: Count | None = Field(
        default=None, description="How long a CPU quota throttled the process during the trial, summed over the CPUs."
    )
    interface: ShortText | None = Field(default=None, description="Network interface of the load.")
    mtu_bytes: Count | None = Field(default=None, description="MTU of this interface.")
    congestion_control: ShortText | None = Field(
        default=None, description="Congestion control algorithm of the TCP connections, as the kernel names it."
    )


class LinkSample(Model):
    """The imitated link of a client, as it measured it before its first trial. What it could not measure is absent."""

    round_trip_nanoseconds: Nanoseconds | None = Field(
        default=None, description="Median time of connections to the server's agent."
    )
    upload_bits_per_second: Count | None = Field(
        default=None, description="Rate of Ethernet frames of a transfer to the agent."
    )
    download_bits_per_second: Count | None = Field(
        default=None, description="Rate of Ethernet frames of a transfer from the agent."
    )


class ClientSample(Model):
    """The cost of a trial for the client."""

    cpu_nanoseconds: Nanoseconds = Field(default=0, description="User and system time of the engine's process.")
    cpu_limit_millicores: Count | None = Field(
        default=None,
        description="CPU that the engine could use, in thousandths: the minimum of its node, its cgroup and its "
        "threads.",
    )
    tuning: Printable | None = Field(
        default=None,
        max_length=63,
        description="The tuning of the engine. It is the same in all cases of a benchmark.",
    )
    computer: Computer | None = Field(default=None, description="State of the client's computer.")
    link: LinkSample | None = Field(default=None, description="The imitated link of the client, if it has one.")


class ServerSample(Model):
    """The samples of the agent next to the server during a trial.

    Fields that the node's kernel does not report are absent.
    """

    resident_before_parts_per_million: PartsPerMillion | None = Field(
        default=None, description="Share of the served file that was in the page cache at the start of the trial."
    )
    resident_after_parts_per_million: PartsPerMillion | None = Field(
        default=None, description="Share of the served file that was in the page cache at the end of the trial."
    )
    device_read_bytes: Count | None = Field(
        default=None, description="Bytes that the block device of the served files read."
    )
    io_wait_parts_per_million: PartsPerMillion | None = Field(
        default=None, description="Share of CPU time that the node waited for I/O."
    )
    io_pressure_parts_per_million: PartsPerMillion | None = Field(
        default=None, description="Share of time in which a task of the node waited for I/O (PSI)."
    )
    cpu_parts_per_million: PartsPerMillion | None = Field(
        default=None, description="Share of CPU time that the node was busy, without I/O wait."
    )
    process_cpu_nanoseconds: Nanoseconds | None = Field(
        default=None,
        description="User and system time of the server's process. Of several processes, that of the busiest one.",
    )
    tcp_retransmits: Count | None = Field(default=None, description="TCP segments that the sender retransmitted.")
    tcp_segments_sent: Count | None = Field(default=None, description="TCP segments that the sender sent.")
    round_trip_nanoseconds: Nanoseconds | None = Field(
        default=None, description="Mean of the sampled smoothed round-trip times of the sender."
    )
    round_trip_max_nanoseconds: Nanoseconds | None = Field(
        default=None, description="Maximum of the sampled smoothed round-trip times of the sender."
    )
    cpu_limit_millicores: Count | None = Field(
        default=None, description="CPU that the server could use, in thousandths: its quota, or its node without one."
    )
    memory_available_bytes: Count | None = Field(
        default=None,
        description="Memory that the page cache could use at the start of the trial. It is the available memory of "
        "the node, or the limit of the agent's container if that is less, because pages are charged to "
        "it.",
    )
    computer: Computer | None = Field(default=None, description="State of the server's computer.")


class Histogram(Model):
    """A distribution of nanoseconds in sparse exponential buckets.

    Bucket `i` contains values v with 2^((i-1)/64) < v <= 2^(i/64). This is the indexing of Prometheus native histograms
    with schema 6. Buckets are about 1% wide.
    """

    scheme: Literal[6] = Field(default=SCHEMA, alias="schema", description="Buckets per doubling: 2^schema.")
    count: Count = Field(default=0, description="Number of observations.")
    sum_nanoseconds: Nanoseconds = Field(default=0, description="Sum of the observations.")
    indexes: tuple[Annotated[int, Strict(), Field(ge=-512, le=4096)], ...] = Field(
        default=(), max_length=2048, description="Indexes of the buckets that are not empty, ascending."
    )
    counts: tuple[Count, ...] = Field(default=(), max_length=2048, description="Observations in each of these buckets.")

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if len(self.indexes) != len(self.counts) or self.count != sum(self.counts):
            raise ValueError("indexes, counts and count do not belong together")
        if any(one >= next_one for one, next_one in pairwise(self.indexes)):
            raise ValueError("indexes are not ascending")
        return self


class Distributions(Model):
    """Distributions within a trial."""

    download_duration: Histogram | None = Field(
        default=None, description="Time of each download or upload that ended with all bytes."
    )
    round_trip: Histogram | None = Field(
        default=None, description="Time from the intended sending of a message to its arrival, on one clock."
    )
    round_trip_actual: Histogram | None = Field(
        default=None, description="Time from the actual sending of a message to its arrival, on one clock."
    )
    acknowledge: Histogram | None = Field(
        default=None, description="Time from the actual sending of a message to the acknowledgement by the broker."
    )
    ping: Histogram | None = Field(default=None, description="Round trip of each answered echo request.")
    ping_under_load: Histogram | None = Field(
        default=None, description="Round trip of each answered echo request during the load."
    )


class PairShares(Model):
    """The messages of each pair of publisher and subscriber, in the order of their numbers."""

    received: tuple[Count, ...] = Field(
        default=(), max_length=256, description="Messages that the pair's subscriber received."
    )
    nanoseconds: tuple[Nanoseconds, ...] = Field(
        default=(), max_length=256, description="Time from the start of the load to the last of these messages."
    )

    @model_validator(mode="after")
    def _of_the_same_pairs(self) -> Self:
        if len(self.received) != len(self.nanoseconds):
            raise ValueError("received and nanoseconds are not of the same pairs")
        return self


class TrialFields(Model):
    """One repetition of a case."""

    trial: TrialNumber = Field(
        description="Number of the trial, counted from 1. Warm-up trials have numbers of their own."
    )
    warmup: bool = Field(default=False, description="Whether this is a warm-up trial.")
    outcome: Outcome = Field(description="Completed, however many retries it took, or Failed.")
    failure: Failure | None = Field(default=None, description="Why the trial failed.")
    start_time: Time = Field(description="When the trial started, by the client's clock.")
    duration_nanoseconds: Nanoseconds = Field(
        description="Duration of the trial. File transfer: from the start of the first connection, after the name "
        "lookup, to the last byte of the slowest download, including stalls and retries. Broker: from the start of "
        "the load to the last received message, or the last acknowledged one without subscribers. Network: the "
        "time for which the sender sent."
    )
    client: ClientSample = Field(default=ClientSample(), description="The cost of the trial for the client.")
    server: ServerSample | None = Field(default=None, description="The samples of the agent next to the server.")
    transfer: Transfer | None = Field(default=None, description="File transfer: the downloads.")
    exchange: Exchange | None = Field(default=None, description="Broker: the messages of publishers and subscribers.")
    network: Network | None = Field(default=None, description="Network: the traffic.")


class Trace(Model):
    """TCP over time at one sender: a JSON list per metric of each connection, compressed with gzip, in base64."""

    side: Literal["Client", "Server"] = Field(description="The sender that was sampled.")
    client: int = Field(
        default=0, ge=0, le=15, description="Number of the client, counted from 0, if there are several."
    )
    data: str = Field(max_length=262144, description="The samples.")


class TrialLine(TrialFields):
    """A trial, as the client prints it when the trial ends."""

    contract: Literal[1]
    record: Literal["Trial"]
    case: CaseNumber
    distributions: Distributions = Field(default=Distributions(), description="Distributions within the trial.")
    pair_shares: PairShares | None = Field(default=None, description="Broker: the messages of each pair.")
    traces: tuple[Trace, ...] = Field(default=(), max_length=32, description="TCP over time, if it was traced.")
    traces_left_out: bool = Field(
        default=False, description="Whether traces of the trial are left out. They would take the room of trials."
    )


class TrialStartedLine(Model):
    """A line that the client prints when a trial starts, for `kubectl tierbench watch`."""

    contract: Literal[1]
    record: Literal["TrialStarted"]
    case: CaseNumber
    trial: TrialNumber
    warmup: bool = False
    time: Time


class Engine(Model):
    """The program that makes the load."""

    name: Printable = Field(max_length=63, description="Name of the engine.")
    version: Printable = Field(max_length=63, description="Version of the engine.")
    architecture: Printable = Field(max_length=32, description="Architecture in Go's notation: amd64, arm64, arm.")


class ClientFailure(Failure):
    """Why a client ended early."""

    case: CaseNumber


class Seal(Model):
    """The termination message of a client. It says what the log must contain, and holds what fits of it."""

    contract: Literal[1]
    trials: Count = Field(description="Number of Trial lines that were printed, including warm-up trials.")
    sha256: str = Field(
        pattern=r"^[0-9a-f]{64}$", description="Digest of all Trial lines in order, including newlines."
    )
    failure: ClientFailure | None = Field(default=None, description="Why the program ended early.")
    engine: Engine
    lines: str = Field(
        default="",
        max_length=MAXIMUM_SEAL_BYTES,
        description="The last Trial lines without their traces, as many as fit, compressed by zlib, in base64.",
    )


MAXIMUM_PEERS: Final = 12
"""The number of peers whose outcomes fit into a termination message."""
OK: Final = "ok"
NOT_PERMITTED: Final = "not permitted"

_Outcome = Annotated[Printable, Field(default="", max_length=32)]


class ReachedPeer(Model):
    """How questions to a pod of a class ended: ok, or in a few words why not. What was not asked is empty."""

    name: Printable = Field(min_length=1, max_length=63, description="Name of the peer.")
    tcp: _Outcome = Field(description="TCP to the address of the pod.")
    udp: _Outcome = Field(description="UDP to the address of the pod.")
    ping: _Outcome = Field(description="Echo request to the address of the pod.")
    service: _Outcome = Field(description="TCP to the address of its Service.")
    node_port: _Outcome = Field(description="TCP to the port of its Service on its node.")
    dns: _Outcome = Field(description="Lookup of the name of its Service.")


class CheckLine(Model):
    """What a pod on a node found. Fields that its kernel does not report are absent."""

    contract: Literal[1]
    record: Literal["Check"]
    started_at: Time = Field(description="Clock of the node at the start.")
    ended_at: Time = Field(description="Clock of the node at the end.")
    architecture: Printable = Field(max_length=32, description="Architecture in Go's notation: amd64, arm64, arm.")
    cgroup_version: Count | None = Field(default=None, description="Version of the control groups: 1 or 2.")
    memory_cgroup: bool | None = Field(default=None, description="Whether control groups limit memory.")
    free_bytes: Count | None = Field(default=None, description="Free space of the disk for pods.")
    size_bytes: Count | None = Field(default=None, description="Size of the disk for pods.")
    ping: _Outcome = Field(description="Whether the kernel allows echo requests.")
    collector: _Outcome = Field(description="TLS connection to the collector.")
    peers: tuple[ReachedPeer, ...] = Field(default=(), max_length=MAXIMUM_PEERS, description="One per peer, in order.")
