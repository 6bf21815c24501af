"""Trimming: trials that are left out of the statistics because of what they measured, agreed upon beforehand."""

from typing import Final

from pydantic import Field

from tierbench.api.model import Model, Rule


class Trim(Model):
    """How many of the good trials of a case are left out of its statistics, by what the kind is read by first."""

    lowest: int = Field(default=0, ge=0, le=10, description="The lowest so many.")
    highest: int = Field(default=0, ge=0, le=10, description="The highest so many.")


FITTING_TRIM: Final = Rule(
    "self.trim.lowest + self.trim.highest < self.repetitions",
    "trim leaves no trial: raise repetitions above trim.lowest and trim.highest together",
)
