"""The answer of a PlacementAdvice: the ranking, crossovers, effects of factors, and where to run the service."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field, JsonValue

from tierbench.api.model import Conditions, Count, Model, Reason
from tierbench.api.node_class import SelectorOperator
from tierbench.api.result import Level, Note

# What a status keeps at most.
MOST_ALTERNATIVES: Final = 64
MOST_EFFECTS: Final = 32
MOST_KNEES: Final = 16

Text = Annotated[str, Field(max_length=1024)]
Alternative = Annotated[str, Field(max_length=512)]
_INT64: Final[dict[str, JsonValue]] = {"format": "int64"}


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


class EffectVerdict(StrEnum):
    """What is said of an effect."""

    BETTER = "Better"
    AHEAD = "Ahead"
    EQUAL = "Equal"
    NOT_KNOWN = "NotKnown"
    BEHIND = "Behind"
    WORSE = "Worse"


class EffectAt(Model):
    """How large an effect is at one level of what it depends on."""

    level: Level = Field(default="", description="The level of the factor `by`; empty where there is none.")
    verdict: EffectVerdict = Field(
        description="How it stands to `fromLevel`. Better, Worse: the interval excludes 1, and the difference is "
        "the smallest margin or more. Ahead, Behind: perhaps less. Equal: the interval lies within the margin. "
        "NotKnown: nothing is shown."
    )
    ratio_parts_per_million: int = Field(json_schema_extra=_INT64, description="The value of `toLevel` by the other.")
    low_parts_per_million: int = Field(json_schema_extra=_INT64, description="Lower end of its 95 % interval.")
    high_parts_per_million: int = Field(json_schema_extra=_INT64, description="Upper end of it.")


class FactorEffect(Model):
    """What lies between two levels of a factor, all else equal."""

    factor: str = Field(max_length=63, description="The factor.")
    from_level: Alternative = Field(description="What is compared with: the usual or first level, or the next smaller.")
    to_level: Alternative = Field(description="The level whose effect it is.")
    by: str = Field(default="", max_length=63, description="The factor that the effect depends on most, if on any.")
    statement: Text = Field(description="The effect in words.")
    at: tuple[EffectAt, ...] = Field(default=(), max_length=8, description="The ratios.")


class KneeCourse(StrEnum):
    """How a rate goes on beyond the knee."""

    GROWS = "Grows"
    FALLS = "Falls"
    LEVEL = "Level"
    NOT_KNOWN = "NotKnown"


class KneeAt(Model):
    """The knee at one level of what it depends on."""

    level: Level = Field(default="", description="The level of the factor `by`; empty where there is none.")
    knee: Alternative = Field(description="The level that no later one is shown to be better than.")
    course: KneeCourse = Field(
        description="Beyond it. Grows: it is the last level measured. Falls. Level: no later one is better by the "
        "smallest margin. NotKnown: none is shown to be."
    )


class FactorKnee(Model):
    """From which level of a factor of numbers on nothing more is gained."""

    factor: str = Field(max_length=63, description="The factor.")
    by: str = Field(default="", max_length=63, description="The factor that it depends on most, if on any.")
    statement: Text = Field(description="The knee in words.")
    at: tuple[KneeAt, ...] = Field(default=(), max_length=8, description="The levels.")


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
