"""Grafana dashboards of the chart, one file per dashboard.

Only this package and the dashboards of kinds of benchmark import grafana_foundation_sdk.
"""

from importlib import import_module

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from tierbench.generate.dashboards.overview import operator, overview
from tierbench.generate.dashboards.panels import name_of
from tierbench.kinds.registry import kinds


def dashboards() -> dict[str, str]:
    """Returns the JSON of all dashboards by name."""
    encoder = JSONEncoder(indent=1, sort_keys=True, ensure_ascii=False)
    of_kinds = [import_module(kind.dashboard).dashboard() for kind in kinds() if kind.dashboard]
    boards = [overview(), *of_kinds, operator()]
    return {name_of(board): encoder.encode(board) + "\n" for board in boards}
