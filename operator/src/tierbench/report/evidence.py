"""What stands behind the numbers of a cell: its good trials, and what was seen of the nodes meanwhile."""

from statistics import fmean
from typing import Final

from tierbench.advice.estimate import estimate
from tierbench.advice.matrix import Cell
from tierbench.api.contract import Outcome
from tierbench.api.result import ResultTrial
from tierbench.kinds.registry import kind_of
from tierbench.results.quantities import quantities

DEVICE_READ_SHARE: Final = "deviceReadPartsPerMillion"
EVIDENCE: Final = (
    DEVICE_READ_SHARE,
    "serverIoWaitPartsPerMillion",
    "serverIoPressurePartsPerMillion",
    "serverResidentPartsPerMillion",
    "serverCpuPartsPerMillion",
)
"""The quantities that explain the others, the most telling first."""


def good_trials(cell: Cell) -> tuple[ResultTrial, ...]:
    """The counted trials that ended with everything asked for."""
    return tuple(
        trial
        for result in cell.results
        for trial in result.status.trials
        if not trial.warmup and trial.outcome is Outcome.COMPLETED
    )


def values(cell: Cell, quantity: str) -> tuple[float, ...]:
    """The quantity in each good trial that has it."""
    return tuple(quantities(good_trials(cell)).get(quantity, ()))


def observed(cell: Cell, quantity: str) -> float | None:
    """The mean of a quantity that explains others; None where nothing was seen."""
    if quantity == DEVICE_READ_SHARE:
        return _device_read_share(cell)
    found = estimate(cell, quantity)
    return None if found is None else found.mean


def _device_read_share(cell: Cell) -> float | None:
    read = estimate(cell, "serverDeviceReadBytes")
    of = kind_of(cell.results[0].spec.benchmark.kind).measures.bytes_served if cell.results else None
    served = [] if of is None else [each for trial in good_trials(cell) if (each := of(trial)) is not None]
    return None if read is None or not served else 1e6 * read.mean / fmean(served)
