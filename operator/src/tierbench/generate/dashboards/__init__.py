"""Grafana dashboards of the chart, one file per dashboard.

Only this package and the dashboards of kinds of benchmark import grafana_foundation_sdk.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import Protocol

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from tierbench.generate.dashboards import operator, overview
from tierbench.generate.dashboards.panels import name_of
from tierbench.kinds.registry import kinds


class DashboardModule(Protocol):
    """A module of this package or of a kind of benchmark that defines a dashboard."""

    def dashboard(self) -> Dashboard:
        """Returns the dashboard."""


def _modules() -> Iterator[DashboardModule]:
    yield overview
    for kind in kinds():
        if kind.dashboard:
            yield import_module(kind.dashboard)
    yield operator


def dashboards() -> dict[str, str]:
    """Returns the JSON of all dashboards by name."""
    encoder = JSONEncoder(indent=1, sort_keys=True, ensure_ascii=False)
    boards = [module.dashboard() for module in _modules()]
    return {name_of(board): encoder.encode(board) + "\n" for board in boards}
