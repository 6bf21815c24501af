"""The canonical form of a spec: two specs that ask for the same measurements have the same form, and the same hash."""

import hashlib
import json
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, TypeVar

from tierbench.api.model import Model
from tierbench.api.quantity import parse_size

ModelType = TypeVar("ModelType", bound=Model)
_RUN_POLICY: Final = "run_policy"
_HASH_CHARACTERS: Final = 16
_UNORDERED: Final = ("set", "map")


def in_order(part: ModelType) -> ModelType:
    """Returns a part of a spec with its lists of type set and map sorted. In the API, their order has no meaning.

    Cases and servers are numbered in this order, so another order of the same items changes no number.
    """
    changes = {name: _ordered(getattr(part, name), field.json_schema_extra) for name, field in _fields(part)}
    return part.model_copy(update=changes)


def spec_hash(spec: Model) -> str:
    """Returns the hash of what a spec measures: all of it but the run policy, without fields that have their default.

    The spec is in canonical order.
    """
    measured = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={_RUN_POLICY})
    return fingerprint(json.dumps(measured, sort_keys=True, separators=(",", ":")))


def fingerprint(text: str) -> str:
    """Returns a hash that is equal only for equal texts."""
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_CHARACTERS]


def _fields(part: Model) -> list[tuple[str, Any]]:
    lists_and_parts = (Model, tuple)
    every = type(part).model_fields.items()
    return [(name, field) for name, field in every if isinstance(getattr(part, name), lists_and_parts)]


def _ordered(value: Any, schema: Any) -> Any:
    if isinstance(value, Model):
        return in_order(value)
    items = tuple(in_order(item) if isinstance(item, Model) else item for item in value)
    unordered = isinstance(schema, Mapping) and schema.get("x-kubernetes-list-type") in _UNORDERED
    return tuple(sorted(items, key=_rank)) if unordered else items


def _rank(item: Any) -> tuple[int, tuple[tuple[int, str], ...], str]:
    """Returns the place of an item: an enum as it is declared, numbers and sizes ascending, words by alphabet.

    Objects are ordered by their name, or by their words if they have none.
    """
    if isinstance(item, Enum):
        return list(type(item)).index(item), (), ""
    if isinstance(item, int):
        return item, (), ""
    text = item if isinstance(item, str) else str(getattr(item, "name", item))
    try:
        return parse_size(text), (), text
    except ValueError:
        words = re.findall(r"(\D+)|(\d+)", text)
        return 0, tuple((int(number or 0), word) for word, number in words), text
