"""The schemas that others read: CustomResourceDefinitions, and the JSON Schemas of what a client reads and prints."""

import json
from collections.abc import Mapping
from typing import Any, Final

import yaml
from pydantic.json_schema import models_json_schema

from tierbench.api.check import CheckLine
from tierbench.api.contract import CONTRACT_VERSION, Seal, TrialLine, TrialStartedLine
from tierbench.api.model import GROUP, VERSION, Column, Model, Resource
from tierbench.api.schema import Schema, each_child, object_schema, simplify
from tierbench.api.trial_plan import PLANS

WIDTH: Final = 120
NOTICE: Final = "Generated from operator/src/tierbench/{source}: change that, then run `make generate`."
CATEGORY: Final = "tierbench"
_RECORDS: Final[Mapping[str, type[Model]]] = {
    "Trial": TrialLine,
    "TrialStarted": TrialStartedLine,
    "Seal": Seal,
    "Check": CheckLine,
}


def custom_resource_definition(model: type[Resource]) -> dict[str, Any]:
    """Returns the CRD of a kind."""
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
                "categories": [CATEGORY, *kind.categories],
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
    """Returns the CRD of a kind as a file for `kubectl apply`."""
    return f"# {NOTICE.format(source='api')}\n" + to_yaml(custom_resource_definition(model))


def _printer_column(column: Column) -> dict[str, Any]:
    body: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.json_path}
    if column.priority:
        body["priority"] = column.priority
    if column.description:
        body["description"] = column.description
    return body


def contract_schema() -> str:
    """Returns the JSON Schema of the records of the contract. It allows no additional fields."""
    _, generated = models_json_schema([(model, "validation") for model in _RECORDS.values()])
    definitions = {name: _closed(simplify(schema)) for name, schema in generated["$defs"].items()}
    for record, model in _RECORDS.items():
        definitions[record] = definitions.pop(model.__name__)
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:tierbench:client-contract:{CONTRACT_VERSION}",
        "description": "A line that a tierbench client prints, or its termination message (Seal, Check).",
        "oneOf": [{"$ref": f"#/$defs/{record}"} for record in _RECORDS],
        "$defs": dict(sorted(definitions.items())),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def plan_definitions() -> Schema:
    """Returns the JSON Schemas of the trial plans and of their parts, by name."""
    _, generated = models_json_schema([(model, "validation") for model in PLANS])
    return {name: _closed(simplify(schema)) for name, schema in sorted(generated["$defs"].items())}


def plan_schema() -> str:
    """Returns the JSON Schema of a trial plan. It allows no additional fields."""
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:tierbench:trial-plan:{CONTRACT_VERSION}",
        "description": "What a tierbench client does.",
        "oneOf": [{"$ref": f"#/$defs/{model.__name__}"} for model in PLANS],
        "$defs": plan_definitions(),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _closed(schema: Schema) -> Schema:
    if "properties" in schema:
        schema = schema | {"additionalProperties": False}
    return each_child(schema, _closed)


def to_yaml(value: Any, *, flat_leaves: bool = False) -> str:
    """Returns YAML in the order of the value, without anchors. With `flat_leaves`, lists of scalars take one line."""
    style = None if flat_leaves else False
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH, default_flow_style=style)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True
