"""PlacementAdvice: on which class of node should a service run, by the results that are there?"""

from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import Field, JsonValue

from tierbench.api.broker import Delivery
from tierbench.api.contract import Count, Reason
from tierbench.api.limits import Limits
from tierbench.api.model import ClassName, Column, Conditions, Kind, Model, Resource, Rule, Size, rules
from tierbench.api.node_class import SelectorOperator
from tierbench.api.result import Level, Note

_SET: Final[dict[str, JsonValue]] = {"x-kubernetes-list-type": "set"}
Text = Annotated[str, Field(max_length=1024)]


class ObjectiveType(StrEnum):
    """What makes a class the best one."""

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
    """What classes are ranked by."""

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
        default=(), max_length=32, description="Of file transfers: the sizes of the files."
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
    """What a class must keep to at each level of the workload, or it is Infeasible."""

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


class PlacementAdviceSpec(Model):
    """The question."""

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
        description="What classes are ranked by; by default MeanTime with a workload, and Throughput without.",
    )
    constraints: Constraints = Field(default=Constraints(), description="What a class must keep to.")
    smallest_margin: Annotated[str, Field(pattern=r"^(0|[1-9][0-9]?)(\.[0-9]{1,2})?%$", max_length=6)] = Field(
        default="5%",
        description="The smallest difference that is worth having, as in 5%: classes that differ by less are equal, "
        "and a class is best only by more.",
    )


class Verdict(StrEnum):
    """What is said of a class."""

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


class RankedClass(Model):
    """A class, and what is said of it."""

    node_class: str = Field(max_length=63, description="The node class.")
    verdict: Verdict = Field(
        description="Best: shown better than every other, by the smallest margin or more. Equal: shown to differ by "
        "less. NotKnown: neither is shown. Worse: some class is shown better. Infeasible: breaks a constraint. NoData: "
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
        description="How far it lies from the leader, as a share of its own value; of the leader: from the next class, "
        "as a share of that one's.",
    )
    ratio_parts_per_million: int | None = Field(
        default=None,
        json_schema_extra=_INT64,
        description="Its value by the leader's; of the leader: by that of the next class.",
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
        description="How likely the class is the best one. Of one node it assumes how far nodes of a class usually "
        "differ.",
    )
    expected_loss_parts_per_million: int | None = Field(
        default=None,
        json_schema_extra=_INT64,
        description="By what share it is expected to be behind the best class, 0 where it is that itself; assumes the "
        "same.",
    )
    nodes: Count = Field(default=0, description="Nodes that stand for it.")
    trials: Count = Field(default=0, description="Good trials.")
    retries: Count = Field(default=0, description="Retries of all counted trials.")


class LevelCrossover(Model):
    """Where, along a factor, another class comes ahead."""

    factor: str = Field(max_length=63, description="The factor.")
    held: dict[str, Level] = Field(
        default={}, json_schema_extra={"maxProperties": 24}, description="Levels of the other factors that vary."
    )
    lower_level: Level = Field(description="The last measured level at which `aheadBelow` is ahead.")
    upper_level: Level = Field(description="The first measured level at which `aheadAbove` is ahead.")
    ahead_below: str = Field(max_length=63, description="The class that is ahead below.")
    ahead_above: str = Field(max_length=63, description="The class that is ahead above.")
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
    best: str = Field(default="", max_length=63, description="The best class; empty if none is shown to be.")
    runner_up: str = Field(default="", max_length=63, description="The next one; empty likewise.")
    margin: str = Field(default="", max_length=32, description="How far it is behind, as a share of its value.")
    expected_loss: str = Field(
        default="",
        max_length=32,
        description="By what share the class with the best value is expected to be behind the best one: what following "
        "the advice costs, also where no class is shown to be best.",
    )
    confidence: Confidence = Field(
        default=Confidence.NONE,
        description="High: several nodes of each class, and a probability of 99 % of being best. Moderate: of 97.5 %. "
        "Low: a class stands on one node, or something may mislead, see `caveats`. None: no class is best.",
    )
    answer: Text = Field(default="", description="The answer in words.")
    estimand: str = Field(default="", max_length=512, description="What is compared, in words.")
    tipping_point: str = Field(
        default="",
        max_length=32,
        description="Where a class stands on one node: the answer holds for the classes unless their nodes differ by "
        "more than about this, a standard deviation.",
    )
    quantity: str = Field(default="", max_length=63, description="What values are; its name ends with their unit.")
    ranking: tuple[RankedClass, ...] = Field(default=(), max_length=64, description="Every class, the best first.")
    crossovers: tuple[LevelCrossover, ...] = Field(
        default=(), max_length=32, description="Where the order changes; see the condition OrderChanges, too."
    )
    node_affinity: NodeAffinity | None = Field(default=None, description="What puts a pod on the best class.")
    caveats: tuple[Note, ...] = Field(default=(), max_length=16, description="What to keep in mind.")
    next: tuple[Note, ...] = Field(default=(), max_length=16, description="What to measure to be surer.")
    conditions: Conditions = ()


class PlacementAdvice(Resource):
    """On which class of node should a service run?"""

    KIND: ClassVar[Kind] = Kind(
        kind="PlacementAdvice",
        plural="placementadvices",
        singular="placementadvice",
        short_names=("advice",),
        namespaced=True,
        columns=(
            Column("Best", ".status.best"),
            Column("Runner-Up", ".status.runnerUp"),
            Column("Margin", ".status.margin"),
            Column("Loss", ".status.expectedLoss"),
            Column("Confidence", ".status.confidence"),
            Column("Reason", '.status.conditions[?(@.type=="Answered")].reason'),
            Column("Answer", ".status.answer", priority=1),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
        description="PlacementAdvice says from the results that are there on which class of node a service should "
        "run, from which level on another class is better, and how sure that is.",
    )

    spec: PlacementAdviceSpec
    status: PlacementAdviceStatus = PlacementAdviceStatus()
