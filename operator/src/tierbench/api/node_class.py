"""NodeClass: a named set of nodes, chosen by labels."""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from tierbench.api.model import Column, Conditions, Kind, Model, Resource, Rule, rules

LabelValue = Annotated[str, Field(max_length=63)]


class SelectorOperator(StrEnum):
    """How a label is compared."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class SelectorRequirement(Model):
    """One requirement on a label, as in metav1.LabelSelector."""

    key: str = Field(max_length=316, description="The label's key.")
    operator: SelectorOperator = Field(description="How the label's value is compared with `values`.")
    values: tuple[LabelValue, ...] = Field(
        default=(), max_length=32, description="For In and NotIn the values; else empty."
    )


class NodeSelector(Model):
    """Which nodes belong to the class; all requirements must hold."""

    match_labels: dict[str, LabelValue] = Field(
        default_factory=dict,
        json_schema_extra={"maxProperties": 16},
        description="Labels that a node must bear with exactly these values.",
    )
    match_expressions: tuple[SelectorRequirement, ...] = Field(
        default=(), max_length=16, description="Requirements on labels that are more than equality."
    )


class TolerationOperator(StrEnum):
    """How a taint's value is compared."""

    EQUAL = "Equal"
    EXISTS = "Exists"


class TaintEffect(StrEnum):
    """What a taint does to pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Toleration(Model):
    """A taint that benchmark pods accept, as in core/v1."""

    key: str | None = Field(
        default=None, max_length=316, description="The taint's key; empty with Exists means every taint."
    )
    operator: TolerationOperator = Field(default=TolerationOperator.EQUAL, description="Equal or Exists.")
    value: str | None = Field(default=None, max_length=63, description="The taint's value, with Equal.")
    effect: TaintEffect | None = Field(default=None, description="The taint's effect; empty means every effect.")


FreeText = Annotated[str, Field(max_length=63, pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_. ]*[A-Za-z0-9])?$")]


class NodeClassSpec(Model):
    """Which nodes are of the class, and what Kubernetes cannot know about them."""

    node_selector: NodeSelector = Field(
        description="The nodes of the class, by their labels.",
        json_schema_extra=rules(
            Rule(
                "size(self.matchLabels) + size(self.matchExpressions) > 0",
                "names no label, so every node would be of the class: give matchLabels or matchExpressions, "
                "for example {matchLabels: {hw: jetson-nano}}",
            )
        ),
    )
    tolerations: tuple[Toleration, ...] = Field(
        default=(), max_length=16, description="Taints of these nodes that benchmark pods tolerate."
    )
    access_network: FreeText | None = Field(
        default=None, description="How these nodes reach the others: lte, 5g-sa, wifi, ethernet. Kept with each result."
    )
    storage: FreeText | None = Field(
        default=None, description="What their disks are: sd-card, emmc, nvme. Kept with each result."
    )


class NodeSummary(Model):
    """One node of the class."""

    name: str = Field(max_length=253, description="The node's name.")
    ready: bool = Field(description="Whether it is Ready and not cordoned.")
    architecture: str = Field(max_length=32, description="As the kubelet says: amd64, arm64, arm.")


class NodeClassStatus(Model):
    """What the class resolves to now."""

    observed_generation: int = Field(
        default=0, json_schema_extra={"format": "int64"}, description="The metadata.generation that this is said of."
    )
    nodes: int = Field(default=0, description="How many nodes the selector matches.")
    ready_nodes: int = Field(default=0, description="How many of them are Ready and not cordoned.")
    architectures: str = Field(
        default="", max_length=128, description="Their architectures, sorted, with commas between."
    )
    cpu: str = Field(default="", max_length=64, description="CPUs of a node: one number, or the smallest and largest.")
    memory: str = Field(
        default="", max_length=64, description="Memory of a node: one size, or the smallest and largest."
    )
    members: tuple[NodeSummary, ...] = Field(default=(), max_length=64, description="The first 64 nodes, by name.")
    conditions: Conditions = ()


class NodeClass(Resource):
    """A named set of nodes: `cloud`, `jetson-nano`, `raspberry-pi-4`."""

    KIND: ClassVar[Kind] = Kind(
        kind="NodeClass",
        plural="nodeclasses",
        singular="nodeclass",
        short_names=("nc",),
        namespaced=False,
        columns=(
            Column("Nodes", ".status.nodes", "integer"),
            Column("Ready", ".status.readyNodes", "integer"),
            Column("Arch", ".status.architectures"),
            Column("CPU", ".status.cpu"),
            Column("Memory", ".status.memory"),
            Column("Network", ".spec.accessNetwork"),
            Column("Storage", ".spec.storage"),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
        description="NodeClass is a named set of nodes, chosen by labels: the thing that benchmarks compare.",
    )

    spec: NodeClassSpec
    status: NodeClassStatus = NodeClassStatus()
