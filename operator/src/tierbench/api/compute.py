"""What a container asks for, and what it may use at most."""

from typing import Annotated, Final

from pydantic import BeforeValidator, Field
from pydantic.alias_generators import to_pascal

from tierbench.api.model import Model, Rule, Size, is_whole_number, quantity_of, rules

Cpu = Annotated[
    str,
    Field(
        max_length=8,
        description="Cores, or thousandths of one: 2, 500m.",
        json_schema_extra={"x-kubernetes-int-or-string": True}
        | rules(
            Rule(
                is_whole_number("self", 8, "m"),
                "is not an amount of CPU: write cores or thousandths of one, as in 2 or 500m",
            )
        ),
    ),
    BeforeValidator(str),
]


class Compute(Model):
    """CPU, memory and disk of a container, as a pod has them."""

    cpu: Cpu | None = Field(default=None, description="Cores, or thousandths of one: 2, 500m.")
    memory: Size | None = Field(
        default=None, description="Memory: the program's own, a Java heap included, and pages of files that are cached."
    )
    ephemeral_storage: Size | None = Field(
        default=None,
        alias="ephemeral-storage",
        description="Of the node's own disk: logs, and directories that come and go with the pod.",
    )


class Resources(Model):
    """What each container asks for, and may use at most. It bears on the numbers, so it is kept with each result."""

    requests: Compute = Field(default=Compute(), description="What it asks for; of what is not named, very little.")
    limits: Compute = Field(default=Compute(), description="What it may use at most; without it, what the node has.")

    def conditions(self, side: str) -> dict[str, str]:
        """All that is given, by name, of one side."""
        given = {"Requests": self.requests, "Limits": self.limits}
        return {
            f"{side}{part}{to_pascal(name)}": amount
            for part, compute in given.items()
            for name, amount in compute.model_dump(exclude_none=True).items()
        }


def at_most(name: str) -> Rule:
    """The rule that a request is no more than its limit; `name` is the resource's."""
    field = name.replace("-", "__dash__")
    given = f"has(self.requests.{field}) && has(self.limits.{field})"
    asked, limit = (quantity_of(f"self.{part}.{field}") for part in ("requests", "limits"))
    return Rule(
        f"!({given}) || {asked}.compareTo({limit}) <= 0",
        f"requests.{name} is more than limits.{name}: no pod is let in like this; lower the one or raise the other",
    )


FITTING: Final = rules(*map(at_most, ("cpu", "memory", "ephemeral-storage")))
