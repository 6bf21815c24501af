"""Groups of a BrokerBenchmark: several publishers and subscribers that have one topic, in place of a pair."""

from collections.abc import Sequence
from typing import Any, Final

from pydantic import Field

from tierbench.api.model import Rule, levels
from tierbench.api.trial_plan import PlannedGroup, Subscription
from tierbench.workloads.plan import Case, Factor

GROUPS: Final = "groups"
_MOST_CONNECTIONS: Final = 1024
_SHORT: Final = [size for number in range(2, 8) for size in (f"dyn({number})", f"dyn('{number}')")]


class Group(PlannedGroup):
    """The publishers and subscribers of a topic."""

    def __str__(self) -> str:
        """Returns the level: 8:1 for eight publishers and a subscriber, 4:2 Shared."""
        shared = f" {self.subscription}" if self.subscription is Subscription.SHARED else ""
        return f"{self.publishers}:{self.subscribers}{shared}"

    @property
    def deliveries(self) -> int:
        """The deliveries of a message of each publisher, all publishers together."""
        return self.publishers * (1 if self.subscription is Subscription.SHARED else self.subscribers)


Groups = tuple[Group, ...]
PAIR: Final = Group()


def groups_field() -> Any:
    """Returns the field for groups."""
    return Field(
        default=(),
        max_length=8,
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["publishers", "subscribers", "subscription"],
        },
        description="Numbers of publishers and subscribers that have one topic (a factor). pairs is then the "
        "number of such groups. Without groups, a topic has one publisher and one subscriber.",
    )


def group_factors(groups: Groups) -> tuple[Factor, ...]:
    """Returns the groups as a factor. Without groups there is none."""
    return (Factor(GROUPS, tuple(map(str, groups))),) if groups else ()


def group_of(groups: Groups, case: Case) -> Group:
    """Returns the group of a case, which is a pair if the spec has no groups."""
    return next((group for group in groups if str(group) == case.levels.get(GROUPS)), PAIR)


def most_publishers(groups: Groups) -> int:
    """Returns the maximum number of publishers of a topic."""
    return max((group.publishers for group in groups), default=1)


def most_deliveries(groups: Groups) -> int:
    """Returns the maximum number of deliveries that a message of each publisher of a topic makes."""
    return max((group.deliveries for group in groups), default=1)


def group_rules(is_kafka: str) -> Sequence[Rule]:
    """Returns the rules on groups. `is_kafka` is the CEL expression that the broker `b` is a Kafka."""
    return (
        Rule(
            "size(self.groups) == 0 || self.clients.engine == 'Native'",
            "groups need clients.engine: Native: write Native, or remove groups",
        ),
        Rule(
            "size(self.groups) == 0 || self.clients.subscribers.type == 'WithPublishers'",
            "groups have their subscribers in the pods of their publishers: remove clients.subscribers, or remove "
            "groups",
        ),
        Rule(
            f"!self.groups.exists(g, g.subscription == 'Shared') || !self.brokers.exists(b, {is_kafka})",
            "groups with subscription: Shared are only for MQTT: write subscription: Each, or measure Kafka in another "
            "benchmark",
        ),
        Rule(
            f"self.groups.all(g, self.pairs.all(p, p * (g.publishers + g.subscribers) <= {_MOST_CONNECTIONS}))",
            f"pairs and groups make more than {_MOST_CONNECTIONS} connections in a case: lower pairs, or the numbers "
            "of publishers and subscribers",
        ),
        Rule(
            "!self.groups.exists(g, g.publishers > 1) || !has(self.payload.sizes)"
            f" || self.payload.sizes.all(a, !(a in [{', '.join(_SHORT)}]))",
            "messages of several publishers need 8 bytes, to say whose they are: write payload.sizes of at least 8, or "
            "groups with one publisher",
        ),
    )


GROUP_CASES: Final = levels("self.groups")
"""The CEL expression for the number of levels of the groups."""
