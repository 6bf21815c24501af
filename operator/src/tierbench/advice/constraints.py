"""Whether a class keeps to what a service asks for, at every level of the workload."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tierbench.advice.estimate import estimate, percentile_name, smaller_is_better
from tierbench.advice.tables import Cell
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
from tierbench.stats.quantiles import required_count
from tierbench.stats.rates import rate_interval

_MILLISECOND: Final = 10**6
_BITS: Final = 8
_P99: Final = 0.99


@dataclass(frozen=True)
class Violation:
    """A constraint that does not hold. With `unknown` that is not known; with `unsure` chance may decide it.

    Both together: so few values, or so wide an interval, that a percentile could be on either side.
    """

    reason: str
    message: str
    unknown: bool = False
    uncertain: bool = False


@dataclass(frozen=True)
class Limit:
    """What a quantity must not go beyond."""

    reason: str
    quantity: str
    value: float


def mean_limits(constraints: Constraints, kind: str, there: Container[str]) -> tuple[Limit, ...]:
    """The constraints on means, for benchmarks of this kind, of the quantities that are `there`."""
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
    measured: WorkloadResults, name: str, constraints: Constraints, kind: str, wanted: Sequence[WorkloadItem]
) -> Iterator[Violation]:
    """What a class does not keep to, or might not, at every level that is asked for: those, too, that it or another
    class has failed at."""
    if (
        not mean_limits(constraints, kind, ())
        and constraints.maximum_p99_milliseconds is None
        and constraints.maximum_retries is None
    ):
        return
    cells = [cell for cell in measured.cells[name].values() if any(item.matches(cell.results[0]) for item in wanted)]
    varying = _varying(cells)
    there = {quantity for cell in cells for result in cell.results for quantity in result.status.statistics}
    asked = mean_limits(constraints, kind, there)
    for cell in cells:
        place = _at(cell, varying)
        for limit in asked:
            yield from _beyond(cell, place, limit)
        if constraints.maximum_p99_milliseconds is not None:
            yield from _slowest(
                cell, place, time_quantity(kind, there), constraints.maximum_p99_milliseconds * _MILLISECOND
            )
        if constraints.maximum_retries is not None:
            yield from _retried(cell, place, constraints.maximum_retries)


def architecture_violations(
    measured: WorkloadResults, name: str, constraints: AdviceConstraints
) -> Iterator[Violation]:
    """Whether a class has nodes of an architecture that the service is not built for."""
    known = {result.spec.server.architecture for result in measured.results_of(name)}
    others = sorted(known - set(constraints.architectures))
    if constraints.architectures and others:
        wanted = join_words(constraints.architectures, "or")
        yield Violation(
            "ArchitectureExcluded", f"Its nodes are {join_words(others) or 'unknown'}; {wanted} is asked for."
        )


def _beyond(cell: Cell, place: str, limit: Limit) -> Iterator[Violation]:
    found = estimate(cell, limit.quantity)
    what = title(limit.quantity)
    if found is None:
        message = f"{what} was not measured{place}, so it is not known whether it keeps to the constraint."
        yield Violation(limit.reason, message, unknown=True)
        return
    less = smaller_is_better(limit.quantity)
    asked = f"{'at most' if less else 'at least'} {show(limit.quantity, limit.value)}"
    message = f"{what} is {show(limit.quantity, found.mean)}{place}; {asked} is asked for."
    sign = 1 if less else -1
    if sign * (found.mean - limit.value) > 0:
        yield Violation(limit.reason, message)
    elif any(map(is_censored, cell.results)):
        yield _cut_off(limit.reason, what, place)
    if found.low is not None and found.high is not None and found.low <= limit.value <= found.high:
        yield Violation(limit.reason, message, uncertain=True)


def _slowest(cell: Cell, place: str, quantity: str, most: float) -> Iterator[Violation]:
    """A percentile is judged by its interval: kept to, broken, or not known."""
    reason, name = "P99TooLong", percentile_name(quantity, "P99")
    found = percentile_over(cell.measured, quantity, _P99)
    what, asked = title(name), f"at most {show(name, most)} is asked for"
    if found is None:
        message = f"{what} was not measured{place}, so it is not known whether it keeps to the constraint."
        yield Violation(reason, message, unknown=True)
    elif found.low is not None and found.low > most:
        yield Violation(reason, f"{what} is {show(name, found.low)} or more{place}; {asked}.")
    elif any(map(is_censored, cell.results)):
        yield _cut_off(reason, what, place)
    elif found.high is None:
        few = f"{found.count} values are too few to know it, {required_count(_P99)} would do"
        yield Violation(reason, f"{what}{place}: {few}; {asked}.", unknown=True, uncertain=True)
    elif found.high > most:
        between = " to ".join(show(name, end) for end in (found.low, found.high) if end is not None)
        yield Violation(reason, f"{what} is {between}{place}; {asked}.", unknown=True, uncertain=True)


def _retried(cell: Cell, place: str, most: int) -> Iterator[Violation]:
    """Retries are a rate: measuring more makes it surer, and no larger."""
    trials = cell.completed + cell.failed
    if not trials:
        return
    rate = cell.retries / trials
    message = f"{cell.retries} retries in {trials} trials{place}; at most {most} a trial are allowed."
    if rate > most:
        yield Violation("TooManyRetries", message)
    elif most and rate_interval(cell.retries, trials)[1] > most:
        yield Violation("TooManyRetries", message, uncertain=True)


def _cut_off(reason: str, what: str, place: str) -> Violation:
    message = f"Slow trials were cut off{place}, so it is not known whether {what.lower()} keeps to the constraint."
    return Violation(reason, message, unknown=True)


def _varying(cells: Sequence[Cell]) -> frozenset[str]:
    found: dict[str, set[str]] = {}
    for cell in cells:
        for factor, level in levels_and_parameters(cell.results[0]).items():
            found.setdefault(factor, set()).add(level)
    return frozenset(factor for factor, levels in found.items() if len(levels) > 1)


def _at(cell: Cell, varying: frozenset[str]) -> str:
    levels = levels_and_parameters(cell.results[0])
    words = ", ".join(describe_level(factor, levels[factor]) for factor in sorted(varying & levels.keys()))
    return f" at {words}" if words else ""
