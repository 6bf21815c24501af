"""What the trial plan asks for."""

from dataclasses import dataclass
from pathlib import Path

from .agent import Agent
from .schedule import Schedule
from .tls import Context


@dataclass(frozen=True)
class Target:
    """The broker, and how to be let in."""

    host: str
    port: int
    tls: Context | None
    username: str | None
    password: str | None
    message_bytes: int  # of the largest message


@dataclass(frozen=True)
class Message:
    """What is sent, and how: the files of a folder, or so many bytes of a kind."""

    folder: Path | None
    size: int
    content: str
    seed: int
    qos: int
    compression: str
    key: bytes | None


@dataclass(frozen=True)
class Pacing:
    """When a publisher sends. `window` limits its messages in flight.

    `unacknowledged` bounds those without acknowledgement."""

    window: int
    interval_nanoseconds: float | None = None
    unacknowledged: int | None = None

    def schedule(self, started: int, phase: float, load: "Load") -> Schedule | None:
        """When messages are due of a load that started at a time; None in a closed loop."""
        interval = self.interval_nanoseconds
        if interval is None:
            return None
        longest = interval if load.nanoseconds is None else min(interval, load.nanoseconds)
        return Schedule(started + int(phase * longest), interval)

    @property
    def late_nanoseconds(self) -> int:
        """Later than intended by more than this is late; in a closed loop nothing is."""
        return max(round((self.interval_nanoseconds or 0) / 10), 1_000_000)


@dataclass(frozen=True)
class Load:
    """How much a publisher sends in a trial: exactly one of the two."""

    messages: int | None
    seconds: float | None

    @property
    def nanoseconds(self) -> int | None:
        """How long it lasts, if it is not so many messages."""
        return None if self.seconds is None else round(self.seconds * 1e9)


@dataclass(frozen=True)
class Barrier:
    """Where the parts of this client wait for one another."""

    name: str
    part: int
    parts: int


@dataclass(frozen=True)
class Options:
    """All of it, for one broker. `case` is 0 where there is but one; the deadline is of all its trials together."""

    target: Target
    topic: str
    case: int
    deadline_seconds: int | None
    pairs: range
    role: str
    message: Message
    pacing: Pacing
    load: Load
    timeout_nanoseconds: int
    ready_seconds: float
    warm_rounds: int  # at most
    agent: Agent | None
    tuning: str
    keeps_connections: bool  # from trial to trial
    barrier: Barrier
