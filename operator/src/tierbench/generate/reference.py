"""The reference as Markdown: the API, conditions, trial plans, the command line, the chart's values and dashboards."""

import argparse
import ast
import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from tierbench.api.model import API_VERSION, Resource
from tierbench.api.schema import Schema, element, inline_references, object_schema, rules_with_paths
from tierbench.api.trial_plan import PLANS
from tierbench.domain import reasons
from tierbench.generate.chart import values_schema
from tierbench.generate.schemas import NOTICE, plan_definitions
from tierbench.kinds.registry import BENCHMARKS, Reasons, kind_of

_FIELD_HEADER: Final = ("Field", "Type", "Default", "Bounds", "Description")
_RULE_HEADER: Final = ("At", "Answer", "CEL")
_ARGUMENT_HEADER: Final = ("Argument", "Description")
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

_COMMAND_LINE: Final = "tierbench.cli.main"
"""By its name, because the command line imports the operator and not the other way round."""
_SENTENCE_END: Final = re.compile(r"(?<=[.?]) ")
_SECTION: Final = re.compile(r"^# (.+)$")
_CONDITIONS_HEAD: Final = """\
A condition is the state of a benchmark, a node class or an advice. A reason says why, as one word that scripts can
compare. The message next to it names the object, and says what to do.

- `kubectl describe` shows conditions and events.
- `kubectl get results` shows the reason of a failed or invalid case under VALID.

[Troubleshoot](../how-to/troubleshoot.md) begins with symptoms.

After you removed the cause of a failure, start another run with `kubectl tierbench rerun NAME`."""


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


def command_line_reference() -> str:
    """Returns a section for each command: its arguments and examples."""
    cli: Any = import_module(_COMMAND_LINE)
    parser = cli.Parser(add_help=False)
    cli.add_cluster_arguments(parser)
    shared = _rows(parser)
    parts = [
        f"<!-- {NOTICE.format(source='cli')} -->",
        f"# {cli.PROGRAM}",
        "Flags have the same meanings as in kubectl. Unless a command says otherwise, the exit code is 0 for success "
        "and 2 for an error. Every command has these arguments, and `--help`:",
        table(_ARGUMENT_HEADER, shared),
    ]
    for name, command in cli.COMMANDS.items():
        parser = cli.Parser(add_help=False)
        cli.add_arguments(name, parser)
        rows = [row for row in _rows(parser) if row not in shared]
        parts += [
            f"## {name}",
            command.help,
            table(_ARGUMENT_HEADER, rows),
            f"```sh\n{cli.show_examples(command)}\n```",
        ]
    return "\n\n".join(parts) + "\n"


def _rows(parser: argparse.ArgumentParser) -> list[tuple[str, str]]:
    """Returns the arguments of a parser with their descriptions."""
    rows = []
    for action in parser._actions:  # argparse has no public way to read them
        names = ", ".join(f"`{name}`" for name in action.option_strings)
        value = "" if action.nargs == 0 else str(action.metavar or "|".join(map(str, action.choices or ())))
        rows.append((f"{names} {value}".strip() if names else f"`{value}`", (action.help or "").replace("%%", "%")))
    return rows


@dataclass(frozen=True)
class Section:
    """A section of the reference: where its entries appear, and their meanings by name."""

    title: str
    meanings: Mapping[str, str]
    where: str = ""

    def __str__(self) -> str:
        """Returns the section as Markdown. The first sentence of a text is its meaning, the others say what to do."""
        rows = [(f"`{name}`", *_split(text)) for name, text in self.meanings.items()]
        columns = 3 if any(action for _, _, action in rows) else 2
        rendered = table(self.header[:columns], [row[:columns] for row in rows])
        return "\n\n".join(filter(None, (f"## {self.title}", self.where and f"Seen in: {self.where}.", rendered)))

    @property
    def header(self) -> tuple[str, ...]:
        """The heads of the columns. Conditions are seen in one place, so their sections name none."""
        return ("Reason", "Meaning", "What to do") if self.where else ("Condition", "True means", "More")


def conditions_reference() -> str:
    """Returns the reference of conditions, reasons and events."""
    notice = f"<!-- {NOTICE.format(source='domain/reasons.py and kinds')} -->"
    return "\n\n".join([notice, "# Conditions, reasons and events", _CONDITIONS_HEAD, *map(str, sections())]) + "\n"


def sections() -> Iterator[Section]:
    """Yields all conditions and reasons, in the order of the reference."""
    yield from documented_names(reasons)
    yield from _sections_of("any benchmark", reasons.OF_ANY_RESULT)
    for kind in BENCHMARKS:
        yield from _sections_of(kind, kind_of(kind).reasons)
    yield Section("Conditions of advices", reasons.ADVICE_CONDITIONS)
    yield Section("Answers of advices", reasons.ADVICE_VERDICTS, "conditions of an advice, `status.ranking`")
    yield Section("Caveats of advices", reasons.ADVICE_CAVEATS, "`status.caveats` of an advice")
    yield Section("Next measurements of advices", reasons.ADVICE_NEXT, "`status.recommendations` of an advice")


def _sections_of(kind: str, known: Reasons) -> Iterator[Section]:
    parts = (
        ("Failed cases", known.failures, "`status.reason` of a result"),
        ("Invalid results", known.invalid, "`status.invalid` of a result"),
        ("Facts", known.facts, "`status.facts` of a result, which stays valid"),
    )
    for title, meanings, where in parts:
        if meanings:
            yield Section(f"{title} of {kind}", dict(sorted(meanings.items())), where)


def documented_names(module: ModuleType) -> Iterator[Section]:
    """Yields the sections of a module of constants. A comment begins a section, and a text follows each constant.

    Raises:
        ValueError: a constant has no text, or is in no section.
    """
    source = inspect.getsource(module)
    texts = dict(_texts(ast.parse(source)))
    title, meanings = "", dict[str, str]()
    for number, line in enumerate(source.splitlines(), start=1):
        if heading := _SECTION.match(line):
            if meanings:
                yield _section(title, meanings)
            title, meanings = heading[1], {}
        elif number in texts:
            constant, text = texts[number]
            name = getattr(module, constant)
            if not isinstance(name, str):
                continue
            if not text or not title:
                raise ValueError(f"{module.__name__}.{constant} needs a section and a text below it: what it means")
            meanings[name] = text
    yield _section(title, meanings)


def _section(heading: str, meanings: Mapping[str, str]) -> Section:
    title, _, where = heading.partition(": ")
    return Section(title, meanings, where)


def _texts(tree: ast.Module) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yields for each constant its line, its name, and the text below it."""
    for statement, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield statement.lineno, (name, " ".join(text.split()))
            case ast.AnnAssign(target=ast.Name(id=name)), _:
                yield statement.lineno, (name, "")


def _split(text: str) -> tuple[str, str]:
    meaning, *action = _SENTENCE_END.split(text, maxsplit=1)
    return meaning, "".join(action)
