"""Checks whether a class meets the constraints of a service at every level of the workload."""

from collections.abc import Container, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Final

from tierbench.advice.estimate import estimate, percentile_name, smaller_is_better
from tierbench.advice.tables import Cell, ResultSet
from tierbench.advice.workload import WorkloadItem, WorkloadResults
from tierbench.api.placement_advice import AdviceConstraints
from tierbench.api.quantity import parse_size
from tierbench.api.run_policy import Constraints
from tierbench.results.quantities import (
    is_censored,
    levels_and_parameters,
    percentile_over,
    rate_quantity,
    time_quantity,
)
from tierbench.results.units import describe_level, join_words, show, title
from tierbench.stats.distributions import required_count
from tierbench.stats.estimates import rate_interval

_MILLISECOND: Final = 10**6
_BITS: Final = 8
_P99: Final = 0.99


@dataclass(frozen=True)
class Violation:
    """A constraint that is not met, or perhaps not met.

    `unknown`: it is not known whether the constraint is met. `uncertain`: the value is near the limit, so more trials
    may change the result. Both: there are too few values, or the interval of a percentile contains the limit.
    """

    reason: str
    message: str
    unknown: bool = False
    uncertain: bool = False


@dataclass(frozen=True)
class Limit:
    """The limit of a quantity."""

    reason: str
    quantity: str
    value: float


def mean_limits(constraints: Constraints, kind: str, there: Container[str]) -> tuple[Limit, ...]:
    """Returns the limits of means for a kind of benchmark; `there` are the quantities that results have."""
    time = time_quantity(kind, there)
    minimum = constraints.minimum_bytes_per_second
    in_bits = rate_quantity(kind).endswith("BitsPerSecond")
    rate, unit = ("throughputBitsPerSecond", _BITS) if in_bits else ("throughputBytesPerSecond", 1)
    every = (
        ("MeanTooLong", time, constraints.maximum_mean_milliseconds, _MILLISECOND),
        ("ThroughputTooLow", rate, None if minimum is None else parse_size(minimum), unit),
        ("ThroughputTooLow", "throughputMessagesPerSecond", constraints.minimum_messages_per_second, 1),
    )
    return tuple(
        Limit(reason, quantity, value * factor) for reason, quantity, value, factor in every if value is not None
    )


def violations(
    measured: WorkloadResults, name: str, constraints: Constraints, kind: str, items: Sequence[WorkloadItem]
) -> Iterator[Violation]:
    """Yields the constraints that a class violates, or may violate, at each level of the workload.

    The levels at which this or another class failed count too.
    """
    if (
        not mean_limits(constraints, kind, ())
        and constraints.maximum_p99_milliseconds is None
        and constraints.maximum_retries is None
    ):
        return
    cells = [cell for cell in measured.cells[name].values() if any(item.matches(cell.results[0]) for item in items)]
    factors = ResultSet(tuple(cell.results[0] for cell in cells)).factors
    varying = {factor for factor, levels in factors.items() if len(levels) > 1}
    there = {quantity for cell in cells for result in cell.results for quantity in result.status.statistics}
    limits = mean_limits(constraints, kind, there)
    for cell in cells:
        place = _place(cell, varying)
        for limit in limits:
            yield from _check_mean(cell, place, limit)
        if constraints.maximum_p99_milliseconds is not None:
            maximum = constraints.maximum_p99_milliseconds * _MILLISECOND
            yield from _check_percentile(cell, place, time_quantity(kind, there), maximum)
        if constraints.maximum_retries is not None:
            yield from _check_retries(cell, place, constraints.maximum_retries)


def architecture_violations(
    measured: WorkloadResults, name: str, constraints: AdviceConstraints
) -> Iterator[Violation]:
    """Yields a violation if a class has nodes of an architecture that the service is not built for."""
    known = {result.spec.server.architecture for result in measured.results_of(name)}
    others = sorted(known - set(constraints.architectures))
    if constraints.architectures and others:
        allowed, found = join_words(constraints.architectures, "or"), join_words(others) or "unknown"
        yield Violation("ArchitectureExcluded", f"The architecture of its nodes is {found}; it must be {allowed}.")


def _check_mean(cell: Cell, place: str, limit: Limit) -> Iterator[Violation]:
    found = estimate(cell, limit.quantity)
    name = title(limit.quantity)
    if found is None:
        yield _not_measured(limit.reason, name, place)
        return
    less = smaller_is_better(limit.quantity)
    bound = f"the {'maximum' if less else 'minimum'} is {show(limit.quantity, limit.value)}"
    message = f"{name} is {show(limit.quantity, found.mean)}{place}; {bound}."
    sign = 1 if less else -1
    if sign * (found.mean - limit.value) > 0:
        yield Violation(limit.reason, message)
    elif any(map(is_censored, cell.results)):
        yield _cut_off(limit.reason, name, place)
    if found.low is not None and found.high is not None and found.low <= limit.value <= found.high:
        yield Violation(limit.reason, message, uncertain=True)


def _check_percentile(cell: Cell, place: str, quantity: str, maximum: float) -> Iterator[Violation]:
    """Checks a percentile by its interval: the constraint is met, violated, or unknown."""
    reason, name = "P99TooLong", percentile_name(quantity, "P99")
    found = percentile_over(cell.measured, quantity, _P99)
    what, bound = title(name), f"the maximum is {show(name, maximum)}"
    if found is None:
        yield _not_measured(reason, what, place)
    elif found.low is not None and found.low > maximum:
        yield Violation(reason, f"{what} is {show(name, found.low)} or more{place}; {bound}.")
    elif any(map(is_censored, cell.results)):
        yield _cut_off(reason, what, place)
    elif found.high is None:
        few = f"unknown{place}, as {found.count} values are too few; {required_count(_P99)} are enough"
        yield Violation(reason, f"{what} is {few}; {bound}.", unknown=True, uncertain=True)
    elif found.high > maximum:
        between = " to ".join(show(name, end) for end in (found.low, found.high) if end is not None)
        yield Violation(reason, f"{what} is {between}{place}; {bound}.", unknown=True, uncertain=True)


def _check_retries(cell: Cell, place: str, maximum: int) -> Iterator[Violation]:
    """Checks the number of retries per trial, which does not grow with the number of trials."""
    trials = cell.completed + cell.failed
    if not trials:
        return
    message = f"There were {cell.retries} retries in {trials} trials{place}; the maximum is {maximum} per trial."
    if cell.retries / trials > maximum:
        yield Violation("TooManyRetries", message)
    elif maximum and rate_interval(cell.retries, trials)[1] > maximum:
        yield Violation("TooManyRetries", message, uncertain=True)


def _not_measured(reason: str, name: str, place: str) -> Violation:
    message = f"{name} was not measured{place}, so it is unknown whether the constraint is met."
    return Violation(reason, message, unknown=True)


def _cut_off(reason: str, name: str, place: str) -> Violation:
    message = f"Slow trials were cut off{place}, so it is unknown whether {name.lower()} meets the constraint."
    return Violation(reason, message, unknown=True)


def _place(cell: Cell, varying: Set[str]) -> str:
    levels = levels_and_parameters(cell.results[0])
    words = ", ".join(describe_level(factor, levels[factor]) for factor in sorted(varying & levels.keys()))
    return f" at {words}" if words else ""
