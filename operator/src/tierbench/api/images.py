"""Images of servers by name: those that whoever installs tierbench lists, so that nobody else chooses what runs."""

from typing import Annotated, Final

from pydantic import Field

from tierbench.api.model import matching, rules

IMAGE: Final = "image"
"""The factor whose levels these names are."""
OWN_IMAGE: Final = "default"
"""The chart's own image of a service."""
IMAGE_NAME_PATTERN: Final = r"^([A-Za-z][A-Za-z0-9]*|[A-Za-z0-9]+[._-][A-Za-z0-9]+)([._-][A-Za-z0-9]+)*$"
"""A bare number is no name: levels that are numbers are sizes and counts, between which something may lie."""
LONGEST_IMAGE_NAME: Final = 32

ImageName = Annotated[
    str,
    Field(
        max_length=LONGEST_IMAGE_NAME,
        json_schema_extra=rules(
            matching(
                IMAGE_NAME_PATTERN,
                "is not the name of an image: write letters and digits with dots or hyphens between them, and not a "
                "number alone, as in 1.19.6 or debian",
            )
        ),
    ),
]
ImageNames = Annotated[
    tuple[ImageName, ...],
    Field(
        max_length=8,
        json_schema_extra={"x-kubernetes-list-type": "set"},
        description="Images of it, by the names that the chart's value `alternatives` of this service lists; "
        f"`{OWN_IMAGE}` is the chart's own (a factor). None means the chart's own.",
    ),
]


def levels(images: str) -> str:
    """How many levels a field of images has, in CEL."""
    return f"(size({images}) == 0 ? 1 : size({images}))"
