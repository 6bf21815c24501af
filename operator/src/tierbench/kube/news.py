"""What is heard of objects that are watched."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Raw = Mapping[str, Any]


@dataclass(frozen=True)
class Listed:
    """All objects of a kind that there are now."""

    kind: str
    items: tuple[Raw, ...]


@dataclass(frozen=True)
class Changed:
    """One object is new, changed or gone."""

    kind: str
    item: Raw
    deleted: bool


@dataclass(frozen=True)
class Trouble:
    """The API server does not answer; it is asked again."""

    error: Exception


News = Listed | Changed | Trouble
