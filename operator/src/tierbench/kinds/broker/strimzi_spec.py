"""What can be asked of Strimzi for a Kafka that it brings up."""

from pydantic import Field

from tierbench.api.compute import FITTING, Compute
from tierbench.api.model import Model, Size, StorageClassName, matching, rules


class Resources(Model):
    """What the broker's container asks for, and may use at most."""

    requests: Compute = Field(default=Compute(cpu="50m", memory="128Mi"), description="What it asks for.")
    limits: Compute = Field(default=Compute(), description="What it may use at most; without it, what the node has.")


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
        json_schema_extra=FITTING,
    )
    persistent_volume_claim: BrokerVolume | None = Field(
        default=None,
        description="Where it keeps its log; without it, in a directory that comes and goes with the pod.",
    )
