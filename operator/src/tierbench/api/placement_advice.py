"""PlacementAdvice: on which class of node, and with which settings, should a service run, by the results there are?"""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import Field, JsonValue, ValidationError, field_validator

from tierbench.api.benchmark import Delivery
from tierbench.api.contract import Count, Reason
from tierbench.api.effects import MOST_EFFECTS, MOST_KNEES, Alternative, FactorEffect, FactorKnee, Text
from tierbench.api.limits import Limits
from tierbench.api.model import MOST_SIZES, ClassName, Column, Conditions, Kind, Model, Resource, Rule, Size, rules
from tierbench.api.node_class import SelectorOperator
from tierbench.api.result import Level, Note

_SET: Final[dict[str, JsonValue]] = {"x-kubernetes-list-type": "set"}
MOST_ALTERNATIVES: Final = 64
"""That are ranked."""


class Dimension(StrEnum):
    """What can be chosen. Sizes, contents and rates are the workload's, and what a client is like is its own."""

    NODE_CLASS = "nodeClass"
    BROKER = "broker"
    IMAGE = "image"
    CODEC = "codec"
    COMPRESSION = "compression"
    ENCRYPTION = "encryption"
    TLS = "tls"
    DELIVERY = "delivery"
    PROTOCOL = "protocol"
    ACCESS = "access"
    STORAGE = "storage"
    PAIRS = "pairs"
    CONCURRENCY = "concurrency"
    STREAMS = "streams"
    PARTITIONS = "partitions"
    LINGER = "lingerMilliseconds"
    BATCH_SIZE = "batchSize"


class ObjectiveType(StrEnum):
    """What makes an alternative the best one."""

    MEAN_TIME = "MeanTime"
    PERCENTILE = "Percentile"
    THROUGHPUT = "Throughput"
    RETRIES = "Retries"


class Percentile(StrEnum):
    """A percentile that results have."""

    P50 = "P50"
    P90 = "P90"
    P99 = "P99"


class Objective(Model):
    """What alternatives are ranked by."""

    type: ObjectiveType = Field(
        description="MeanTime, or Percentile of the time that the benchmark's kind is read by (a transfer's, a round "
        "trip's, an echo request's); Throughput; or Retries a trial."
    )
    percentile: Percentile | None = Field(default=None, description="With Percentile: P50 (the median), P90 or P99.")


class WeightedSize(Model):
    """A file size and how much it counts."""

    size: Size
    weight: int = Field(default=1, ge=1, le=1000000, description="How often it is asked for, against the others.")


class WorkloadProfile(Model):
    """What the service will have to do. Each level must have been measured: nothing is guessed between levels."""

    file_sizes: tuple[WeightedSize, ...] = Field(
        default=(), max_length=MOST_SIZES, description="Of file transfers: the sizes of the files."
    )
    payload_size: Size | None = Field(default=None, description="Of brokers: the size of a message.")
    delivery: Delivery | None = Field(default=None, description="Of brokers: how hard a message is delivered.")
    messages_per_second: int | None = Field(
        default=None,
        ge=1,
        le=10**7,
        description="Of brokers: what each publisher sends a second, as results have it by their pacing.",
    )
    levels: dict[str, Level] = Field(
        default={},
        json_schema_extra={"maxProperties": 24},
        description="The level of any other factor, by the factor's name: {tls: TLSv1.3}. Levels of factors that are "
        "not named here count equally.",
    )


class Benchmarks(Model):
    """Which results count: those that meet all that is given here."""

    names: tuple[Annotated[str, Field(min_length=1, max_length=253)], ...] = Field(
        default=(), max_length=64, json_schema_extra=_SET, description="Names of benchmarks; none means all."
    )
    match_labels: dict[str, Level] = Field(
        default={}, json_schema_extra={"maxProperties": 16}, description="Labels that a result must bear."
    )


class Constraints(Limits):
    """What an alternative must keep to at each level of the workload, or it is Infeasible."""

    architectures: tuple[Annotated[str, Field(min_length=1, max_length=32)], ...] = Field(
        default=(),
        max_length=8,
        json_schema_extra=_SET,
        description="Architectures that the service is built for, as in amd64, arm64, arm; none means any.",
    )


_ONE_WORKLOAD = Rule(
    "size(self.fileSizes) == 0 || !(has(self.payloadSize) || has(self.delivery) || has(self.messagesPerSecond))",
    "mixes files and messages: give fileSizes, or payloadSize, delivery and messagesPerSecond; make two advices",
)
_SOME_WORKLOAD = Rule(
    "size(self.fileSizes) + size(self.levels) > 0 || has(self.payloadSize) || has(self.delivery)"
    " || has(self.messagesPerSecond)",
    "names no level: give fileSizes, as in [{size: 512Mi}], or leave workload out to rank by throughput",
)
_PERCENTILE = Rule(
    "(self.type == 'Percentile') == has(self.percentile)",
    "a percentile goes with type Percentile, and with no other: write {type: Percentile, percentile: P99} "
    "or {type: MeanTime}",
)


_EITHER = Rule(
    "!has(self.workload) || !self.choose.exists(one, one in self.workload.levels"
    " || (one == 'delivery' && has(self.workload.delivery)))",
    "fixes in workload what choose is to choose: leave it out of one of them",
)


class PlacementAdviceSpec(Model):
    """The question."""

    choose: tuple[Dimension, ...] = Field(
        default=(Dimension.NODE_CLASS,),
        min_length=1,
        max_length=3,
        json_schema_extra=_SET,
        description=f"What to choose: one to three of {', '.join(Dimension)}. Alternatives are their combinations. "
        "What is not chosen is weighted by the workload, or compared level by level; a server's class, too.",
    )

    benchmarks: Benchmarks = Field(default=Benchmarks(), description="Which results count; by default all.")
    client_class: ClassName = Field(description="The node class that will use the service.")
    workload: WorkloadProfile | None = Field(
        default=None,
        json_schema_extra=rules(_ONE_WORKLOAD, _SOME_WORKLOAD),
        description="What the service will have to do. Without it every measured level counts equally.",
    )
    objective: Objective | None = Field(
        default=None,
        json_schema_extra=rules(_PERCENTILE),
        description="What alternatives are ranked by; by default MeanTime with a workload, and Throughput without.",
    )
    constraints: Constraints = Field(default=Constraints(), description="What an alternative must keep to.")
    smallest_margin: Annotated[str, Field(pattern=r"^(0|[1-9][0-9]?)(\.[0-9]{1,2})?%$", max_length=6)] = Field(
        default="5%",
        description="The smallest difference that is worth having, as in 5%: what differs by less is equal, "
        "and an alternative is best only by more.",
    )


class Verdict(StrEnum):
    """What is said of an alternative."""

    BEST = "Best"
    EQUAL = "Equal"
    NOT_KNOWN = "NotKnown"
    WORSE = "Worse"
    INFEASIBLE = "Infeasible"
    NO_DATA = "NoData"


class Confidence(StrEnum):
    """How far a Best can be relied on."""

    HIGH = "High"
    MODERATE = "Moderate"
    LOW = "Low"
    NONE = "None"


_INT64: Final[dict[str, JsonValue]] = {"format": "int64"}


class Ranked(Model):
    """An alternative, and what is said of it."""

    name: Alternative = Field(description="The alternative: a node class, or what is chosen in words.")
    verdict: Verdict = Field(
        description="Best: shown better than every other, by the smallest margin or more. Equal: shown to differ by "
        "less. NotKnown: neither is shown. Worse: some other is shown better. Infeasible: breaks a constraint. NoData: "
        "cannot be compared."
    )
    reason: Reason = Field(description="Why, as one CamelCase word.")
    message: str = Field(max_length=512, description="Why, for a person.")
    value: int | None = Field(
        default=None, json_schema_extra=_INT64, description="Over the workload, in the unit that `quantity` ends with."
    )
    confidence_low: int | None = Field(
        default=None, json_schema_extra=_INT64, description="Lower end of its 95 % interval."
    )
    confidence_high: int | None = Field(default=None, json_schema_extra=_INT64, description="Upper end of it.")
    margin_parts_per_million: int | None = Field(
        default=None,
        json_schema_extra=_INT64,
        description="How far it lies from the leader, as a share of its own value; of the leader: from the next, "
        "as a share of that one's.",
    )
    ratio_parts_per_million: int | None = Field(
        default=None,
        json_schema_extra=_INT64,
        description="Its value by the leader's; of the leader: by that of the next.",
    )
    ratio_low_parts_per_million: int | None = Field(
        default=None, json_schema_extra=_INT64, description="Lower end of the ratio's 95 % interval."
    )
    ratio_high_parts_per_million: int | None = Field(
        default=None, json_schema_extra=_INT64, description="Upper end of it."
    )
    probability_best_parts_per_million: int | None = Field(
        default=None,
        json_schema_extra=_INT64,
        description="How likely it is the best one. Of one node it assumes how far nodes of a class usually differ.",
    )
    expected_loss_parts_per_million: int | None = Field(
        default=None,
        json_schema_extra=_INT64,
        description="By what share it is expected to be behind the best, 0 where it is that itself; assumes the same.",
    )
    nodes: Count = Field(default=0, description="Nodes that stand for it.")
    trials: Count = Field(default=0, description="Good trials.")
    retries: Count = Field(default=0, description="Retries of all counted trials.")


class LevelCrossover(Model):
    """Where, along a factor, another alternative comes ahead."""

    factor: str = Field(max_length=63, description="The factor.")
    held: dict[str, Level] = Field(
        default={}, json_schema_extra={"maxProperties": 24}, description="Levels of the other factors that vary."
    )
    lower_level: Level = Field(description="The last measured level at which `aheadBelow` is ahead.")
    upper_level: Level = Field(description="The first measured level at which `aheadAbove` is ahead.")
    ahead_below: Alternative = Field(description="What is ahead below.")
    ahead_above: Alternative = Field(description="What is ahead above.")
    confidence_parts_per_million: int = Field(
        default=0, json_schema_extra=_INT64, description="How likely both are so, at least."
    )


class NodeRequirement(Model):
    """As in core/v1."""

    key: str = Field(max_length=316, description="The label's key.")
    operator: SelectorOperator = Field(description="How the label's value is compared with `values`.")
    values: tuple[Level, ...] = Field(default=(), max_length=64, description="For In and NotIn the values; else empty.")


class NodeSelectorTerm(Model):
    """As in core/v1; all expressions must hold."""

    match_expressions: tuple[NodeRequirement, ...] = Field(max_length=64, description="Requirements on labels.")


class RequiredNodes(Model):
    """As in core/v1."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = Field(
        max_length=8, description="Nodes that meet one of these will do."
    )


class NodeAffinity(Model):
    """As in core/v1: paste it below `affinity.nodeAffinity` of a pod."""

    required_during_scheduling_ignored_during_execution: RequiredNodes = Field(description="Where the pod may run.")


class PlacementAdviceStatus(Model):
    """The answer."""

    observed_generation: int = Field(
        default=0, json_schema_extra=_INT64, description="The metadata.generation that this is said of."
    )
    best: Alternative = Field(default="", description="The best alternative; empty if none is shown to be.")
    runner_up: Alternative = Field(default="", description="The next one; empty likewise.")
    settings: dict[str, Level] = Field(
        default={},
        json_schema_extra={"maxProperties": 24},
        description="What the best one is set to, by name: of all that was chosen but the node class.",
    )
    margin: str = Field(default="", max_length=32, description="How far it is behind, as a share of its value.")
    expected_loss: str = Field(
        default="",
        max_length=32,
        description="By what share that with the best value is expected to be behind the best one: what following "
        "the advice costs, also where none is shown to be best.",
    )
    confidence: Confidence = Field(
        default=Confidence.NONE,
        description="High: several nodes of each, and a probability of 99 % of being best. Moderate: of 97.5 %. "
        "Low: one node stands for something, or something may mislead, see `caveats`. None: none is best.",
    )
    answer: Text = Field(default="", description="The answer in words.")
    estimand: str = Field(default="", max_length=512, description="What is compared, in words.")
    tipping_point: str = Field(
        default="",
        max_length=32,
        description="Where one node stands for something: the answer holds for other nodes unless they differ by more "
        "than about this, a standard deviation.",
    )
    quantity: str = Field(default="", max_length=63, description="What values are; its name ends with their unit.")
    ranking: tuple[Ranked, ...] = Field(
        default=(), max_length=MOST_ALTERNATIVES, description="Every alternative, the best first."
    )
    crossovers: tuple[LevelCrossover, ...] = Field(
        default=(), max_length=32, description="Where the order changes; see the condition OrderChanges, too."
    )
    node_affinity: NodeAffinity | None = Field(
        default=None, description="What puts a pod on the best class; empty where none is chosen."
    )
    effects: tuple[FactorEffect, ...] = Field(
        default=(),
        max_length=MOST_EFFECTS,
        description="What each factor costs that is not what is chosen, all else equal: the largest first.",
    )
    knees: tuple[FactorKnee, ...] = Field(
        default=(),
        max_length=MOST_KNEES,
        description="Of a rate: from which level of a factor on nothing more is gained.",
    )
    caveats: tuple[Note, ...] = Field(default=(), max_length=16, description="What to keep in mind.")
    next: tuple[Note, ...] = Field(default=(), max_length=16, description="What to measure to be surer.")
    conditions: Conditions = ()


class PlacementAdvice(Resource):
    """On which class of node, and with which settings, should a service run?"""

    KIND: ClassVar[Kind] = Kind(
        kind="PlacementAdvice",
        plural="placementadvices",
        singular="placementadvice",
        short_names=("advice",),
        namespaced=True,
        columns=(
            Column("Best", ".status.best"),
            Column("Runner-Up", ".status.runnerUp", priority=1),
            Column("Margin", ".status.margin"),
            Column("Loss", ".status.expectedLoss"),
            Column("Confidence", ".status.confidence"),
            Column("Reason", '.status.conditions[?(@.type=="Answered")].reason'),
            Column("Answer", ".status.answer", priority=1),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
        description="PlacementAdvice says from the results that are there on which class of node a service should "
        "run or with which settings, from which level on another choice is better, and how sure that is.",
    )

    SPEC_RULES: ClassVar[tuple[Rule, ...]] = (_EITHER,)

    spec: PlacementAdviceSpec
    status: PlacementAdviceStatus = PlacementAdviceStatus()

    @field_validator("status", mode="wrap")
    @classmethod
    def _of_this_version(cls, status: object, read: Callable[[object], PlacementAdviceStatus]) -> PlacementAdviceStatus:
        """An answer of another version is none: it is given anew from the results."""
        try:
            return read(status)
        except ValidationError:
            return PlacementAdviceStatus()
