"""Reads the dashboards and alerts of the chart, and the queries in them."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

CHART: Final = Path(__file__).parents[1] / "charts" / "tierbench"
BY: Final = "by"
ALERTS: Final = CHART / "alerts.yaml"
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+):(\w+)\}|(\w+))")
_LABEL_VALUES: Final = re.compile(r"label_values\((.+), (\w+)\)")
_QUERY_RESULT: Final = re.compile(r"query_result\((.+)\)")
_QUOTED: Final = "doublequote"
Json = dict[str, Any]


@dataclass(frozen=True)
class Dashboard:
    """A dashboard, named after its file."""

    name: str
    body: Json

    @property
    def panels(self) -> list[Json]:
        """The panels that show something."""
        return [panel for panel in self.body["panels"] if panel["type"] != "row"]

    @property
    def targets(self) -> Iterator[tuple[str, Json]]:
        """Yields every query, with its panel's title."""
        for panel in self.panels:
            for target in panel["targets"]:
                yield panel["title"], target

    @property
    def variables(self) -> Mapping[str, Json]:
        """The variables that a user can set, by name."""
        return {variable["name"]: variable for variable in self.body["templating"]["list"]}

    @property
    def label_queries(self) -> dict[str, tuple[str, str]]:
        """The series and the label that provide the values of a variable, by its name."""
        found = {name: _LABEL_VALUES.fullmatch(variable["query"]) for name, variable in self.variables.items()}
        return {name: (match[1], match[2]) for name, match in found.items() if match is not None}

    @property
    def varying(self) -> str | None:
        """The query for the labels in which results differ, if the dashboard groups by them."""
        variable = self.variables.get(BY)
        found = variable and _QUERY_RESULT.fullmatch(variable["query"])
        return found[1] if found else None

    def shown(self, expression: str, by: Sequence[str] = ("server_class",), **chosen: str) -> str:
        """Returns an expression grouped by the labels in `by`, with the variables in `chosen`.

        The other variables have the values with which the dashboard opens.
        """

        def value(match: re.Match[str]) -> str:
            if match[1] == BY:
                return ",".join(f'"{label}"' if match[2] == _QUOTED else label for label in by)
            return chosen.get(match[3]) or self._first(match[3])

        return _VARIABLE.sub(value, expression)

    def _first(self, name: str) -> str:
        if name == "__rate_interval":
            return "1m"
        variable = self.variables[name]
        value: str = variable["current"]["value"]
        return str(variable["allValue"]) if value == "$__all" else value


def dashboards() -> list[Dashboard]:
    """Returns all dashboards."""
    return [Dashboard(path.stem, json.loads(path.read_text())) for path in sorted(CHART.glob("dashboards/*.json"))]


def alerts() -> list[Json]:
    """Returns the alerting rules."""
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def variables_in(expression: str) -> set[str]:
    """Returns the variables in an expression."""
    return {match[1] or match[3] for match in _VARIABLE.finditer(expression)}
