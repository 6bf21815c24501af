"""The quantities that trials give: one file a kind of benchmark. Each name ends with its unit."""

from collections.abc import Sequence

from tierbench.api.result import ResultTrial
from tierbench.results.quantities import file_transfer


def quantities(trials: Sequence[ResultTrial]) -> dict[str, list[float]]:
    """The values of every quantity, a value a trial; quantities that no trial has are left out."""
    columns: dict[str, list[float]] = {}
    for trial in trials:
        for name, value in file_transfer.of(trial).items():
            if value is not None:
                columns.setdefault(name, []).append(value)
    return columns
