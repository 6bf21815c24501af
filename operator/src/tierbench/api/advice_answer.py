"""The answer of a PlacementAdvice: the ranking, crossovers, effects of factors, and where to run the service."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from tierbench.api.model import Conditions, Count, Model, Reason
from tierbench.api.node_class import SelectorOperator
from tierbench.api.result import Level, Note

# Maximum lengths of lists in a status.
MOST_ALTERNATIVES: Final = 64
MOST_EFFECTS: Final = 32
MOST_KNEES: Final = 16

LongText = Annotated[str, Field(max_length=1024)]
Alternative = Annotated[str, Field(max_length=512)]


class Verdict(StrEnum):
    """The verdict on an alternative."""

    BEST = "Best"
    EQUAL = "Equal"
    INCONCLUSIVE = "Inconclusive"
    WORSE = "Worse"
    INFEASIBLE = "Infeasible"
    NO_DATA = "NoData"


class Confidence(StrEnum):
    """The reliability of the verdict Best."""

    HIGH = "High"
    MODERATE = "Moderate"
    LOW = "Low"
    NONE = "None"


class RankedAlternative(Model):
    """An alternative and its verdict."""

    name: Alternative = Field(description="The alternative: a node class, or the chosen settings in words.")
    verdict: Verdict = Field(
        description="Best: shown to be better than every other, by at least the smallest margin. Equal: shown to "
        "differ by less. Inconclusive: neither is shown. Worse: another one is shown to be better. Infeasible: does "
        "not meet a constraint. NoData: cannot be compared."
    )
    reason: Reason = Field(description="Reason for the verdict, as one CamelCase word.")
    message: str = Field(max_length=512, description="Details for a person.")
    value: int | None = Field(
        default=None, description="Value over the workload, in the unit at the end of `quantity`."
    )
    confidence_low: int | None = Field(
        default=None, description="Lower end of the 95% confidence interval of the value."
    )
    confidence_high: int | None = Field(
        default=None, description="Upper end of the 95% confidence interval of the value."
    )
    margin_parts_per_million: int | None = Field(
        default=None,
        description="Difference from the leader, as a share of its own value. For the leader: difference from the next "
        "alternative, as a share of that one's value.",
    )
    ratio_parts_per_million: int | None = Field(
        default=None,
        description="Its value divided by that of the leader. For the leader: divided by that of the next alternative.",
    )
    ratio_low_parts_per_million: int | None = Field(
        default=None, description="Lower end of the 95% confidence interval of the ratio."
    )
    ratio_high_parts_per_million: int | None = Field(
        default=None, description="Upper end of the 95% confidence interval of the ratio."
    )
    probability_best_parts_per_million: int | None = Field(
        default=None,
        description="Probability that this alternative is the best. With one node, it assumes a usual difference "
        "between nodes of a class.",
    )
    expected_loss_parts_per_million: int | None = Field(
        default=None,
        description="Expected share by which it is worse than the best alternative, 0 if it is the best itself. It "
        "makes the same assumption.",
    )
    nodes: Count = Field(default=0, description="Number of nodes behind the value.")
    trials: Count = Field(default=0, description="Number of good trials.")
    retries: Count = Field(default=0, description="Retries of all counted trials.")


class LevelCrossover(Model):
    """A change of the leader between two levels of a factor."""

    factor: str = Field(max_length=63, description="Name of the factor.")
    held: dict[str, Level] = Field(
        default={}, json_schema_extra={"maxProperties": 24}, description="Levels of the other factors that vary."
    )
    lower_level: Level = Field(description="The last measured level at which `aheadBelow` is ahead.")
    upper_level: Level = Field(description="The first measured level at which `aheadAbove` is ahead.")
    ahead_below: Alternative = Field(description="The alternative that is ahead below.")
    ahead_above: Alternative = Field(description="The alternative that is ahead above.")
    confidence_parts_per_million: int = Field(
        default=0, description="Lower bound of the probability that both are ahead there."
    )


class NodeRequirement(Model):
    """A requirement on a label, as in core/v1."""

    key: str = Field(max_length=316, description="Key of the label.")
    operator: SelectorOperator = Field(description="How the value of the label is compared with `values`.")
    values: tuple[Level, ...] = Field(
        default=(), max_length=64, description="Values for In and NotIn. Empty for the other operators."
    )


class NodeSelectorTerm(Model):
    """A term of a node selector, as in core/v1. All expressions must hold."""

    match_expressions: tuple[NodeRequirement, ...] = Field(max_length=64, description="Requirements on labels.")


class RequiredNodes(Model):
    """A node selector, as in core/v1."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = Field(
        max_length=8, description="A node must match one of these terms."
    )


class NodeAffinity(Model):
    """A node affinity, as in core/v1. Paste it below `affinity.nodeAffinity` of a pod."""

    required_during_scheduling_ignored_during_execution: RequiredNodes = Field(
        description="The nodes that the pod can run on."
    )


class EffectVerdict(StrEnum):
    """The verdict on an effect."""

    BETTER = "Better"
    AHEAD = "Ahead"
    EQUAL = "Equal"
    INCONCLUSIVE = "Inconclusive"
    BEHIND = "Behind"
    WORSE = "Worse"


class EffectAt(Model):
    """The effect at one level of the factor that it depends on."""

    level: Level = Field(default="", description="Level of the factor `by`. Empty if there is no such factor.")
    verdict: EffectVerdict = Field(
        description="Verdict on `toLevel` compared with `fromLevel`. Better, Worse: the interval excludes 1, and the "
        "difference is at least the smallest margin. Ahead, Behind: the interval excludes 1, and the difference may be "
        "smaller. Equal: the interval is within the margin. Inconclusive: none of these."
    )
    ratio_parts_per_million: int = Field(description="The value of `toLevel` divided by that of `fromLevel`.")
    low_parts_per_million: int = Field(description="Lower end of the 95% confidence interval of the ratio.")
    high_parts_per_million: int = Field(description="Upper end of the 95% confidence interval of the ratio.")


class FactorEffect(Model):
    """The difference between two levels of a factor, the other factors held equal."""

    factor: str = Field(max_length=63, description="Name of the factor.")
    from_level: Alternative = Field(
        description="The level of comparison: the usual one, the first one, or the next smaller one."
    )
    to_level: Alternative = Field(description="The level that the effect is about.")
    by: str = Field(
        default="",
        max_length=63,
        description="The factor that the effect depends on most. Empty if it depends on none.",
    )
    statement: LongText = Field(description="The effect in words.")
    at: tuple[EffectAt, ...] = Field(default=(), max_length=8, description="The effect at each level of `by`.")


class KneeCourse(StrEnum):
    """The change of a rate beyond the knee."""

    GROWS = "Grows"
    FALLS = "Falls"
    LEVEL = "Level"
    INCONCLUSIVE = "Inconclusive"


class KneeAt(Model):
    """The knee at one level of the factor that it depends on."""

    level: Level = Field(default="", description="Level of the factor `by`. Empty if there is no such factor.")
    knee: Alternative = Field(description="The first level that no later one is shown to be better than.")
    course: KneeCourse = Field(
        description="How the rate changes beyond the knee. Grows: the knee is the last measured level. Falls: a later "
        "level is worse. Level: no later level is better by the smallest margin. Inconclusive: none is shown."
    )


class FactorKnee(Model):
    """The level of a numeric factor from which on nothing more is gained."""

    factor: str = Field(max_length=63, description="Name of the factor.")
    by: str = Field(
        default="", max_length=63, description="The factor that the knee depends on most. Empty if it depends on none."
    )
    statement: LongText = Field(description="The knee in words.")
    at: tuple[KneeAt, ...] = Field(default=(), max_length=8, description="The knee at each level of `by`.")


class PlacementAdviceStatus(Model):
    """The answer."""

    observed_generation: int = Field(default=0, description="The metadata.generation that this status is about.")
    best: Alternative = Field(default="", description="The best alternative. Empty if none is shown to be the best.")
    runner_up: Alternative = Field(
        default="", description="The second alternative. Empty if none is shown to be the best."
    )
    settings: dict[str, Level] = Field(
        default={},
        json_schema_extra={"maxProperties": 24},
        description="The settings of the best alternative, by name, without the node class.",
    )
    margin: str = Field(
        default="", max_length=32, description="How far the second alternative is behind, as a share of its value."
    )
    expected_loss: str = Field(
        default="",
        max_length=32,
        description="What you lose on average if you follow the advice, as a share. It is the expected distance of "
        "the alternative with the best value from the best one. It is set even if none is shown to be the "
        "best.",
    )
    confidence: Confidence = Field(
        default=Confidence.NONE,
        description="High: several nodes of each class, and a probability of 99% of being the best. Moderate: a "
        "probability of 97.5%. Low: one node represents a class, or something may mislead, see `caveats`. None: no "
        "alternative is the best.",
    )
    answer: LongText = Field(default="", description="The answer in words.")
    comparison: str = Field(default="", max_length=512, description="What is compared, in words.")
    tolerated_node_deviation: str = Field(
        default="",
        max_length=32,
        description="If one node represents a class: the answer holds for other nodes unless the standard deviation "
        "between nodes is larger than about this.",
    )
    quantity: str = Field(
        default="", max_length=63, description="Name of the compared quantity. It ends with the unit."
    )
    ranking: tuple[RankedAlternative, ...] = Field(
        default=(), max_length=MOST_ALTERNATIVES, description="Every alternative, the best first."
    )
    crossovers: tuple[LevelCrossover, ...] = Field(
        default=(), max_length=32, description="Where the order changes. See also the condition OrderChanges."
    )
    node_affinity: NodeAffinity | None = Field(
        default=None, description="Node affinity for the best class. Absent if no class is the best."
    )
    effects: tuple[FactorEffect, ...] = Field(
        default=(),
        max_length=MOST_EFFECTS,
        description="The effect of each factor that is not chosen, the other factors held equal, the largest first.",
    )
    knees: tuple[FactorKnee, ...] = Field(
        default=(),
        max_length=MOST_KNEES,
        description="For a rate: the level of a factor from which on nothing more is gained.",
    )
    caveats: tuple[Note, ...] = Field(default=(), max_length=16, description="Reasons for caution.")
    recommendations: tuple[Note, ...] = Field(
        default=(), max_length=16, description="What to measure for a more certain answer."
    )
    conditions: Conditions = ()
