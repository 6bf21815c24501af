"""The dashboards and alerts as the chart ships them, and the queries in them."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

CHART: Final = Path(__file__).parents[1] / "charts" / "tierbench"
ALERTS: Final = CHART / "alerts.yaml"
_VARIABLE: Final = re.compile(r"\$(\w+)")
_LABEL_VALUES: Final = re.compile(r"label_values\((.+), (\w+)\)")
Json = dict[str, Any]


@dataclass(frozen=True)
class Dashboard:
    """One of them, by the name of its file."""

    name: str
    body: Json

    @property
    def panels(self) -> list[Json]:
        """Those that show something."""
        return [panel for panel in self.body["panels"] if panel["type"] != "row"]

    @property
    def targets(self) -> Iterator[tuple[str, Json]]:
        """Every query of every panel, with the panel's title."""
        for panel in self.panels:
            for target in panel["targets"]:
                yield panel["title"], target

    @property
    def variables(self) -> Mapping[str, Json]:
        """What can be chosen, by name."""
        return {variable["name"]: variable for variable in self.body["templating"]["list"]}

    @property
    def label_queries(self) -> dict[str, tuple[str, str]]:
        """The series and the label whose values can be chosen, by the variable's name."""
        found = {name: _LABEL_VALUES.fullmatch(variable["query"]) for name, variable in self.variables.items()}
        return {name: (match[1], match[2]) for name, match in found.items() if match is not None}

    def shown(self, expression: str, **chosen: str) -> str:
        """The expression with these variables chosen, and the others as they are when the dashboard opens."""
        return _VARIABLE.sub(lambda match: chosen.get(match[1]) or self._first(match[1]), expression)

    def _first(self, name: str) -> str:
        if name == "__rate_interval":
            return "1m"
        variable = self.variables[name]
        value: str = variable["current"]["value"]
        return str(variable["allValue"]) if value == "$__all" else value


def dashboards() -> list[Dashboard]:
    """All of them."""
    return [Dashboard(path.stem, json.loads(path.read_text())) for path in sorted(CHART.glob("dashboards/*.json"))]


def alerts() -> list[Json]:
    """The alerting rules."""
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def variables_in(expression: str) -> set[str]:
    """The variables that it needs."""
    return set(_VARIABLE.findall(expression))
