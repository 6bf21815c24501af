"""The base of all models of the API: naming, CEL rules, printer columns, bounded field types and timestamps."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict
from pydantic.alias_generators import to_camel

from tierbench.kube.meta import ResourceType

GROUP: Final = "tierbench.io"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"


class Model(BaseModel):
    """A part of an object. Unknown fields are ignored, because the API server rejects them before the operator reads
    them."""

    # A program builds the validators of the models that it uses, which saves a tenth of a second at its start.
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore", defer_build=True
    )

    def to_json(self) -> dict[str, Any]:
        """Returns the object as the API server expects it: in camelCase, without fields that are not set."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class OpenModel(Model):
    """A part of a status. Fields that a newer version wrote are kept and written back."""

    model_config = ConfigDict(extra="allow")


# C0 and C1, DEL, and the separators at which some readers break lines.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def without_controls(text: str) -> str:
    """Returns the text with spaces instead of control characters."""
    return _CONTROL.sub(" ", text)


Count = Annotated[int, Strict(), Field(ge=0, json_schema_extra={"format": "int64"})]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Nanoseconds = Annotated[int, Strict(), Field(ge=0, json_schema_extra={"format": "int64"})]
PartsPerMillion = Annotated[int, Strict(), Field(ge=0, le=1_000_000)]
Printable = Annotated[str, AfterValidator(without_controls)]
Reason = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Z][A-Za-z0-9]*$")]


@dataclass(frozen=True)
class Rule:
    """A CEL rule. If `rule` does not hold, the API server answers `message` or the value of `message_expression`."""

    rule: str
    message: str
    message_expression: str | None = None

    def to_json(self) -> dict[str, str]:
        """Returns the rule as an item of x-kubernetes-validations."""
        body = {"rule": self.rule, "message": self.message}
        if self.message_expression is not None:
            body["messageExpression"] = self.message_expression
        return body


@dataclass(frozen=True)
class Column:
    """A column of `kubectl get`. Columns with priority 1 are shown only with `-o wide`."""

    name: str
    json_path: str
    type: str = "string"
    priority: int = 0
    description: str = ""


@dataclass(frozen=True)
class Kind:
    """The names, scope and columns of a kind in the API server.

    `categories` are further words by which kubectl lists its objects, with those of other kinds of the category.
    """

    kind: str
    short_names: tuple[str, ...]
    columns: tuple[Column, ...]
    description: str
    namespaced: bool = True
    categories: tuple[str, ...] = ()

    @property
    def singular(self) -> str:
        """The name of an object in commands and URLs."""
        return self.kind.lower()

    @property
    def plural(self) -> str:
        """The name of several objects."""
        return f"{self.singular}{'es' if self.singular.endswith('s') else 's'}"

    @property
    def resource(self) -> ResourceType:
        """The resource type under which the API server serves the kind."""
        return ResourceType(f"apis/{API_VERSION}", self.plural)


SET: Final[dict[str, Any]] = {"x-kubernetes-list-type": "set"}
"""The schema of a list that has each item once, for `json_schema_extra`."""


def rules(*items: Rule) -> dict[str, Any]:
    """Returns CEL rules for `json_schema_extra`."""
    return {"x-kubernetes-validations": [item.to_json() for item in items]}


def matching(pattern: str, message: str) -> Rule:
    """Returns the rule that a string matches a pattern. The message says in words what the pattern means."""
    return Rule(f"self.matches(r'{pattern}')", message)


def is_address(port: int) -> Rule:
    """Returns the rule that a string is host and port. The message has `port` in its example."""
    return matching(
        r"^([a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?|\[[0-9a-fA-F:]+\]):[1-9][0-9]{0,4}$",
        f"is not an address: write host and port, as in server.example.com:{port} or [2001:db8::1]:{port}",
    )


def text(
    most: int,
    pattern: str,
    message: str,
    description: str | None = None,
    *,
    default: Any = ...,
    least: int | None = None,
) -> Any:
    """Returns a field for strings of `least` to `most` characters that match a pattern, which `message` puts in
    words."""
    matches = rules(matching(pattern, message))
    return Field(default, min_length=least, max_length=most, description=description, json_schema_extra=matches)


def factor(default: Any, description: str, *, most: int, rule: Rule | None = None) -> Any:
    """Returns a field with 1 to `most` levels, each once. It is required if `default` is `...`."""
    schema = SET if rule is None else SET | rules(rule)
    return Field(default, min_length=1, max_length=most, json_schema_extra=schema, description=description)


class Metadata(Model):
    """The fields of metadata.k8s.io/v1 ObjectMeta that tierbench reads."""

    name: str
    namespace: str | None = None
    uid: str = ""
    generation: int = 0
    resource_version: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Mapping[str, str] = Field(default_factory=dict)


class Resource(Model):
    """An object as the API server returns it. RULES apply to the whole object, SPEC_RULES to its spec.

    An ATOMIC kind is written as a whole, by the operator alone. So metadata.managedFields does not list its fields.
    """

    KIND: ClassVar[Kind]
    ATOMIC: ClassVar[bool] = False
    RULES: ClassVar[tuple[Rule, ...]] = ()
    SPEC_RULES: ClassVar[tuple[Rule, ...]] = ()

    metadata: Metadata


class Condition(Model):
    """A condition as the Kubernetes API conventions define it."""

    type: str = Field(max_length=63, description="Type of the condition in CamelCase.")
    status: str = Field(
        json_schema_extra={"enum": ["True", "False", "Unknown"]},
        description="Status of the condition: True, False or Unknown.",
    )
    reason: str = Field(
        max_length=63, description="Reason for the last transition, as one CamelCase word that programs can compare."
    )
    message: str = Field(max_length=4096, description="Details of the reason for a person, and what to do next.")
    last_transition_time: Time = Field(description="When `status` last changed.")
    observed_generation: int = Field(description="The metadata.generation that the condition was set for.")


Conditions = Annotated[
    tuple[Condition, ...],
    Field(
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        description="The current state of the object.",
    ),
]

CLASS_NAME_PATTERN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"

ClassName = Annotated[
    str,
    text(
        63,
        CLASS_NAME_PATTERN,
        "is not the name of a NodeClass: see `kubectl get nodeclasses.tierbench.io`",
        "Name of a NodeClass.",
        least=1,
    ),
]

ClassNames = Annotated[
    tuple[ClassName, ...],
    Field(min_length=1, max_length=8, json_schema_extra=SET),
]

StorageClassName = Annotated[
    str,
    text(
        253,
        r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        "is not the name of a StorageClass: see `kubectl get storageclasses`",
        "Name of a StorageClass. `kubectl get storageclasses` lists them.",
        least=1,
    ),
]

IMAGE: Final = "image"
"""The factor whose levels are names of images."""
OWN_IMAGE: Final = "default"
"""The name of the chart's own image of a service."""
IMAGE_NAME_PATTERN: Final = r"^([A-Za-z][A-Za-z0-9]*|[A-Za-z0-9]+[._-][A-Za-z0-9]+)([._-][A-Za-z0-9]+)*$"
"""A number alone is not a name: levels that are numbers are sizes and counts, and refinement looks between them."""
LONGEST_IMAGE_NAME: Final = 32

ImageName = Annotated[
    str,
    text(
        LONGEST_IMAGE_NAME,
        IMAGE_NAME_PATTERN,
        "is not the name of an image: write letters and digits with dots or hyphens between them, but no number, as in "
        "1.19.6 or debian",
    ),
]
ImageNames = Annotated[
    tuple[ImageName, ...],
    Field(
        max_length=8,
        json_schema_extra=SET,
        description=f"Names of images, from the chart value `alternatives` of this service (a factor). `{OWN_IMAGE}` "
        "is the chart's own image, and the default.",
    ),
]


def levels(images: str) -> str:
    """Returns the CEL expression for the number of levels of a field of images."""
    return f"(size({images}) == 0 ? 1 : size({images}))"
