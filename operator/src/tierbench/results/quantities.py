"""The quantities that trials give: one file a kind of benchmark. Each name ends with its unit."""

from collections.abc import Container, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final, Protocol

from tierbench.api.contract import ClientShare, Echoes, Exchange, Flow, Network, Outcome, TcpActivity, Transfer
from tierbench.api.result import ResultTrial, Spread
from tierbench.kinds.registry import kind_modules
from tierbench.results.given import GivenTrial


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


_KINDS: Final[Mapping[str, QuantitiesModule]] = kind_modules("measures")
_SPREAD: Final = Spread(mean=0, p50=0, p90=0, p99=0)
_FLOW: Final = Flow(tcp=TcpActivity(samples=1))
_EVERYTHING: Final = ResultTrial(
    trial=1,
    outcome=Outcome.COMPLETED,
    start_time="",
    duration_nanoseconds=1,
    transfer=Transfer(),
    exchange=Exchange(received=0, lost=0, received_bytes=0),
    round_trip=_SPREAD,
    acknowledge=_SPREAD,
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
    of = _KINDS[kind].of
    every = [(trial.given if isinstance(trial, GivenTrial) else of(trial)).get(quantity) for trial in trials]
    return [value for value in every if value is not None]


def _of_any(trial: ResultTrial) -> Iterable[tuple[str, float | None]]:
    if isinstance(trial, GivenTrial):
        return trial.given.items()
    return chain.from_iterable(kind.of(trial).items() for kind in _KINDS.values())


@lru_cache(maxsize=len(_KINDS))
def names(kind: str) -> tuple[str, ...]:
    """Every quantity that a trial of a kind can have."""
    return tuple(_KINDS[kind].of(_EVERYTHING))


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
