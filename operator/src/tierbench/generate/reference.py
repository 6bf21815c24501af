"""The reference of the API, of trial plans, of the chart's values and of its dashboards, as Markdown."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tierbench.api.model import API_VERSION, Resource
from tierbench.api.schema import Schema, element, inline_references, object_schema, rules_with_paths
from tierbench.api.trial_plan import PLANS
from tierbench.generate.chart import values_schema
from tierbench.generate.schemas import NOTICE, plan_definitions

_FIELD_HEADER: Final = ("Field", "Type", "Default", "Bounds", "Description")
_RULE_HEADER: Final = ("At", "Answer", "CEL")
_PANEL_HEADER: Final = ("Panel", "Question")
_PLAN_HEAD: Final = """\
A trial plan is a JSON document that says what a client measures. The operator writes it into the arguments of the
client's container, where `kubectl describe` shows it. By hand, run
`tierbench-client measure --plan "$(cat plan.json)"`. A client refuses unknown fields and values out of bounds
([ADR 0078](../adr/0078-give-a-client-one-trial-plan.md))."""
_RANGES: Final = (
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " items"),
    ("minProperties", "maxProperties", " entries"),
)


def kind_reference(model: type[Resource]) -> str:
    """Returns the reference of a kind: its columns, all fields of spec and status, and all rules."""
    kind, schema = model.KIND, object_schema(model)
    scope = "namespaced" if kind.namespaced else "cluster-scoped"
    names = ", ".join(f"`kubectl get {name}`" for name in (kind.plural, *kind.short_names, *kind.categories))
    columns = [
        (column.name, f"`{column.json_path}`", column.description, "with `-o wide`" if column.priority else "")
        for column in kind.columns
    ]
    parts = [
        f"<!-- {NOTICE.format(source='api')} -->",
        f"# {kind.kind}",
        schema["description"],
        f"`apiVersion: {API_VERSION}`, {scope}; {names}.",
        "## Columns",
        table(("Column", "From", "Meaning", "Shown"), columns),
        *(_fields_section(name, schema["properties"][name]) for name in ("spec", "status")),
    ]
    places: dict[tuple[str, str], list[str]] = {}
    for place, rule in rules_with_paths("", schema):
        places.setdefault((rule["message"], rule["rule"]), []).append(f"`{place}`" if place else "the object")
    rules = [(", ".join(at), message, f"`{rule}`") for (message, rule), at in places.items()]
    parts += ["## Rules", "The API server refuses objects that break one of these rules.", table(_RULE_HEADER, rules)]
    return "\n\n".join(parts) + "\n"


def plan_reference() -> str:
    """Returns the reference of trial plans: all fields of each kind."""
    parts = [
        f"<!-- {NOTICE.format(source='api/trial_plan.py')} -->",
        "# Trial plan",
        _PLAN_HEAD,
    ]
    definitions = plan_definitions()
    for model in PLANS:
        schema = inline_references(definitions[model.__name__], definitions)
        title = schema["properties"]["kind"]["enum"][0]
        parts.append(f"## {title}\n\n{schema['description']}\n\n{table(_FIELD_HEADER, list(_fields('', schema)))}")
    return "\n\n".join(parts) + "\n"


def values_reference() -> str:
    """Returns the reference of the chart's values."""
    parts = [
        f"<!-- {NOTICE.format(source='generate/values.py')} -->",
        "# Values of the Helm chart",
        "Helm refuses other values, and values out of bounds.",
        table(_FIELD_HEADER, list(_fields("", values_schema()))),
    ]
    return "\n\n".join(parts) + "\n"


def dashboards_reference(boards: Mapping[str, str]) -> str:
    """Returns the reference of the dashboards: the question that each panel answers. `boards` are JSON by name."""
    parts = [
        f"<!-- {NOTICE.format(source='generate/dashboards')} -->",
        "# Panels of the dashboards",
        "Each panel answers one question. [Use dashboards](../how-to/use-dashboards.md) says how to select results.",
    ]
    for board in map(json.loads, boards.values()):
        panels = [panel for panel in board["panels"] if panel["type"] != "row"]
        pages = dict.fromkeys(panel["description"].rpartition(" See docs/")[2].partition(",")[0] for panel in panels)
        parts += [
            f"## {board['title'].removeprefix('tierbench / ')}",
            board["description"],
            f"More on these panels: {', '.join(f'[{Path(page).stem}](../{page})' for page in pages)}.",
            table(_PANEL_HEADER, [_panel(panel) for panel in panels]),
        ]
    return "\n\n".join(parts) + "\n"


def _panel(panel: Mapping[str, Any]) -> Sequence[str]:
    return panel["title"], f"{panel['description'].partition('? ')[0]}?"


def _fields_section(name: str, schema: Schema) -> str:
    return f"## {name}\n\n{schema['description']}\n\n{table(_FIELD_HEADER, list(_fields(name, schema)))}"


def _fields(path: str, schema: Schema) -> Iterator[Sequence[str]]:
    """Yields a row for each field below `schema`, in the order of the models."""
    for name, child in schema.get("properties", {}).items():
        field = f"{path}.{name}" if path else name
        required = name in schema.get("required", ())
        yield f"`{field}`", _type(child), _default(child, required), _bounds(child), child.get("description", "")
        inner, suffix = element(child)
        yield from _fields(field + suffix, inner)


def _type(schema: Schema) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "size"
    inner, _ = element(schema)
    if "items" in schema:
        return f"list of {_type(inner)}"
    if inner is not schema:
        return f"map to {_type(inner)}"
    return str(schema.get("type", "object" if "properties" in schema else "any"))


def _default(schema: Schema, required: bool) -> str:
    if required:
        return "required"
    if "default" not in schema or "properties" in schema:
        return ""
    return f"`{json.dumps(schema['default'], ensure_ascii=False)}`"


def _bounds(schema: Schema) -> str:
    inner, _ = element(schema)
    bounds = _own_bounds(schema)
    if inner is not schema:
        bounds += [f"each {bound}" for bound in _own_bounds(inner)]
    return "; ".join(bounds)


def _own_bounds(schema: Schema) -> list[str]:
    bounds = []
    if "enum" in schema:
        bounds.append(", ".join(f"`{value}`" for value in schema["enum"]))
    for low, high, unit in _RANGES:
        if low in schema and high in schema:
            bounds.append(f"{schema[low]} to {schema[high]}{unit}")
        elif low in schema:
            bounds.append(f"at least {schema[low]}{unit}")
        elif high in schema:
            bounds.append(f"at most {schema[high]}{unit}")
    if "pattern" in schema:
        bounds.append(f"`{schema['pattern']}`")
    if schema.get("format") == "date-time":
        bounds.append("RFC 3339")
    if schema.get("x-kubernetes-list-type") == "set" or schema.get("uniqueItems"):
        bounds.append("each once")
    return bounds


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Returns a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
