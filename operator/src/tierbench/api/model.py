"""What every model of the API shares: naming, CEL rules, printer columns and bounded field types."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

GROUP: Final = "tierbench.io"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"


class Model(BaseModel):
    """A part of an object. Unknown fields are ignored here: the API server refuses them before we see them."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore")

    def to_json(self) -> dict[str, Any]:
        """The object as the API server takes it: camelCase, without fields that are not set."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Stored(Model):
    """A part of a status. Fields that a newer version has written stay in it, and are written back."""

    model_config = ConfigDict(extra="allow")


@dataclass(frozen=True)
class Rule:
    """A CEL rule: `rule` must hold, else the API server answers `message` (or what `message_expression` gives)."""

    rule: str
    message: str
    message_expression: str | None = None

    def to_json(self) -> dict[str, str]:
        """The rule as x-kubernetes-validations takes it."""
        body = {"rule": self.rule, "message": self.message}
        if self.message_expression is not None:
            body["messageExpression"] = self.message_expression
        return body


@dataclass(frozen=True)
class Column:
    """A column of `kubectl get`. Priority 1 shows only with `-o wide`."""

    name: str
    json_path: str
    type: str = "string"
    priority: int = 0
    description: str = ""


@dataclass(frozen=True)
class Kind:
    """How a kind is served: its names, scope and columns."""

    kind: str
    plural: str
    singular: str
    short_names: tuple[str, ...]
    namespaced: bool
    columns: tuple[Column, ...]
    description: str


def rules(*items: Rule) -> dict[str, Any]:
    """CEL rules for `json_schema_extra`."""
    return {"x-kubernetes-validations": [item.to_json() for item in items]}


def matching(pattern: str, message: str) -> Rule:
    """The rule that a string matches: says in words what `pattern` alone could not."""
    return Rule(f"self.matches(r'{pattern}')", message)


def is_address(port: int) -> Rule:
    """The rule that a string is host and port; `port` is one for the example."""
    return matching(
        r"^([a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?|\[[0-9a-fA-F:]+\]):[1-9][0-9]{0,4}$",
        f"is not an address: write host and port, as in server.example.com:{port} or [2001:db8::1]:{port}",
    )


IMMUTABLE: Final = Rule(
    "self == oldSelf",
    "cannot be changed once created (only spec.runPolicy can): delete the object and create it with the new value",
)


class Metadata(Model):
    """The part of metadata.k8s.io/v1 ObjectMeta that tierbench reads."""

    name: str
    namespace: str | None = None
    uid: str = ""
    generation: int = 0
    resource_version: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Mapping[str, str] = Field(default_factory=dict)


class Resource(Model):
    """A whole object, as read from the API server. RULES hold of all of it, SPEC_RULES of its spec."""

    KIND: ClassVar[Kind]
    RULES: ClassVar[tuple[Rule, ...]] = ()
    SPEC_RULES: ClassVar[tuple[Rule, ...]] = ()

    metadata: Metadata


class Condition(Model):
    """A condition as the Kubernetes API conventions define it."""

    type: str = Field(max_length=63, description="What the condition is about, in CamelCase.")
    status: str = Field(json_schema_extra={"enum": ["True", "False", "Unknown"]}, description="True, False or Unknown.")
    reason: str = Field(max_length=63, description="Why, as one CamelCase word that programs can compare.")
    message: str = Field(max_length=4096, description="Why, for a person, and what to do next.")
    last_transition_time: str = Field(
        json_schema_extra={"format": "date-time"}, description="When `status` last changed."
    )
    observed_generation: int = Field(
        json_schema_extra={"format": "int64"}, description="The metadata.generation that this was said of."
    )


Conditions = Annotated[
    tuple[Condition, ...],
    Field(
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        description="What is known of the object now.",
    ),
]

CLASS_NAME_PATTERN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"

ClassName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=63,
        description="The name of a NodeClass.",
        json_schema_extra=rules(
            matching(CLASS_NAME_PATTERN, "is not the name of a NodeClass: see `kubectl get nodeclasses`")
        ),
    ),
]

ClassNames = Annotated[
    tuple[ClassName, ...],
    Field(min_length=1, max_length=8, json_schema_extra={"x-kubernetes-list-type": "set"}),
]

StorageClassName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=253,
        description="The StorageClass, as `kubectl get storageclasses` lists it.",
        json_schema_extra=rules(
            matching(
                r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
                "is not the name of a StorageClass: see `kubectl get storageclasses`",
            )
        ),
    ),
]

_DIGITS: Final = [str(digit) for digit in range(10)]


def is_whole_number(value: str, longest: int, letters: str, binary: str = "") -> str:
    """The CEL expression that an int-or-string is a whole number, at least 1, which may end with a unit.

    A unit is one of these letters, or one of `binary` followed by i. The expression reads one character at a time, and
    `in [int]` in place of `== int`: API servers before 1.34 assume that an int-or-string has 3 MiB, whatever its
    maxLength, and refuse a CustomResourceDefinition that reads all of it for each item of a list (ADR 0066).
    """
    size = f"size({value})"
    unit = f"i == {size} - 1 && {value}.charAt(i) in {list(letters)}"
    if binary:
        before, last = (f"{value}.charAt({size} - {distance})" for distance in (2, 1))
        unit += f" || i >= {size} - 2 && {before} in {list(binary)} && {last} in ['i']"
    character = f"i >= {size} || {value}.charAt(i) in {_DIGITS} || {unit}"
    whole = f"{value}.charAt(0) in {_DIGITS[1:]} && {list(range(longest))}.all(i, {character})"
    return f"(type({value}) in [int] ? {value} >= 1 : {whole})"


def quantity_of(value: str) -> str:
    """The CEL expression for the quantity that an int-or-string is."""
    return f"(type({value}) in [int] ? quantity('0').add({value}) : quantity({value}))"


LONGEST_SIZE: Final = 18
MOST_SIZES: Final = 30
"""Of a list. API servers before 1.34 refuse a rule that reads more than 31 sizes: see `is_whole_number`."""
QUANTITY_PATTERN: Final = r"^[1-9][0-9]{0,14}(k|M|G|T|Ki|Mi|Gi|Ti)?$"


def is_size(value: str, largest: str = "16Ti") -> str:
    """The CEL expression that an int-or-string is a size, and not larger than this one."""
    return f"{_is_whole(value)} && {quantity_of(value)}.compareTo(quantity('{largest}')) <= 0"


def is_smaller(size: str, other: str) -> str:
    """The CEL expression that a size is smaller than another one. It holds where one of them is not a size."""
    less = f"{quantity_of(size)}.compareTo({quantity_of(other)}) < 0"
    return f"(!{_is_whole(size)} || !{_is_whole(other)} || {less})"


def _is_whole(value: str) -> str:
    return is_whole_number(value, LONGEST_SIZE, "kMGT", "KMGT")


Size = Annotated[
    str,
    Field(
        max_length=LONGEST_SIZE,
        description="A size in bytes as a whole-number quantity: 1048576, 512Ki, 1Mi, 5Gi, 5G.",
        json_schema_extra={"x-kubernetes-int-or-string": True}
        | rules(
            Rule(
                is_size("self"),
                "is not a size: write a whole number of bytes up to 16Ti, as in 1048576, 512Ki, 1Mi or 5Gi",
            )
        ),
    ),
    BeforeValidator(str),
]
