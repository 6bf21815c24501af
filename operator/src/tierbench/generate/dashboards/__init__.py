"""Grafana dashboards, as the chart ships them: one file a dashboard. The only import of grafana_foundation_sdk."""

from collections.abc import Iterable
from typing import Final, Protocol

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from tierbench.generate.dashboards import operator, overview
from tierbench.generate.dashboards.board import name_of
from tierbench.kinds.registry import kind_modules


class DashboardModule(Protocol):
    """What a module in this package has: those of kinds of benchmark, and others."""

    def dashboard(self) -> Dashboard:
        """The dashboard."""


_MODULES: Final[Iterable[DashboardModule]] = (overview, *kind_modules("dashboard").values(), operator)


def dashboards() -> dict[str, str]:
    """The JSON of each, by its name."""
    encoder = JSONEncoder(indent=1, sort_keys=True, ensure_ascii=False)
    boards = [module.dashboard() for module in _MODULES]
    return {name_of(board): encoder.encode(board) + "\n" for board in boards}
