"""What the command line asks for."""

from dataclasses import dataclass

from .agent import Agent
from .tls import Context


@dataclass(frozen=True)
class Target:
    """The broker, and how to be let in."""

    host: str
    port: int
    tls: Context | None
    username: str | None
    password: str | None


@dataclass(frozen=True)
class Message:
    """What is sent, and how."""

    size: int
    content: str
    seed: int
    qos: int
    compression: str
    key: bytes | None


@dataclass(frozen=True)
class Pacing:
    """When a publisher sends. `window` bounds its messages under way; without an interval nothing else does."""

    window: int
    interval_nanoseconds: float | None

    @property
    def late_nanoseconds(self) -> float | None:
        """Later than intended by more than this is late."""
        return None if self.interval_nanoseconds is None else max(self.interval_nanoseconds / 10, 1e6)


@dataclass(frozen=True)
class Load:
    """How much a publisher sends in a trial: exactly one of the two."""

    messages: int | None
    seconds: int | None


@dataclass(frozen=True)
class Barrier:
    """Where the parts of this client wait for one another."""

    name: str
    part: int
    parts: int


@dataclass(frozen=True)
class Options:
    """All of it."""

    target: Target
    topic: str
    first_trial: int
    last_trial: int
    warmup: int
    pairs: range
    role: str
    message: Message
    pacing: Pacing
    load: Load
    patience_nanoseconds: int
    ready_seconds: float
    agent: Agent | None
    barrier: Barrier
