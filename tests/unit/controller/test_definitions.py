"""The check of the served definitions: missing fields, and the condition about them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.apiserver.client import InProcessKube
from tests.unit.apiserver.server import ApiServer
from tierbench.api.model import Resource
from tierbench.api.schema import object_schema, outline, resource_types
from tierbench.controller.definitions import DefinitionCheck, check_definitions, missing_fields
from tierbench.kube.client import ApiError
from tierbench.metrics.operator import OperatorMetrics

INDEX, DOCUMENT = "/openapi/v3", "/openapi/v3/apis/tierbench.io/v1alpha1"
NOW_TIME = "2026-01-01T00:00:00Z"
CONDITION_STATUSES = ["True", "False", "Unknown"]  # Kubernetes' own, which do not change


def schema(**status: Any) -> dict[str, Any]:
    return {"properties": {"metadata": {}, "spec": {"properties": {}}, "status": {"properties": status}}}


def thing(**status: Any) -> dict[str, Any]:
    return {"Thing": schema(**status)}


def served(edition: str, **kinds: Any) -> dict[str, Any]:
    """Returns the documents that the API server publishes."""
    group = {"group": "tierbench.io", "version": "v1alpha1"}
    schemas = {
        kind: {**found, "x-kubernetes-group-version-kind": [{**group, "kind": kind}]} for kind, found in kinds.items()
    }
    return {
        INDEX: {"paths": {DOCUMENT.removeprefix(f"{INDEX}/"): {"serverRelativeURL": f"{DOCUMENT}?hash={edition}"}}},
        DOCUMENT: {"components": {"schemas": schemas}},
    }


def own_schemas() -> dict[str, Any]:
    return {model.KIND.kind: object_schema(model) for model in resource_types()}


def test_equal_definitions_have_no_missing_fields() -> None:
    assert not tuple(missing_fields(own_schemas(), own_schemas()))


def names(schema: dict[str, Any]) -> dict[str, Any]:
    """Reduces a schema to its fields and enum values, and those of items and map values."""
    single = {key: names(schema[key]) for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)}
    properties = {name: names(child) for name, child in schema.get("properties", {}).items()}
    values = schema.get("enum") if schema.get("enum") != CONDITION_STATUSES else None
    return single | {key: value for key, value in (("properties", properties), ("enum", values)) if value}


@pytest.mark.parametrize("model", resource_types())
def test_an_outline_has_every_name_of_the_definition(model: type[Resource]) -> None:
    for part in ("spec", "status"):
        assert names(outline(model)["properties"][part]) == names(object_schema(model)["properties"][part])


def test_missing_fields_enum_values_and_kinds_are_listed() -> None:
    trials = {"type": "array", "items": {"properties": {"number": {}, "heat": {"properties": {"peak": {}}}}}}
    fewer = {"type": "array", "items": {"properties": {"number": {}}}}
    phase, other = {"enum": ["Running", "Ended"]}, {"enum": ["Running", "Over"]}
    sums: dict[str, Any] = {"additionalProperties": {"properties": {"sum": {}, "mean": {}}}}
    fewer_sums: dict[str, Any] = {"additionalProperties": {"properties": {"sum": {}}}}
    anything = {"x-kubernetes-preserve-unknown-fields": True}
    wanted = thing(trials=trials, phase=phase, sums=sums, any={"properties": {"a": {}}}) | {"Other": schema()}
    found = tuple(missing_fields(wanted, thing(trials=fewer, phase=other, sums=fewer_sums, any=anything, more={})))
    assert found == (
        "Thing status.trials[].heat",
        "Thing status.phase: Ended",
        "Thing status.sums.*.mean",
        "Other",
    )


async def test_definitions_are_read_once_per_edition() -> None:
    api, check, metrics = ApiServer(), DefinitionCheck(), OperatorMetrics()
    kube = InProcessKube(api)
    older = own_schemas()
    del older["BenchmarkResult"]["properties"]["status"]["properties"]["storedBytes"]
    api.objects |= served("1", **older)
    assert await check_definitions(kube, check, metrics)
    assert check.missing == ("BenchmarkResult status.storedBytes",)
    assert "status.storedBytes. Runs wait" in check.message
    assert "kubectl apply --server-side" in check.message
    assert metrics.registry.get_sample_value("tierbench_definitions_differ", {"reason": "DefinitionsOlder"}) == 1
    del api.objects[DOCUMENT]
    assert not await check_definitions(kube, check, metrics), "the same edition is not read again"
    api.objects |= served("2", **older)
    assert not await check_definitions(kube, check, metrics), "an edition of equal definitions changes nothing"
    api.objects |= served("3", **own_schemas())
    assert await check_definitions(kube, check, metrics)
    assert not check.missing
    assert metrics.registry.get_sample_value("tierbench_definitions_differ", {"reason": "DefinitionsOlder"}) == 0


async def test_unreadable_definitions_change_nothing() -> None:
    api, check = ApiServer(), DefinitionCheck()
    api.refuse["GET", INDEX] = ApiError(503, "ServiceUnavailable", "later")
    assert not await check_definitions(InProcessKube(api), check, OperatorMetrics())
    assert (check.missing, check.digest) == ((), "")


def test_condition_is_written_once_and_keeps_its_transition_time() -> None:
    now, check = datetime(2026, 1, 2, tzinfo=UTC), DefinitionCheck()
    check.missing = ("BenchmarkResult status.a",)
    ready = {"type": "Ready", "status": "True"}
    raw: dict[str, Any] = {"metadata": {"generation": 3}, "status": {"conditions": [ready]}}
    first = check.conditions(raw, now)
    assert first is not None
    assert first[0] == ready
    assert (first[1]["status"], first[1]["reason"], first[1]["observedGeneration"]) == ("True", "DefinitionsOlder", 3)
    raw["status"]["conditions"] = [ready, {**first[1], "lastTransitionTime": NOW_TIME}]
    assert check.conditions(raw, now) is None
    check.missing = ("BenchmarkResult status.b",)
    second = check.conditions(raw, now)
    assert second is not None
    assert (second[1]["lastTransitionTime"], "status.b" in second[1]["message"]) == (NOW_TIME, True)
    assert len(second) == 2
