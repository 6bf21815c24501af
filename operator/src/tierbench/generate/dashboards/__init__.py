"""Grafana dashboards, as the chart ships them: one file a dashboard. The only import of grafana_foundation_sdk."""

from types import ModuleType
from typing import Final

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from tierbench.generate.dashboards import brokers, file_transfers, networks, operator, overview

_DASHBOARDS: Final[tuple[ModuleType, ...]] = (overview, file_transfers, brokers, networks, operator)


def dashboards() -> dict[str, str]:
    """The JSON of each, by its name."""
    encoder = JSONEncoder(indent=1, sort_keys=True, ensure_ascii=False)
    return {
        module.__name__.rpartition(".")[2].replace("_", "-"): encoder.encode(module.dashboard()) + "\n"
        for module in _DASHBOARDS
    }
