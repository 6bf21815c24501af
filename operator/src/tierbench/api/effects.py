"""What an advice keeps of what factors cost."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field, JsonValue

from tierbench.api.model import Model
from tierbench.api.result import Level

MOST_EFFECTS: Final = 32
"""That a status keeps."""
MOST_KNEES: Final = 16
"""The same."""
Text = Annotated[str, Field(max_length=1024)]
Alternative = Annotated[str, Field(max_length=512)]
_INT64: Final[dict[str, JsonValue]] = {"format": "int64"}


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
