"""The quantities that trials give: one file a kind of benchmark. Each name ends with its unit."""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final, Protocol

from tierbench.api.benchmark_kinds import kind_modules
from tierbench.api.result import ResultTrial


class QuantitiesModule(Protocol):
    """What a kind's module in this package has: by which quantities it is read, and all that a trial gives.

    Of several it is read by the first that there is. TIMES names for each rate the time by which its amount is divided.
    """

    MAIN: Sequence[str]
    TIME: Sequence[str]
    RATE: str
    TIMES: Mapping[str, str]

    def of(self, trial: ResultTrial) -> Mapping[str, float | None]:
        """Quantities by name; nothing if the trial is of another kind."""


_KINDS: Final[Mapping[str, QuantitiesModule]] = kind_modules(__name__)


def quantities(trials: Sequence[ResultTrial]) -> dict[str, list[float]]:
    """The values of every quantity, a value a trial; quantities that no trial has are left out."""
    columns: dict[str, list[float]] = {}
    for trial in trials:
        for kind in _KINDS.values():
            for name, value in kind.of(trial).items():
                if value is not None:
                    columns.setdefault(name, []).append(value)
    return columns


def values_of(kind: str, trials: Iterable[ResultTrial], quantity: str) -> list[float]:
    """The values of one quantity, a value a trial that has it; `kind` is the trials'."""
    of = _KINDS[kind].of
    return [value for trial in trials if (value := of(trial).get(quantity)) is not None]


def main_quantity(kind: str, there: Container[str]) -> str:
    """What a kind of benchmark is read by first, and classes are compared by, of the quantities that are `there`."""
    return _first(_KINDS[kind].MAIN, there)


def time_quantity(kind: str, there: Container[str]) -> str:
    """The time that it is read by: less is better."""
    return _first(_KINDS[kind].TIME, there)


def _first(wanted: Sequence[str], there: Container[str]) -> str:
    return next((name for name in wanted if name in there), wanted[0])


def rate_quantity(kind: str) -> str:
    """The rate that it is read by: more is better."""
    return _KINDS[kind].RATE


def times_of_rates(kind: str) -> Mapping[str, str]:
    """For each rate the time by which its amount is divided."""
    return _KINDS[kind].TIMES
