"""Generated files follow the conventions of the Kubernetes API."""

import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from tierbench.api.contract import Seal, TrialLine, TrialStartedLine
from tierbench.api.model import Model, Resource
from tierbench.api.schema import Schema, element, object_schema, resource_types
from tierbench.generate.__main__ import differences, write
from tierbench.generate.schemas import contract_schema

STARTED = {"contract": 1, "record": "TrialStarted", "trial": 1, "warmup": False, "time": "2026-11-20T22:00:00Z"}
TRIAL = {
    "contract": 1,
    "record": "Trial",
    "trial": 1,
    "outcome": "Completed",
    "startTime": "2026-11-20T22:00:00Z",
    "durationNanoseconds": 5,
    "transfer": {"bytes": 3, "retryCauses": {"Stalled": 1}},
    "distributions": {"downloadDuration": {"schema": 6, "count": 1, "indexes": [4], "counts": [1]}},
}
SEAL = {
    "contract": 1,
    "trials": 1,
    "sha256": "0" * 64,
    "engine": {"name": "tierbench-client", "version": "0.1.0", "architecture": "arm"},
}


def fields(path: str, schema: Schema) -> Iterator[tuple[str, Schema, bool]]:
    """Yields every schema below this one, with its path and whether it is a field (no element of a list or map)."""
    for name, child in schema.get("properties", {}).items():
        yield f"{path}.{name}", child, True
        yield from fields(f"{path}.{name}", child)
    inner, suffix = element(schema)
    if inner is not schema:
        yield path + suffix, inner, False
        yield from fields(path + suffix, inner)


def is_bounded(schema: Schema) -> bool:
    if "items" in schema:
        return "maxItems" in schema
    if isinstance(schema.get("additionalProperties"), dict):
        return "maxProperties" in schema
    if schema.get("type") == "string":
        return "maxLength" in schema or "enum" in schema or schema.get("format") == "date-time"
    return True


def test_check_shows_differences_until_they_are_written(tmp_path: Path) -> None:
    files = {"docs/a.md": "one\ntwo\n"}
    assert [line for line in differences(tmp_path, files) if line.startswith("+")] == [
        "+++ docs/a.md (generated)",
        "+one",
        "+two",
    ]
    write(tmp_path, files)
    assert differences(tmp_path, files) == []
    (tmp_path / "docs" / "a.md").write_text("one\nthree\n")
    assert "-three" in differences(tmp_path, files)


@pytest.mark.parametrize("model", resource_types())
def test_every_field_is_described_and_bounded(model: type[Resource]) -> None:
    properties = object_schema(model)["properties"]
    for part in ("spec", "status"):
        below = list(fields(part, properties[part]))
        assert [path for path, schema, is_field in below if is_field and "description" not in schema] == []
        assert [path for path, schema, _ in below if not is_bounded(schema)] == []
        assert [path for path, schema, _ in below if schema.get("type") == "number"] == []


@pytest.mark.parametrize("model", resource_types())
def test_a_status_has_no_defaults(model: type[Resource]) -> None:
    status = object_schema(model)["properties"]["status"]
    assert [path for path, schema, _ in fields("status", status) if "default" in schema] == []


@pytest.mark.parametrize(("record", "model"), [(STARTED, TrialStartedLine), (TRIAL, TrialLine), (SEAL, Seal)])
def test_contract_accepts_the_models_and_nothing_unknown(record: dict[str, object], model: type[Model]) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(contract_schema()))
    model.model_validate(record)
    assert list(validator.iter_errors(record)) == []
    assert list(validator.iter_errors(model.model_validate(record).to_json())) == []
    assert list(validator.iter_errors(record | {"unknown": 1})) != []
    assert list(validator.iter_errors(record | {"contract": 2})) != []
