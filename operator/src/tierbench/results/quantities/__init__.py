"""The quantities that trials give: one file a kind of benchmark. Each name ends with its unit."""

from collections.abc import Sequence
from types import ModuleType
from typing import Final

from tierbench.api.result import ResultTrial
from tierbench.results.quantities import broker, file_transfer, network

_KINDS: Final[dict[str, ModuleType]] = {
    "FileTransferBenchmark": file_transfer,
    "BrokerBenchmark": broker,
    "NetworkBenchmark": network,
}


def quantities(trials: Sequence[ResultTrial]) -> dict[str, list[float]]:
    """The values of every quantity, a value a trial; quantities that no trial has are left out."""
    columns: dict[str, list[float]] = {}
    for trial in trials:
        for kind in _KINDS.values():
            for name, value in kind.of(trial).items():
                if value is not None:
                    columns.setdefault(name, []).append(value)
    return columns


def main_quantity(kind: str) -> str:
    """What a kind of benchmark is read by first, and classes are compared by."""
    name: str = _KINDS.get(kind, file_transfer).MAIN
    return name


def time_quantity(kind: str) -> str:
    """The time that it is read by: less is better."""
    name: str = _KINDS.get(kind, file_transfer).TIME
    return name


def rate_quantity(kind: str) -> str:
    """The rate that it is read by: more is better."""
    name: str = _KINDS.get(kind, file_transfer).RATE
    return name
