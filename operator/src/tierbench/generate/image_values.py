"""The values of the chart that name images."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from tierbench.api.model import IMAGE_NAME_PATTERN, LONGEST_IMAGE_NAME, OWN_IMAGE
from tierbench.api.schema import Schema

_WRITE_AN_IMAGE: Final = (
    "an object, as in {repository: registry.example/NAME, tag: VERSION}; where an older chart is upgraded, "
    "use --reset-then-reuse-values in place of --reuse-values, and write {} to forget its image"
)

Repository = Annotated[str, Field(max_length=255, pattern=r"^([^\s@]*/)?[^\s@:/]*$")]
Tag = Annotated[str, Field(pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$")]
Digest = Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64})?$")]
ImageReference = Annotated[str, Field(max_length=255, pattern=r"^\S+$")]


class Values(BaseModel):
    """A part of the values; a name that it does not know is refused."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


class PullPolicy(StrEnum):
    """When the image is pulled; if empty, as Kubernetes does by default."""

    UNSAID = ""
    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


def _refuse_names(schema: Schema) -> None:
    """Charts of 0.1.0 had the name of an image here: Helm prints the constant."""
    schema |= {"if": {"type": "string"}, "then": {"const": _WRITE_AN_IMAGE}, "else": {"type": schema.pop("type")}}


class Image(Values):
    """Its image; what is left empty is that of the chart's version."""

    model_config = ConfigDict(json_schema_extra=_refuse_names)

    repository: Repository = Field(
        default="", description="Registry and name; if empty, tierbench/NAME in global.imageRegistry, or in ghcr.io."
    )
    tag: Tag = Field(default="", description="Its tag; if empty, the version of the chart.")
    digest: Digest = Field(default="", description="Its digest, as in sha256:…; it wins over the tag.")
    pull_policy: PullPolicy = PullPolicy.UNSAID


class PullSecret(Values):
    """A Secret to pull images with."""

    name: Annotated[str, Field(min_length=1, max_length=253)] = Field(description="Its name.")


PullSecrets = Annotated[list[PullSecret], Field(max_length=16)]


class Program(Values):
    """What has an image."""

    image: Image = Image()


class Server(Program):
    """A server, and further images of it that may be measured."""

    alternatives: dict[str, ImageReference] = Field(
        default={},
        max_length=16,
        json_schema_extra={
            "propertyNames": {
                "pattern": IMAGE_NAME_PATTERN,
                "maxLength": LONGEST_IMAGE_NAME,
                "not": {"enum": [OWN_IMAGE]},
            }
        },
        description="Further images of it that benchmarks may ask for, each by a name, as in "
        '{"1.19": registry.example/image:1.19}; `default` is the one above, whose pullPolicy they share. No other is '
        "ever run.",
    )
