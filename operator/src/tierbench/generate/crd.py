"""A kind's CustomResourceDefinition: its models as a structural schema, its rules, its columns."""

from collections.abc import Iterator
from typing import Any, Final

from tierbench.api.benchmark import Benchmark
from tierbench.api.model import GROUP, IMMUTABLE, VERSION, Column, Resource, Rule
from tierbench.generate.render import NOTICE, to_yaml
from tierbench.generate.schema import Schema, each_child, element, inlined, plain

CATEGORY: Final = "tierbench"
_VALIDATIONS: Final = "x-kubernetes-validations"

_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_LIST_TYPE: Final = "x-kubernetes-list-type"
_INT32_MAXIMUM: Final = 2**31 - 1
_OPEN: Final = ("additionalProperties", True)  # models keep what is stored of newer versions; a definition names all
_MUTABLE: Final = "runPolicy"


def custom_resource_definition(model: type[Resource]) -> dict[str, Any]:
    """The CRD of a kind, as the API server takes it."""
    kind = model.KIND
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.singular,
                "shortNames": list(kind.short_names),
                "categories": [CATEGORY],
            },
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [_printer_column(column) for column in kind.columns],
                    "schema": {"openAPIV3Schema": object_schema(model)},
                }
            ],
        },
    }


def crd_yaml(model: type[Resource]) -> str:
    """The same as a file for `kubectl apply`."""
    return f"# {NOTICE.format(source='api')}\n" + to_yaml(custom_resource_definition(model))


def object_schema(model: type[Resource]) -> Schema:
    """The structural schema of a whole object.

    A status bears no defaults: what it does not say is not known.
    """
    generated = model.model_json_schema(by_alias=True)
    properties = inlined(plain(generated), plain(generated)["$defs"])["properties"]
    spec, status = _structural(properties["spec"]), _without_defaults(_structural(properties["status"]))
    if issubclass(model, Benchmark):
        spec = _frozen(spec)
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


def placed_rules(path: str, schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Every CEL rule at and below `path`, with the path that it stands at, as in spec.servers.nodeClasses[]."""
    yield from ((path, rule) for rule in schema.get(_VALIDATIONS, ()))
    for name, child in schema.get("properties", {}).items():
        yield from placed_rules(f"{path}.{name}" if path else name, child)
    inner, suffix = element(schema)
    if inner is not schema:
        yield from placed_rules(path + suffix, inner)


def _printer_column(column: Column) -> dict[str, Any]:
    body: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.json_path}
    if column.priority:
        body["priority"] = column.priority
    if column.description:
        body["description"] = column.description
    return body


def _structural(schema: Schema) -> Schema:
    """As apiextensions/v1 takes it: list types and integer formats spelled out, int-or-string without a type."""
    schema = {keyword: value for keyword, value in schema.items() if (keyword, value) != _OPEN}
    if schema.get(_INT_OR_STRING):
        del schema["type"]
        schema["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    elif schema["type"] == "integer":
        narrow = schema.get("maximum", _INT32_MAXIMUM + 1) <= _INT32_MAXIMUM
        schema.setdefault("format", "int32" if narrow else "int64")
    elif schema["type"] == "array":
        schema.setdefault(_LIST_TYPE, "atomic")
    return each_child(schema, _structural)


def _without_defaults(schema: Schema) -> Schema:
    return each_child({keyword: value for keyword, value in schema.items() if keyword != "default"}, _without_defaults)


def _with_rules(schema: Schema, *rules: Rule) -> Schema:
    if not rules:
        return schema
    return schema | {_VALIDATIONS: [*schema.get(_VALIDATIONS, ()), *(rule.to_json() for rule in rules)]}


def _frozen(spec: Schema) -> Schema:
    """A spec of which nothing but the run policy can change once the object exists.

    A rule on a field holds only while the field is there, so fields that may be absent need one above them as well.
    """
    properties = {
        name: schema if name == _MUTABLE else _with_rules(schema, IMMUTABLE)
        for name, schema in spec["properties"].items()
    }
    optional = [
        name
        for name, schema in properties.items()
        if name != _MUTABLE and name not in spec["required"] and "default" not in schema
    ]
    kept = (Rule(f"has(self.{name}) == has(oldSelf.{name})", f"{name} {IMMUTABLE.message}") for name in optional)
    return _with_rules(spec | {"properties": properties}, *kept)
