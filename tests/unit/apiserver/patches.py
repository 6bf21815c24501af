"""Merge patches and server-side apply."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from tierbench.kube.client import ConflictError

Raw = dict[str, Any]
"""An object as JSON."""
Field = tuple[str, ...]
_IDENTITY = {"name", "namespace", "uid", "resourceVersion"}


def merge(target: Any, patch: Any) -> Any:
    """Returns the result of a merge patch (RFC 7396)."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


class FieldOwners:
    """The field managers of one object. Lists are atomic. A field that was never applied has no owner."""

    def __init__(self) -> None:
        self._fields: dict[str, set[Field]] = {}

    def apply(self, found: Raw, body: Raw, manager: str, *, force: bool) -> Raw:
        """Returns the object after a server-side apply. Raises ConflictError if another manager owns a changed field.

        The fields that this manager applied before and applies no longer are removed, unless another one owns them.
        """
        applied = dict(_leaves(body))
        others = [fields for other, fields in self._fields.items() if other != manager]
        lost = {field for field in applied if _get(found, field) != applied[field]}
        if not force and (conflicts := [field for field in lost if any(field in fields for fields in others)]):
            raise ConflictError(409, "Conflict", f"Apply failed: conflict with another manager: {conflicts}")
        for fields in others:
            fields.difference_update(lost)
        changed = deepcopy(found)
        for field in self._fields.get(manager, set()) - applied.keys() - set[Field]().union(*others):
            _remove(changed, field)
        self._fields[manager] = set(applied)
        result: Raw = merge(changed, body)
        return result


def _leaves(value: Mapping[str, Any], prefix: Field = ()) -> Iterator[tuple[Field, Any]]:
    for key, item in value.items():
        field = (*prefix, key)
        if isinstance(item, Mapping) and item:
            yield from _leaves(item, field)
        elif field[0] != "metadata" or key not in _IDENTITY:
            yield field, item


def _get(value: Any, field: Field) -> Any:
    for key in field:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _remove(value: Raw, field: Field) -> None:
    """Removes a field, and the objects that it leaves empty."""
    key, *rest = field
    if rest and isinstance(value.get(key), dict):
        _remove(value[key], tuple(rest))
        if not value[key]:
            del value[key]
    elif not rest:
        value.pop(key, None)
