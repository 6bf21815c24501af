"""The JSON Schema that pydantic makes, in the plain form that all generators start from."""

from collections.abc import Callable
from typing import Any

Schema = dict[str, Any]

_DEFINITIONS = "#/$defs/"


def plain(schema: Schema) -> Schema:
    """Without titles, without null (a field is there or is not), constants as enums of one."""
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
    return each_child(schema, plain)


def inlined(schema: Schema, definitions: Schema) -> Schema:
    """Without references. What stands beside a reference wins over what it refers to."""
    if "$ref" in schema:
        target = definitions[schema["$ref"].removeprefix(_DEFINITIONS)]
        schema = target | {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
    return each_child(
        {keyword: value for keyword, value in schema.items() if keyword != "$defs"},
        lambda child: inlined(child, definitions),
    )


def each_child(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """A copy in which every schema directly below has been changed."""
    schema = dict(schema)
    for group in ("properties", "$defs"):
        if group in schema:
            schema[group] = {name: change(child) for name, child in schema[group].items()}
    for single in ("items", "additionalProperties"):
        if isinstance(schema.get(single), dict):
            schema[single] = change(schema[single])
    return schema


def element(schema: Schema) -> tuple[Schema, str]:
    """The schema of what a list or a map holds and how that is written in a path; else `schema` itself."""
    if "items" in schema:
        return schema["items"], "[]"
    if isinstance(schema.get("additionalProperties"), dict):
        return schema["additionalProperties"], ".*"
    return schema, ""


def without_null(value: Any) -> Any:
    """A JSON value without the members of objects that are null."""
    if isinstance(value, dict):
        return {name: without_null(member) for name, member in value.items() if member is not None}
    return value
