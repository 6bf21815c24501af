"""What the check pod of `kubectl tierbench doctor` prints: one line, which is its termination message, too."""

from typing import Annotated, Final, Literal

from pydantic import Field

from tierbench.api.model import Count, Model, Printable, Time

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
