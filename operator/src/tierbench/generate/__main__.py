"""Writes all generated files, or shows with --check which ones differ."""

import argparse
import sys
from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path

from tierbench.api.schema import resource_types
from tierbench.generate.admission import admission_template
from tierbench.generate.chart import (
    checked_template,
    crd_template,
    rules_template,
    user_roles_template,
    values_schema_json,
    values_yaml,
)
from tierbench.generate.dashboards import dashboards
from tierbench.generate.reference import (
    command_line_reference,
    conditions_reference,
    dashboards_reference,
    kind_reference,
    plan_reference,
    values_reference,
)
from tierbench.generate.schemas import contract_schema, crd_yaml, plan_schema, plan_types

_CHART = "charts/tierbench"
_PLAN = "images/client/internal/plan"
_REFERENCE = "docs/reference"
_CONTEXT_LINES = 1


def generated_files() -> dict[str, str]:
    """Returns the content of all generated files by their path below the project's root."""
    crds = {f"crds/{model.KIND.plural}.yaml": crd_yaml(model) for model in resource_types()}
    templates = {f"{_CHART}/templates/crds/{model.KIND.plural}.yaml": crd_template(model) for model in resource_types()}
    references = {f"{_REFERENCE}/{model.KIND.plural}.md": kind_reference(model) for model in resource_types()}
    boards = dashboards()
    return {
        **crds,
        **{f"{_CHART}/dashboards/{name}.json": content for name, content in boards.items()},
        **templates,
        **references,
        f"{_REFERENCE}/command-line.md": command_line_reference(),
        f"{_REFERENCE}/conditions.md": conditions_reference(),
        f"{_REFERENCE}/dashboards.md": dashboards_reference(boards),
        f"{_REFERENCE}/trial-plan.md": plan_reference(),
        f"{_REFERENCE}/values.md": values_reference(),
        f"{_CHART}/templates/_checked.tpl": checked_template(),
        f"{_CHART}/templates/_rules.tpl": rules_template(),
        f"{_CHART}/templates/admission.yaml": admission_template(),
        f"{_CHART}/templates/user-roles.yaml": user_roles_template(),
        f"{_CHART}/values.yaml": values_yaml(),
        f"{_CHART}/values.schema.json": values_schema_json(),
        "images/client/contract.schema.json": contract_schema(),
        f"{_PLAN}/types.go": plan_types(),
        f"{_PLAN}/plan.schema.json": plan_schema(),
    }


def differences(root: Path, files: Mapping[str, str]) -> list[str]:
    """Returns how files below `root` differ from the generated ones, as lines of a unified diff."""
    lines: list[str] = []
    for name, content in files.items():
        path = root / name
        current = path.read_text() if path.exists() else ""
        lines += unified_diff(
            current.splitlines(), content.splitlines(), name, f"{name} (generated)", lineterm="", n=_CONTEXT_LINES
        )
    return lines


def write(root: Path, files: Mapping[str, str]) -> None:
    """Writes the files that differ."""
    for name, content in files.items():
        path = root / name
        if not path.exists() or path.read_text() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
            print(f"wrote {name}")


def main() -> int:
    """Returns 0 for success, 1 if --check finds a difference, 2 if the current directory is not the project's root."""
    parser = argparse.ArgumentParser(prog="python -m tierbench.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if a file differs")
    arguments, root = parser.parse_args(), Path.cwd()
    if not (root / "operator" / "src" / "tierbench").is_dir():
        print(f"{root} is not the project's root: change to it", file=sys.stderr)
        return 2
    files = generated_files()
    if not arguments.check:
        write(root, files)
        return 0
    lines = differences(root, files)
    if lines:
        print("\n".join(lines))
        print("\ngenerated files differ: run `python -m tierbench.generate` and commit the result", file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
