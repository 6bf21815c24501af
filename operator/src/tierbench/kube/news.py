"""What is heard of objects that are watched."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tierbench.kube.client import ResourceType

Raw = Mapping[str, Any]

Name = tuple[str, str]
"""Namespace, empty for what has none, and name."""


@dataclass(frozen=True)
class Changed:
    """One object is there, new, changed or gone."""

    resource: ResourceType
    item: Raw
    deleted: bool


@dataclass(frozen=True)
class Listed:
    """All objects that there were at this resourceVersion have been told of: those with these names, and no other."""

    resource: ResourceType
    names: frozenset[Name]
    version: str


@dataclass(frozen=True)
class Trouble:
    """The API server does not answer; it is asked again."""

    error: Exception


News = Changed | Listed | Trouble


def name_of(raw: Raw) -> Name:
    """The object's."""
    metadata = raw["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
