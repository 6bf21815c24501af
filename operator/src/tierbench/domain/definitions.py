"""The schemas of the served CustomResourceDefinitions, compared with those of this version of tierbench."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tierbench.domain import reasons

Schema = Mapping[str, Any]

_PARTS: Final = ("spec", "status")
_SINGLE: Final = ("items", "additionalProperties")
_OPEN: Final = "x-kubernetes-preserve-unknown-fields"
_NAMED: Final = 5


@dataclass(frozen=True)
class Definitions:
    """The structure that is served of each kind, by its name; nothing is known of a kind that is not there.

    `lacking` is what this version may write and they do not take, `further` what they take and this version does not
    know.
    """

    served: Mapping[str, Schema] = field(default_factory=dict)
    lacking: tuple[str, ...] = ()
    further: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """Which is older, or nothing; where each has something of its own, what cannot be written counts."""
        if self.lacking:
            return reasons.DEFINITIONS_OLDER
        return reasons.DEFINITIONS_NEWER if self.further else ""

    @property
    def message(self) -> str:
        """How they differ, and what to do."""
        if self.lacking:
            return (
                "The CustomResourceDefinitions are older than the operator, and do not know "
                f"{_some(self.lacking)}: this is not kept. Upgrade them: `helm upgrade`, or `kubectl apply "
                "--server-side --force-conflicts -f crds`."
            )
        if self.further:
            return (
                "The CustomResourceDefinitions are newer than the operator, which does not know "
                f"{_some(self.further)}: it is kept where it is stored. Upgrade the operator: `helm upgrade`."
            )
        return "The CustomResourceDefinitions are as the operator knows them."

    def fitted(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """An object without what its definition does not know: with that, none of it would be stored."""
        served = self.served.get(body.get("kind", ""))
        if served is None:
            return dict(body)
        known = served.get("properties", {})
        return {name: _fitted(part, known.get(name, {})) if name in _PARTS else part for name, part in body.items()}


def compare(own: Mapping[str, Schema], served: Mapping[str, Schema]) -> Definitions:
    """Compares the served schemas of each kind with those of this version. Ignores kinds that are not served."""
    kinds = [kind for kind in own if kind in served]
    return Definitions(
        served={kind: _structure(served[kind]) for kind in kinds},
        lacking=tuple(f"{kind} {path}" for kind in kinds for path in _beyond(own[kind], served[kind])),
        further=tuple(f"{kind} {path}" for kind in kinds for path in _beyond(served[kind], own[kind])),
    )


def _structure(schema: Schema) -> Schema:
    """What tells known fields from others: a hundredth of all."""
    kept: dict[str, Any] = {_OPEN: True} if schema.get(_OPEN) else {}
    if "properties" in schema:
        kept["properties"] = {name: _structure(child) for name, child in schema["properties"].items()}
    for keyword in _SINGLE:
        if isinstance(schema.get(keyword), Mapping):
            kept[keyword] = _structure(schema[keyword])
    return kept


def _fitted(value: Any, schema: Schema) -> Any:
    if isinstance(value, list):
        return [_fitted(item, schema.get("items", {})) for item in value]
    if not isinstance(value, dict) or schema.get(_OPEN):
        return value
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    known = {name: properties.get(name, others) for name in value}
    return {name: _fitted(value[name], child) for name, child in known.items() if child is not None}


def _beyond(schema: Schema, other: Schema) -> Iterator[str]:
    """Paths of fields, and enumerated values, that `other` does not have."""
    for part in _PARTS:
        yield from _fields_beyond(part, schema["properties"].get(part, {}), other["properties"].get(part, {}))


def _fields_beyond(path: str, schema: Schema, other: Schema) -> Iterator[str]:
    values = other.get("enum")
    if values is not None:
        yield from (f"{path}: {value}" for value in schema.get("enum", ()) if value not in values)
    theirs = other.get("properties", {})
    for name, child in schema.get("properties", {}).items():
        if name in theirs:
            yield from _fields_beyond(f"{path}.{name}", child, theirs[name])
        elif not other.get(_OPEN):
            yield f"{path}.{name}"
    for keyword, suffix in zip(_SINGLE, ("[]", ".*"), strict=True):
        if isinstance(schema.get(keyword), Mapping) and isinstance(other.get(keyword), Mapping):
            yield from _fields_beyond(path + suffix, schema[keyword], other[keyword])


def _some(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(paths[:_NAMED]) + more
