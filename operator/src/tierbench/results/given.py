"""A trial of which a table gives the quantities, and not what they were computed from."""

from collections.abc import Mapping

from pydantic import Field

from tierbench.api.result import ResultTrial


class GivenTrial(ResultTrial):
    """`given` are its quantities by name. They are no part of the object: what is exported has the statistics alone."""

    given: Mapping[str, int | float] = Field(default_factory=dict, exclude=True)
