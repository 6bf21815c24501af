"""The quantities that trials give: one file a kind of benchmark. Each name ends with its unit."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final, Protocol

from tierbench.api.benchmark_kinds import kind_modules
from tierbench.api.contract import ClientShare, Echoes, Exchange, Flow, Network, Outcome, TcpActivity, Transfer
from tierbench.api.result import ResultTrial
from tierbench.results.given import GivenTrial


class QuantitiesModule(Protocol):
    """What a kind's module in this package has: by which quantities it is read, and all that a trial gives."""

    MAIN: str
    TIME: str
    RATE: str

    def of(self, trial: ResultTrial) -> Mapping[str, float | None]:
        """Quantities by name; nothing if the trial is of another kind."""


_KINDS: Final[Mapping[str, QuantitiesModule]] = kind_modules(__name__)
_FLOW: Final = Flow(tcp=TcpActivity(samples=1))
_EVERYTHING: Final = ResultTrial(
    trial=1,
    outcome=Outcome.COMPLETED,
    start_time="",
    duration_nanoseconds=1,
    transfer=Transfer(),
    exchange=Exchange(),
    network=Network(
        upload=_FLOW,
        download=_FLOW,
        ping=Echoes(),
        shares=tuple(ClientShare(client=number, bits_per_second=1) for number in range(16)),
    ),
)
"""A trial that leaves no quantity of any kind out."""


def quantities(trials: Sequence[ResultTrial]) -> dict[str, list[float]]:
    """The values of every quantity, a value a trial; quantities that no trial has are left out."""
    columns: dict[str, list[float]] = {}
    for trial in trials:
        for name, value in _of_any(trial):
            if value is not None:
                columns.setdefault(name, []).append(value)
    return columns


def values_of(kind: str, trials: Iterable[ResultTrial], quantity: str) -> list[float]:
    """The values of one quantity, a value a trial that has it; `kind` is the trials'."""
    return [value for trial in trials if (value := _of(_KINDS[kind], trial).get(quantity)) is not None]


def _of_any(trial: ResultTrial) -> Iterable[tuple[str, float | None]]:
    if isinstance(trial, GivenTrial):
        return trial.given.items()
    return chain.from_iterable(kind.of(trial).items() for kind in _KINDS.values())


def _of(kind: QuantitiesModule, trial: ResultTrial) -> Mapping[str, float | None]:
    return trial.given if isinstance(trial, GivenTrial) else kind.of(trial)


@lru_cache(maxsize=len(_KINDS))
def names(kind: str) -> tuple[str, ...]:
    """Every quantity that a trial of a kind can have."""
    return tuple(_KINDS[kind].of(_EVERYTHING))


def main_quantity(kind: str) -> str:
    """What a kind of benchmark is read by first, and classes are compared by."""
    return _KINDS[kind].MAIN


def time_quantity(kind: str) -> str:
    """The time that it is read by: less is better."""
    return _KINDS[kind].TIME


def rate_quantity(kind: str) -> str:
    """The rate that it is read by: more is better."""
    return _KINDS[kind].RATE
