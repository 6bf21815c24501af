"""NodeClass: a named set of nodes, selected by labels, or of machines outside the cluster."""

from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import Field

from tierbench.api.model import CLASS_NAME_PATTERN, Column, Conditions, Kind, Model, Resource, Rule, Time, rules, text

MOST_MEMBERS: Final = 64
_LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
_NO_LABEL_KEY = "is not the key of a label: see `kubectl get nodes --show-labels`"

LabelValue = Annotated[
    str,
    text(
        63,
        r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$",
        "is not the value of a label: see `kubectl get nodes --show-labels`",
    ),
]


class SelectorOperator(StrEnum):
    """The comparison of a label."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class SelectorRequirement(Model):
    """A requirement on a label, as in metav1.LabelSelector."""

    key: str = text(316, _LABEL_KEY, _NO_LABEL_KEY, "Key of the label.")
    operator: SelectorOperator = Field(description="How the value of the label is compared with `values`.")
    values: tuple[LabelValue, ...] = Field(
        default=(), max_length=32, description="Values for In and NotIn. Empty for the other operators."
    )


_VALUES = Rule(
    "(self.operator in ['In', 'NotIn']) == (size(self.values) > 0)",
    "In and NotIn need values, Exists and DoesNotExist take none: write {key: hw, operator: In, values: [jetson-nano]} "
    "or {key: hw, operator: Exists}",
)


class NodeSelector(Model):
    """The nodes that belong to a class. All requirements must hold."""

    match_labels: dict[str, LabelValue] = Field(
        default={},
        json_schema_extra={"maxProperties": 16}
        | rules(Rule(f"self.all(key, key.matches(r'{_LABEL_KEY}'))", f"has a key that {_NO_LABEL_KEY}")),
        description="Labels that a node must have with exactly these values.",
    )
    match_expressions: tuple[Annotated[SelectorRequirement, Field(json_schema_extra=rules(_VALUES))], ...] = Field(
        default=(), max_length=16, description="Further requirements on labels."
    )


class TolerationOperator(StrEnum):
    """The comparison of the value of a taint."""

    EQUAL = "Equal"
    EXISTS = "Exists"


class TaintEffect(StrEnum):
    """The effect of a taint on pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Toleration(Model):
    """A taint that benchmark pods tolerate, as in core/v1."""

    key: str | None = text(
        316,
        _LABEL_KEY,
        "is not the key of a taint: see `kubectl describe node`",
        "Key of the taint. Absent with Exists: every taint.",
        default=None,
    )
    operator: TolerationOperator = Field(default=TolerationOperator.EQUAL, description="Equal or Exists.")
    value: LabelValue | None = Field(default=None, description="Value of the taint, with Equal.")
    effect: TaintEffect | None = Field(default=None, description="Effect of the taint. Absent: every effect.")


_TOLERATION_KEY = Rule(
    "self.operator == 'Exists' || has(self.key)",
    "has no key, which needs operator Exists: set the key of the taint, see `kubectl describe node`",
)
_TOLERATION_VALUE = Rule(
    "self.operator == 'Equal' || !has(self.value)",
    "has a value, which operator Exists does not allow: remove the value, or write operator: Equal",
)

FreeText = Annotated[
    str,
    text(
        63,
        r"^[A-Za-z0-9]([-A-Za-z0-9_. ]*[A-Za-z0-9])?$",
        "is not a short name: write letters, digits, spaces and -_. between, as in 5g-sa or sd-card",
    ),
]


class ResultsPath(StrEnum):
    """How the trials of a client come to the operator."""

    AUTO = "Auto"
    LOGS = "Logs"
    PUSH = "Push"
    STATUS = "Status"


class Invitation(Model):
    """A machine outside the cluster that may join the class, once, with the token of this hash."""

    name: str = text(
        63,
        CLASS_NAME_PATTERN,
        "is not the name of a member: write small letters, digits and hyphens, as in laptop-1",
        "Name of the member.",
        least=1,
    )
    token_hash: str = text(
        64,
        r"^[0-9a-f]{64}$",
        "is not a SHA-256 in hex: run `kubectl tierbench join CLASS`, which writes it",
        "SHA-256 of the token, in hex. Only the machine has the token.",
    )
    expiration_time: Time = Field(
        description="Until when a machine can join with the token. One that has joined stays a member."
    )


class NodeClassSpec(Model):
    """The nodes of a class, and their properties that Kubernetes does not know."""

    node_selector: NodeSelector | None = Field(
        default=None,
        description="Selects the nodes of the class by their labels. A class has it, or is external.",
        json_schema_extra=rules(
            Rule(
                "size(self.matchLabels) + size(self.matchExpressions) > 0",
                "names no label, so every node would belong to the class: set matchLabels or matchExpressions, for "
                "example {matchLabels: {hw: jetson-nano}}",
            )
        ),
    )
    tolerations: tuple[
        Annotated[Toleration, Field(json_schema_extra=rules(_TOLERATION_KEY, _TOLERATION_VALUE))], ...
    ] = Field(default=(), max_length=16, description="Taints of these nodes that benchmark pods tolerate.")
    access_network: FreeText | None = Field(
        default=None,
        description="Network that connects these nodes to the others: lte, 5g-sa, wifi, ethernet. Each result contains "
        "it.",
    )
    storage: FreeText | None = Field(
        default=None, description="Type of their disks: sd-card, emmc, nvme. Each result contains it."
    )
    results: ResultsPath = Field(
        default=ResultsPath.AUTO,
        description="How the trials of clients on these nodes come to the operator. Auto: by the log; if that cannot "
        "be read, by a push; at last by the status of the pod. Logs: by the log, or at last by the status. Push: "
        "clients push until their deadline, which needs the chart value `collector.enabled`. Status: by the status of "
        "the pod alone, which holds about 25 trials of a file transfer.",
    )
    external: bool = Field(
        default=False,
        description="Whether the class consists of machines outside the cluster, which `kubectl tierbench join` "
        "invites. They can be clients, and not servers. This needs the chart value `collector.enabled`.",
    )
    invitations: tuple[Invitation, ...] = Field(
        default=(),
        max_length=MOST_MEMBERS,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        description="The machines that may join an external class. `kubectl tierbench join` adds them. A "
        "machine that is removed from the list is no member any more.",
    )


class NodeSummary(Model):
    """A node of the class, or a member of an external class."""

    name: str = Field(max_length=253, description="Name of the node or member.")
    ready: bool = Field(
        description="Whether the node is Ready and not cordoned, or the member has asked for work lately."
    )
    architecture: str = Field(max_length=32, description="Architecture as the kubelet reports it: amd64, arm64, arm.")
    os: str | None = Field(default=None, max_length=32, description="Operating system of a member, such as linux.")
    version: str | None = Field(default=None, max_length=64, description="Version of the client of a member.")
    last_seen_time: Time | None = Field(
        default=None, description="When a member last asked for work or delivered trials, to the minute."
    )
    key: str | None = Field(
        default=None,
        max_length=64,
        description="What a member joined with: the beginnings of the hashes of the token and of its own key. So no "
        "other machine can use the token.",
    )


class CollectorAddress(Model):
    """Where the members of an external class reach the operator."""

    url: str = Field(max_length=300, description="URL of the collector.")
    pin: str = Field(max_length=64, description="Pin of its key, in the format of curl's --pinnedpubkey.")


class NodeClassStatus(Model):
    """The nodes that the selector matches now, or the members of an external class."""

    observed_generation: int = Field(default=0, description="The metadata.generation that this status is about.")
    nodes: int = Field(default=0, description="Number of nodes that the selector matches.")
    ready_nodes: int = Field(default=0, description="Number of these nodes that are Ready and not cordoned.")
    architectures: str = Field(
        default="", max_length=128, description="Architectures of the nodes, sorted and separated by commas."
    )
    cpu: str = Field(
        default="", max_length=64, description="CPUs per node: one number, or the smallest and the largest."
    )
    memory: str = Field(
        default="", max_length=64, description="Memory per node: one size, or the smallest and the largest."
    )
    members: tuple[NodeSummary, ...] = Field(
        default=(), max_length=MOST_MEMBERS, description="The first 64 nodes, by name, or the members."
    )
    collector: CollectorAddress | None = Field(
        default=None, description="Where the members of an external class reach the operator."
    )
    conditions: Conditions = ()


_NODES_OR_MEMBERS = Rule(
    "has(self.nodeSelector) != self.external",
    "needs nodeSelector, or external: true for machines outside the cluster, and not both",
)
_AUTO = Rule(
    "!self.external || self.results == 'Auto'",
    "has external: true, and so results: Auto: its members deliver their trials to the operator",
)
_INVITES = Rule(
    "self.external || size(self.invitations) == 0",
    "has invitations, which only a class with external: true can have",
)
_USABLE_NAME = Rule(
    f"size(self.metadata.name) <= 63 && self.metadata.name.matches(r'{CLASS_NAME_PATTERN}')",
    "metadata.name has a dot or more than 63 characters: choose one that benchmarks can name, as in jetson-nano",
)


class NodeClass(Resource):
    """A named set of nodes, such as `cloud`, `jetson-nano` or `raspberry-pi-4`."""

    KIND: ClassVar[Kind] = Kind(
        kind="NodeClass",
        short_names=("tbc",),
        namespaced=False,
        columns=(
            Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
            Column("Nodes", ".status.nodes", "integer"),
            Column("Usable", ".status.readyNodes", "integer"),
            Column("Arch", ".status.architectures"),
            Column("CPU", ".status.cpu"),
            Column("Memory", ".status.memory"),
            Column("Network", ".spec.accessNetwork"),
            Column("Storage", ".spec.storage"),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
        description="NodeClass is a named set of nodes, selected by labels. Benchmarks compare node classes.",
    )

    RULES: ClassVar[tuple[Rule, ...]] = (_USABLE_NAME,)
    SPEC_RULES: ClassVar[tuple[Rule, ...]] = (_NODES_OR_MEMBERS, _AUTO, _INVITES)

    spec: NodeClassSpec
    status: NodeClassStatus = NodeClassStatus()


NODE_CLASSES: Final = NodeClass.KIND.resource
