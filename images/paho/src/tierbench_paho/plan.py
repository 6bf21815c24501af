"""The trial plan, held against its schema, which is generated from the operator's models."""

import json
from importlib.resources import files
from typing import Any, Final

from .contract import Json

_DEFINITIONS: Final[Json] = json.loads(files(__package__).joinpath("plan.schema.json").read_text())["$defs"]
_SHOWN: Final = 100
_TYPES: Final[dict[str, Any]] = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
_SIZES: Final = {"string": ("minLength", "maxLength"), "array": ("minItems", "maxItems")}


def read(text: str) -> Json:
    """Returns a plan for brokers, with defaults for what it leaves out.

    Raises:
        ValueError: what is wrong with it.
    """
    try:
        given = json.loads(text)
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from error
    plan: Json = _complete("", {"$ref": "BrokerPlan"}, given)
    return plan


def _complete(path: str, schema: Json, value: Any) -> Any:
    if "$ref" in schema:
        return _complete(path, _DEFINITIONS[schema["$ref"].rpartition("/")[2]], value)
    kind = schema["type"]
    if not isinstance(value, _TYPES[kind]) or (kind == "integer" and isinstance(value, bool)):
        raise ValueError(f"{path or 'the plan'} is {_show(value)}: write one of the type {kind}")
    if value not in schema.get("enum", [value]):
        raise ValueError(f"{path} is {_show(value)}: write {', '.join(map(_show, schema['enum']))}")
    low, high = _SIZES.get(kind, ("minimum", "maximum"))
    size = len(value) if kind in _SIZES else value
    if (low in schema and size < schema[low]) or (high in schema and size > schema[high]):
        unit = {"string": " characters", "array": " items"}.get(kind, "")
        raise ValueError(f"{path} is {_show(value)}: write {schema.get(low, 0)} to {schema.get(high, 'more')}{unit}")
    if kind == "array":
        return [_complete(f"{path}[{index}]", schema["items"], item) for index, item in enumerate(value)]
    return _object(path, schema, value) if kind == "object" else value


def _object(path: str, schema: Json, value: Json) -> Json:
    known, complete = schema["properties"], {}
    for name in value:
        if name not in known:
            raise ValueError(f"{path or 'the plan'} has no field {name!r}: it has {', '.join(sorted(known))}")
    for name, child in known.items():
        if name in value:
            complete[name] = _complete(f"{path}.{name}".lstrip("."), child, value[name])
        elif name in schema.get("required", ()):
            raise ValueError(f"{path or 'the plan'} lacks {name}: write it")
        elif "default" in child:
            complete[name] = child["default"]
    return complete


def _show(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
