"""Trimming: trials that are left out of the statistics because of what they measured, agreed upon beforehand."""

from enum import StrEnum
from typing import Final

from pydantic import Field

from tierbench.api.model import Model, Rule


class TrimBy(StrEnum):
    """Whose lowest and highest are left out."""

    TOTAL = "Total"
    CLIENT = "Client"


class Trim(Model):
    """How many of the good trials of a case are left out of its statistics, by what the kind is read by first."""

    lowest: int = Field(default=0, ge=0, le=10, description="The lowest so many.")
    highest: int = Field(default=0, ge=0, le=10, description="The highest so many.")
    by: TrimBy = Field(
        default=TrimBy.TOTAL,
        description="Total: trials are left out of everything, by what all clients had together. Client: of each of "
        "several clients that measure at once its own lowest and highest are left out of its rate alone.",
    )


FITTING_TRIM: Final = Rule(
    "self.trim.lowest + self.trim.highest < self.repetitions",
    "trim leaves no trial: raise repetitions above trim.lowest and trim.highest together",
)
TRIM_BY_CLIENT: Final = Rule(
    "self.trim.by != 'Client' || self.clients.together.all(t, t == 'AllAtOnce')",
    "trim.by: Client is of clients that measure at once: write clients.together: [AllAtOnce], or take trim.by out",
)
