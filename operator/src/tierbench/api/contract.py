"""What a client prints: the contract between engine and operator, version 1.

A client writes one JSON object a line to standard output: `TrialStarted`, then `Trial`, for each trial. Its termination
message is the `Seal`: how many Trial lines there were and their digest, so that a log cut short is seen. All times are
integer nanoseconds, ratios integer parts per million, sizes integer bytes. Fields that do not apply are left out.
"""

from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from tierbench.api.measurements import Exchange, Failure, Network, Transfer
from tierbench.api.model import Count, Model, Nanoseconds, PartsPerMillion
from tierbench.stats.histogram import SCHEMA

CONTRACT_VERSION: Final = 1

Word = Annotated[str, Field(min_length=1, max_length=63)]


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


class Computer(Model):
    """A computer during a trial. Absent fields are what its kernel does not tell."""

    cpu_frequency_kilohertz: Count | None = Field(
        default=None, description="Mean frequency of its processors as the load ended."
    )
    cpu_maximum_kilohertz: Count | None = Field(default=None, description="Mean of the highest that they can have.")
    cpu_governor: Word | None = Field(default=None, description="Who sets their frequency, as the kernel names it.")
    power_mode: Word | None = Field(default=None, description="The power mode of a Jetson, as nvpmodel names it.")
    temperature_millidegrees: Count | None = Field(
        default=None, description="Of its hottest thermal zone as the load ended, in thousandths of a degree Celsius."
    )
    thermal_throttles: Count | None = Field(
        default=None, description="How often processors were slowed for their heat during the trial, each counted."
    )
    quota_throttled_nanoseconds: Count | None = Field(
        default=None, description="How long a quota of CPU held the process back in the trial, added up over CPUs."
    )
    interface: Word | None = Field(default=None, description="The network interface that the load went through.")
    mtu_bytes: Count | None = Field(default=None, description="Its MTU.")
    congestion_control: Word | None = Field(default=None, description="Of its TCP connections, as the kernel names it.")


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


class Histogram(Model):
    """A distribution of nanoseconds in sparse exponential buckets.

    Bucket `i` holds values v with 2^((i-1)/64) < v <= 2^(i/64): the indexing of Prometheus native histograms at
    schema 6, about 1 % wide.
    """

    scheme: Literal[6] = Field(default=SCHEMA, alias="schema", description="Buckets a doubling: 2^schema.")
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
