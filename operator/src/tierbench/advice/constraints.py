"""Whether a class keeps to what a service asks for, at every level of the workload."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tierbench.advice.derived import percentile_of
from tierbench.advice.estimate import estimate, smaller_is_better
from tierbench.advice.matrix import Cell
from tierbench.advice.words import joined
from tierbench.advice.workload import Measured
from tierbench.api.limits import Limits
from tierbench.api.placement_advice import Constraints
from tierbench.api.quantity import parse_size
from tierbench.results.levels import level_in_words
from tierbench.results.quantities import rate_quantity, time_quantity
from tierbench.results.units import show, title

_MILLISECOND: Final = 10**6
_BITS: Final = 8


@dataclass(frozen=True)
class Breach:
    """A constraint that does not hold. With `unknown` it was not measured; with `unsure` chance may decide it."""

    reason: str
    message: str
    unknown: bool = False
    unsure: bool = False


@dataclass(frozen=True)
class Limit:
    """What a quantity must not go beyond."""

    reason: str
    quantity: str
    value: float


def limits(constraints: Limits, kind: str) -> tuple[Limit, ...]:
    """The constraints on quantities, for benchmarks of this kind."""
    time = time_quantity(kind)
    minimum = constraints.minimum_bytes_per_second
    in_bits = rate_quantity(kind).endswith("BitsPerSecond")
    rate, unit = ("throughputBitsPerSecond", _BITS) if in_bits else ("throughputBytesPerSecond", 1)
    every = (
        ("MeanTooLong", time, constraints.maximum_mean_milliseconds, _MILLISECOND),
        ("P99TooLong", percentile_of(time, "P99"), constraints.maximum_p99_milliseconds, _MILLISECOND),
        ("ThroughputTooLow", rate, None if minimum is None else parse_size(minimum), unit),
        ("ThroughputTooLow", "throughputMessagesPerSecond", constraints.minimum_messages_per_second, 1),
    )
    return tuple(
        Limit(reason, quantity, value * factor) for reason, quantity, value, factor in every if value is not None
    )


def breaches(measured: Measured, name: str, constraints: Limits, kind: str) -> Iterator[Breach]:
    """What a class does not keep to, or might not."""
    for combination in measured.combinations:
        cell = measured.cell(name, combination)
        if not cell.results:
            continue
        place = _at(measured, cell)
        for limit in limits(constraints, kind):
            yield from _beyond(cell, place, limit)
        allowed = constraints.maximum_retries
        if allowed is not None and cell.retries > allowed:
            yield Breach("TooManyRetries", f"{cell.retries} retries{place}; at most {allowed} are allowed.")


def architecture_breaches(measured: Measured, name: str, constraints: Constraints) -> Iterator[Breach]:
    """Whether a class has nodes of an architecture that the service is not built for."""
    known = {result.spec.server.architecture for result in measured.used(name)}
    others = sorted(known - set(constraints.architectures))
    if constraints.architectures and others:
        wanted = joined(constraints.architectures, "or")
        yield Breach("ArchitectureExcluded", f"Its nodes are {joined(others) or 'unknown'}; {wanted} is asked for.")


def _beyond(cell: Cell, place: str, limit: Limit) -> Iterator[Breach]:
    found = estimate(cell, limit.quantity)
    what = title(limit.quantity)
    if found is None:
        message = f"{what} was not measured{place}, so it is not known whether it keeps to the constraint."
        yield Breach(limit.reason, message, unknown=True)
        return
    less = smaller_is_better(limit.quantity)
    asked = f"{'at most' if less else 'at least'} {show(limit.quantity, limit.value)}"
    message = f"{what} is {show(limit.quantity, found.mean)}{place}; {asked} is asked for."
    sign = 1 if less else -1
    if sign * (found.mean - limit.value) > 0:
        yield Breach(limit.reason, message)
    if found.low is not None and found.high is not None and found.low <= limit.value <= found.high:
        yield Breach(limit.reason, message, unsure=True)


def _at(measured: Measured, cell: Cell) -> str:
    levels = cell.results[0].spec.levels
    words = ", ".join(level_in_words(factor, levels[factor]) for factor in sorted(measured.varying))
    return f" at {words}" if words else ""
