"""What can be asked of Strimzi for a Kafka that it brings up."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from tierbench.api.model import Model, Rule, Size, StorageClassName, matching, rules

Cpu = Annotated[
    str,
    Field(
        max_length=8,
        description="Cores, or thousandths of one: 2, 500m.",
        json_schema_extra={"x-kubernetes-int-or-string": True}
        | rules(
            Rule(
                "string(self).matches(r'^[1-9][0-9]{0,5}m?$')",
                "is not an amount of CPU: write cores or thousandths of one, as in 2 or 500m",
            )
        ),
    ),
    BeforeValidator(str),
]


class Compute(Model):
    """CPU and memory of a container."""

    cpu: Cpu | None = Field(default=None, description="Cores, or thousandths of one: 2, 500m.")
    memory: Size | None = Field(default=None, description="Memory, the Java heap included.")


class Resources(Model):
    """What the broker's container asks for, and may use at most."""

    requests: Compute = Field(default=Compute(cpu="50m", memory="128Mi"), description="What it asks for.")
    limits: Compute = Field(default=Compute(), description="What it may use at most; without it, what the node has.")


def _at_most(name: str) -> Rule:
    given = f"has(self.requests.{name}) && has(self.limits.{name})"
    asked, limit = (f"quantity(string(self.{part}.{name}))" for part in ("requests", "limits"))
    return Rule(
        f"!({given}) || {asked}.compareTo({limit}) <= 0",
        f"requests.{name} is more than limits.{name}: no pod is let in like this; lower the one or raise the other",
    )


class BrokerVolume(Model):
    """A volume of a storage class, made for each server and deleted with it."""

    storage_class_name: StorageClassName
    size: Size = Field(description="How large it is.")


class Strimzi(Model):
    """How Strimzi is to bring Kafka up."""

    version: str | None = Field(
        default=None,
        max_length=16,
        description="Kafka's version, of those that the Strimzi there supports; without it, its default.",
        json_schema_extra=rules(
            matching(r"^[0-9]+\.[0-9]+\.[0-9]+$", "is not a version of Kafka: write three numbers, as in 4.1.0")
        ),
    )
    resources: Resources = Field(
        default=Resources(),
        description="CPU and memory of the broker's container.",
        json_schema_extra=rules(_at_most("cpu"), _at_most("memory")),
    )
    persistent_volume_claim: BrokerVolume | None = Field(
        default=None,
        description="Where it keeps its log; without it, in a directory that comes and goes with the pod.",
    )
