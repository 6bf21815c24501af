"""Where publishers and subscribers of a BrokerBenchmark run, and as what program."""

from enum import StrEnum

from pydantic import Field

from tierbench.api.benchmark import Clients
from tierbench.api.model import ClassName, Model, Rule, rules


class EngineType(StrEnum):
    """The program that makes the load."""

    NATIVE = "Native"
    PAHO = "Paho"


class Connections(StrEnum):
    """How long the connections of publishers and subscribers last."""

    EACH_TRIAL = "EachTrial"
    KEPT = "Kept"


class NoSubscribers(Model):
    """Nobody subscribes: what is measured is publishing alone."""


class Subscribers(Model):
    """Where subscribers run, if not in the publishers' pods: exactly one of the two."""

    node_class: ClassName | None = Field(
        default=None, description="A node class. Its subscribers send each message back."
    )
    none: NoSubscribers | None = Field(default=None, description="Nowhere: publishing alone is measured.")

    def __str__(self) -> str:
        """Where, in a word."""
        return self.node_class or "None"


_ONE_PLACE = Rule(
    "has(self.nodeClass) != has(self.none)",
    "give exactly one of nodeClass and none, for example {nodeClass: user} or {none: {}}",
)


class BrokerClients(Clients):
    """Where publishers and subscribers run."""

    pods: int = Field(
        default=1,
        ge=1,
        le=16,
        description="Over how many pods the pairs are spread, on as many nodes of the class as there are.",
    )
    subscribers: Subscribers | None = Field(
        default=None,
        json_schema_extra=rules(_ONE_PLACE),
        description="A node class for the subscribers; without it each pair is in one pod. Apart, a round trip is "
        "there and back: each message is sent back by its subscriber. With none: {} there are no subscribers.",
    )
    connections: Connections = Field(
        default=Connections.EACH_TRIAL,
        description="EachTrial: made anew for each trial. Kept: made for the first trial of a case, and kept for all "
        "others of the same client; what connecting takes is then known of that one alone.",
    )
    engine: EngineType = Field(
        default=EngineType.NATIVE,
        description="Native (one static program), or Paho (Python's client, for what a Python device sees).",
    )

    @property
    def alone(self) -> bool:
        """Whether nobody subscribes."""
        return self.subscribers is not None and self.subscribers.none is not None
