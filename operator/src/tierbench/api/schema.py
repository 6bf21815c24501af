"""The models of all kinds of object, and their JSON Schemas: simplified for all generators, and structural for CRDs."""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from tierbench.api.model import GROUP, VERSION, Resource, Rule
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.record import BenchmarkRecord
from tierbench.api.result import BenchmarkResult
from tierbench.kinds.registry import BENCHMARKS

Schema = dict[str, Any]

_DEFINITIONS = "#/$defs/"

_VALIDATIONS: Final = "x-kubernetes-validations"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_LIST_TYPE: Final = "x-kubernetes-list-type"
_ATOMIC: Final = {"x-kubernetes-map-type": "atomic"}
_INT32_MAXIMUM: Final = 2**31 - 1
_OBSERVED_GENERATION: Final = "observedGeneration"
_OPEN: Final = ("additionalProperties", True)  # models keep unknown fields, a CRD does not


def resource_types() -> tuple[type[Resource], ...]:
    """Returns the models of all kinds of object that tierbench serves."""
    return (NodeClass, *BENCHMARKS.values(), BenchmarkResult, BenchmarkRecord, PlacementAdvice)


def simplify(schema: Schema) -> Schema:
    """Returns a schema without titles and null, with constants as enums of one value. A field that is null is
    absent."""
    schema = {keyword: value for keyword, value in schema.items() if keyword != "title"}
    options = schema.get("anyOf", ())
    if {"type": "null"} in options:
        (option,) = (option for option in options if option != {"type": "null"})
        del schema["anyOf"]
        schema = option | schema
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    if "default" in schema:
        schema["default"] = without_null(schema["default"])
        if schema["default"] is None:
            del schema["default"]
    return each_child(schema, simplify)


def inline_references(schema: Schema, definitions: Schema) -> Schema:
    """Returns a schema without references. Keywords next to a reference override those of its target."""
    if "$ref" in schema:
        target = definitions[schema["$ref"].removeprefix(_DEFINITIONS)]
        schema = target | {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
    return each_child(
        {keyword: value for keyword, value in schema.items() if keyword != "$defs"},
        lambda child: inline_references(child, definitions),
    )


def each_child(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """Returns a copy of a schema with `change` applied to every schema directly below it."""
    schema = dict(schema)
    for group in ("properties", "$defs"):
        if group in schema:
            schema[group] = {name: change(child) for name, child in schema[group].items()}
    for single in ("items", "additionalProperties"):
        if isinstance(schema.get(single), dict):
            schema[single] = change(schema[single])
    return schema


def element(schema: Schema) -> tuple[Schema, str]:
    """Returns the schema of the items of a list or map, and their notation in a path. Returns any other schema as it
    is."""
    if "items" in schema:
        return schema["items"], "[]"
    if isinstance(schema.get("additionalProperties"), dict):
        return schema["additionalProperties"], ".*"
    return schema, ""


def without_null(value: Any) -> Any:
    """Returns a JSON value without object members that are null."""
    if isinstance(value, dict):
        return {name: without_null(member) for name, member in value.items() if member is not None}
    return value


def object_schema(model: type[Resource]) -> Schema:
    """Returns the structural schema of an object.

    A status has no defaults: a field that is absent is not known. Only a new object has a generation that was observed,
    0, from which tools see that no status has been written for it.
    """
    generated = model.model_json_schema(by_alias=True)
    properties = inline_references(simplify(generated), simplify(generated)["$defs"])["properties"]
    spec, status = _structural(properties["spec"]), _without_defaults(_structural(properties["status"]))
    if model.ATOMIC:
        spec, status = _without_defaults(spec) | _ATOMIC, status | _ATOMIC
    if _OBSERVED_GENERATION in status["properties"]:
        status["default"] = {_OBSERVED_GENERATION: 0}
    schema = {
        "type": "object",
        "description": model.KIND.description,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"{GROUP}/{VERSION}."},
            "kind": {"type": "string", "description": f"{model.KIND.kind}."},
            "metadata": {"type": "object"},
            "spec": _with_rules(spec, *model.SPEC_RULES),
            "status": status,
        },
    }
    return _with_rules(schema, *model.RULES)


def outline(annotation: Any) -> Schema:
    """Returns the names in the schema of a type: its fields and enum values, and those of items and map values.

    It takes a few milliseconds for all models, and `object_schema` 300.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        options = [option for option in arguments if option is not NoneType]
        return outline(options[0]) if len(options) == 1 else {}
    if origin is Annotated:
        return outline(arguments[0])
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        return {"items": outline(arguments[0])}
    if origin in (dict, Mapping):
        return {"additionalProperties": outline(arguments[1])}
    if issubclass(annotation, Enum):
        return {"enum": [member.value for member in annotation]}
    if issubclass(annotation, BaseModel):
        fields = annotation.model_fields.items()
        return {"properties": {field.alias or name: outline(field.annotation) for name, field in fields}}
    return {}


def rules_with_paths(path: str, schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Yields every CEL rule at and below `path`, with its path, as in spec.servers.nodeClassNames[]."""
    yield from ((path, rule) for rule in schema.get(_VALIDATIONS, ()))
    for name, child in schema.get("properties", {}).items():
        yield from rules_with_paths(f"{path}.{name}" if path else name, child)
    inner, suffix = element(schema)
    if inner is not schema:
        yield from rules_with_paths(path + suffix, inner)


def _structural(schema: Schema) -> Schema:
    """Returns a schema as apiextensions/v1 expects it: with list types and integer formats, and int-or-string without a
    type.

    An object that may be empty is atomic. Otherwise the API server replaces the stored object by null, when {} is
    applied on the server side again.
    """
    schema = {keyword: value for keyword, value in schema.items() if (keyword, value) != _OPEN}
    if schema.get(_INT_OR_STRING):
        del schema["type"]
        schema["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    elif schema["type"] == "integer":
        narrow = schema.get("maximum", _INT32_MAXIMUM + 1) <= _INT32_MAXIMUM
        schema.setdefault("format", "int32" if narrow else "int64")
    elif schema["type"] == "array":
        schema.setdefault(_LIST_TYPE, "atomic")
    elif "properties" in schema and not schema.get("required") and "default" not in schema:
        schema |= _ATOMIC
    return each_child(schema, _structural)


def _without_defaults(schema: Schema) -> Schema:
    return each_child({keyword: value for keyword, value in schema.items() if keyword != "default"}, _without_defaults)


def _with_rules(schema: Schema, *rules: Rule) -> Schema:
    if not rules:
        return schema
    return schema | {_VALIDATIONS: [*schema.get(_VALIDATIONS, ()), *(rule.to_json() for rule in rules)]}
