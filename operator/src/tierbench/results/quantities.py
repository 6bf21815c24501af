"""The quantities that trials give, of every kind of benchmark. Each name ends with its unit."""

from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain

from tierbench.api.result import ResultTrial
from tierbench.kinds.registry import BenchmarkKind, kind_of, kinds
from tierbench.results.given import GivenTrial


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
    of = kind_of(kind).measures.quantities
    every = [(trial.given if isinstance(trial, GivenTrial) else of(trial)).get(quantity) for trial in trials]
    return [value for value in every if value is not None]


def _of_any(trial: ResultTrial) -> Iterable[tuple[str, float | None]]:
    if isinstance(trial, GivenTrial):
        return trial.given.items()
    return chain.from_iterable(kind.measures.quantities(trial).items() for kind in kinds())


def names(kind: str) -> tuple[str, ...]:
    """Every quantity that a trial of a kind can have."""
    return _names(kind_of(kind))


@cache
def _names(kind: BenchmarkKind) -> tuple[str, ...]:
    return tuple(kind.measures.quantities(kind.measures.everything))


def main_quantity(kind: str, there: Container[str]) -> str:
    """What a kind of benchmark is read by first, and classes are compared by, of the quantities that are `there`."""
    return _first(kind_of(kind).measures.main, there)


def time_quantity(kind: str, there: Container[str]) -> str:
    """The time that it is read by: less is better."""
    return _first(kind_of(kind).measures.time, there)


def _first(wanted: Sequence[str], there: Container[str]) -> str:
    return next((name for name in wanted if name in there), wanted[0])


def rate_quantity(kind: str) -> str:
    """The rate that it is read by: more is better."""
    return kind_of(kind).measures.rate


def times_of_rates(kind: str) -> Mapping[str, str]:
    """For each rate the time by which its amount is divided."""
    return kind_of(kind).measures.times
