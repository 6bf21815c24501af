"""The JSON Schema of what a client prints, for both sides to check."""

import json
from collections.abc import Mapping
from typing import Final

from pydantic.json_schema import models_json_schema

from tierbench.api.contract import CONTRACT_VERSION, Seal, TrialLine, TrialStartedLine
from tierbench.api.model import Model
from tierbench.api.schema import Schema, each_child, plain

_RECORDS: Final[Mapping[str, type[Model]]] = {"Trial": TrialLine, "TrialStarted": TrialStartedLine, "Seal": Seal}


def contract_schema() -> str:
    """One of the records of the contract, with no field that the contract does not know."""
    _, generated = models_json_schema([(model, "validation") for model in _RECORDS.values()])
    definitions = {name: _closed(plain(schema)) for name, schema in generated["$defs"].items()}
    for record, model in _RECORDS.items():
        definitions[record] = definitions.pop(model.__name__)
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:tierbench:client-contract:{CONTRACT_VERSION}",
        "description": "A line that a tierbench client prints, or its termination message (Seal).",
        "oneOf": [{"$ref": f"#/$defs/{record}"} for record in _RECORDS],
        "$defs": dict(sorted(definitions.items())),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _closed(schema: Schema) -> Schema:
    if "properties" in schema:
        schema = schema | {"additionalProperties": False}
    return each_child(schema, _closed)
