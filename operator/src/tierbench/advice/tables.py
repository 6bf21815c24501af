"""Results as tables, and estimates of the means in their cells.

The rows of a table are the levels of one factor, its columns are server classes. There is one table per other level.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from math import sqrt
from typing import Final, Self

from tierbench.api.placement_advice import Dimension
from tierbench.api.record import BenchmarkReference
from tierbench.api.result import BenchmarkResult, ResultPhase, Statistic
from tierbench.kinds.registry import BenchmarkKind, kinds
from tierbench.results.quantities import (
    RETRIES,
    describe,
    is_censored,
    is_published_mean,
    levels_and_parameters,
    main_quantity,
    rate_quantity,
    time_quantity,
)
from tierbench.results.units import are_numbers, describe_level, factor_traits, is_size, join_words, level_number, title
from tierbench.stats.distributions import standard_error
from tierbench.stats.estimates import Estimate, pool_nodes, pool_trials

CLIENT: Final = "client"
MIN_CURVE_LEVELS: Final = 3
"""The fewest levels that are numbers and make a curve."""
_DIMENSIONS: Final = frozenset(Dimension)
_PERCENTILE: Final = re.compile(r"(?P<stem>\w+)(?P<which>P50|P90|P99)(?P<unit>Nanoseconds)")


@dataclass(frozen=True)
class Cell:
    """One level on one class, with one result per node."""

    results: tuple[BenchmarkResult, ...]

    @cached_property
    def measured(self) -> tuple[BenchmarkResult, ...]:
        """The results with at least one good trial."""
        return tuple(result for result in self.results if result.status.phase is ResultPhase.COMPLETE)

    @property
    def retries(self) -> int:
        """The retries of all counted trials."""
        return sum(result.status.counts.retries for result in self.results)

    @property
    def has_retry_counts(self) -> bool:
        """Whether the number of retries is known."""
        return any(result.status.counts.retries or not is_published_mean(result) for result in self.results)

    @property
    def completed(self) -> int:
        """The number of good trials."""
        return sum(result.status.counts.completed for result in self.results)

    @property
    def failed(self) -> int:
        """The number of counted trials that failed."""
        return sum(result.status.counts.failed for result in self.results)

    @cached_property
    def cut_short(self) -> bool:
        """Whether trials were cut off or failed. The good ones may then be the fast ones."""
        return any(is_censored(result) or result.status.counts.failed for result in self.measured)


EMPTY: Final = Cell(())


@dataclass(frozen=True)
class Table:
    """The levels of one factor against server classes. `held` are the levels of the other factors that vary."""

    factor: str
    held: Mapping[str, str]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, str], Cell]

    def cell(self, row: str, column: str) -> Cell:
        """Returns the cell of a level and a class; it is empty if nothing was measured there."""
        return self.cells.get((row, column), EMPTY)


@dataclass(frozen=True)
class ResultSet:
    """Results that are laid out together."""

    results: tuple[BenchmarkResult, ...]

    @cached_property
    def factors(self) -> Mapping[str, tuple[str, ...]]:
        """The levels of each factor, ascending if they are numbers, else in the order of the cases."""
        found: dict[str, dict[str, None]] = {}
        for result in self.results:
            for factor, level in levels_and_parameters(result).items():
                found.setdefault(factor, {})[level] = None
        return {factor: sort_levels(tuple(levels)) for factor, levels in found.items()}

    @cached_property
    def fixed(self) -> Mapping[str, str]:
        """The level of each factor that does not vary."""
        return {factor: levels[0] for factor, levels in self.factors.items() if len(levels) == 1}

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The server classes, in the order of the cases."""
        return tuple(dict.fromkeys(result.spec.server.node_class for result in self.results))

    @cached_property
    def clients(self) -> tuple[str, ...]:
        """The client classes, in the order of the cases."""
        return tuple(dict.fromkeys(result.spec.client.node_class for result in self.results))

    @cached_property
    def row_factor(self) -> str:
        """The factor whose levels are the rows: one that varies, numbers before words, with the most levels."""
        return max(self.factors, key=lambda name: _weight(name, self.factors[name]), default="")

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """One table for each combination of the other factors that vary, including the client class."""
        return tuple(table for subset in self.subsets for table in subset.tables_by(subset.row_factor))

    @property
    def subsets(self) -> tuple[Self, ...]:
        """The results, split where a factor mixes numbers with words and the numbers are enough for a curve.

        Ratio10 to Ratio90 have an order, Random and Zeros have none.
        """
        mixed = next((name for name, levels in self.factors.items() if _is_mixed(name, levels)), None)
        if mixed is None:
            return (self,)
        halves: dict[bool, list[BenchmarkResult]] = {True: [], False: []}
        for result in self.results:
            halves[are_numbers(mixed, (levels_and_parameters(result).get(mixed, ""),))].append(result)
        return tuple(subset for half in halves.values() for subset in replace(self, results=tuple(half)).subsets)

    def tables_by(self, factor: str) -> tuple[Table, ...]:
        """Returns tables whose rows are the levels of this factor."""
        groups: dict[tuple[tuple[str, str], ...], dict[tuple[str, str], list[BenchmarkResult]]] = {}
        for result in self.results:
            levels = levels_and_parameters(result)
            cells = groups.setdefault(self._held(result, levels, factor), {})
            cells.setdefault((levels.get(factor, ""), result.spec.server.node_class), []).append(result)
        return tuple(self._table(factor, dict(held), cells) for held, cells in groups.items())

    def _held(self, result: BenchmarkResult, levels: Mapping[str, str], factor: str) -> tuple[tuple[str, str], ...]:
        held = [(name, level) for name, level in levels.items() if name not in self.fixed and name != factor]
        if len(self.clients) > 1:
            held.append((CLIENT, result.spec.client.node_class))
        return tuple(held)

    def _table(
        self, factor: str, held: Mapping[str, str], cells: Mapping[tuple[str, str], Sequence[BenchmarkResult]]
    ) -> Table:
        rows = {row for row, _ in cells}
        return Table(
            factor,
            held,
            tuple(level for level in self.factors.get(factor, ("",)) if level in rows),
            self.classes,
            {place: Cell(tuple(results)) for place, results in cells.items()},
        )


@dataclass(frozen=True)
class RunResults(ResultSet):
    """All results of one run of one benchmark."""

    namespace: str
    benchmark: BenchmarkReference
    number: int

    @property
    def superseded(self) -> bool:
        """Whether the spec of the benchmark changed before the run had ended."""
        return any(result.superseded for result in self.results)


def _is_mixed(factor: str, levels: Sequence[str]) -> bool:
    numbers = sum(are_numbers(factor, (level,)) for level in levels)
    return MIN_CURVE_LEVELS <= numbers < len(levels)


def _weight(name: str, levels: Sequence[str]) -> tuple[bool, bool, int, bool]:
    numbers = all(level_number(level) is not None for level in levels)
    return len(levels) > 1, numbers, len(levels), is_size(name)


def sort_levels(levels: tuple[str, ...]) -> tuple[str, ...]:
    """Returns levels in ascending order if all are numbers, else unchanged."""
    numbers = [level_number(level) for level in levels]
    known = [number for number in numbers if number is not None]
    return tuple(level for _, level in sorted(zip(known, levels, strict=True))) if len(known) == len(levels) else levels


def runs(results: Iterable[BenchmarkResult]) -> tuple[RunResults, ...]:
    """Returns every run of every benchmark, sorted by namespace, kind, name and number."""
    found: dict[tuple[str, str, str, int], list[BenchmarkResult]] = {}
    for result in results:
        spec = result.spec
        key = (result.metadata.namespace or "default", spec.benchmark.kind, spec.benchmark.name, spec.run)
        found.setdefault(key, []).append(result)
    return tuple(
        RunResults(
            tuple(sorted(group, key=lambda r: r.spec.case)), namespace, BenchmarkReference(kind=kind, name=name), number
        )
        for (namespace, kind, name, number), group in sorted(found.items(), key=lambda item: item[0])
    )


def newest(all_runs: Iterable[RunResults]) -> tuple[RunResults, ...]:
    """Returns the newest run of each benchmark. A superseded run is used only if there is no other one."""
    last: dict[tuple[str, str, str], RunResults] = {}
    for run in sorted(all_runs, key=lambda run: not run.superseded):
        last[run.namespace, run.benchmark.kind, run.benchmark.name] = run
    return tuple(run for _, run in sorted(last.items(), key=lambda item: item[0]))


def is_named_by_level(factor: str) -> bool:
    """Returns whether a level says by itself what it is, as the name of a broker or of a node class does."""
    return factor in _DIMENSIONS and factor_traits(factor).names


def describe_rows(table: Table, levels: Sequence[str]) -> str:
    """Returns neighbouring levels of a table in words."""
    return describe_levels(table.factor, table.rows, levels)


def describe_levels(factor: str, every: Sequence[str], levels: Sequence[str]) -> str:
    """Returns some of all levels of a factor in words.

    Numbers are a range: "at 1 MB", "up to 2 GB", "from 3 GB on". Words are a list: "with GZIP and Zstd", "on cloud".
    """
    if not are_numbers(factor, every):
        texts = [level if is_named_by_level(factor) else describe_level(factor, level) for level in levels]
        return f"{'on' if factor == Dimension.NODE_CLASS else 'with'} {join_words(texts)}"
    first, last = describe_level(factor, levels[0]), describe_level(factor, levels[-1])
    if len(levels) == len(every):
        return f"from {first} to {last}" if len(levels) > 1 else f"at {first}"
    if len(levels) == 1:
        return f"at {first}"
    if levels[-1] == every[-1]:
        return f"from {first} on"
    return f"up to {last}" if levels[0] == every[0] else f"from {first} to {last}"


def estimate(cell: Cell, quantity: str) -> Estimate | None:
    """Returns the estimate of `quantity` over the nodes of a cell; None if nothing was measured."""
    return pool_nodes(list(node_estimates(cell, quantity).values()))


def node_estimates(cell: Cell, quantity: str, *, of_clients: bool = False) -> dict[str, Estimate]:
    """Returns the estimate of each node of the servers, or else of the clients.

    A mean without its number of trials is used only if there is nothing else.
    """
    found = [(result.spec, result_estimate(result, quantity)) for result in cell.measured]
    known = [((spec.client if of_clients else spec.server).node, one) for spec, one in found if one is not None]
    nodes: dict[str, list[Estimate]] = {}
    for node, one in [(node, one) for node, one in known if one.count] or known[:1]:
        nodes.setdefault(node, []).append(one)
    return {node: pool_trials(estimates) for node, estimates in nodes.items()}


def result_estimate(result: BenchmarkResult, quantity: str) -> Estimate | None:
    """Returns the estimate from one result; None if it does not have the quantity."""
    statistic = result.status.statistics.get(quantity)
    if statistic is None:
        return None
    count, deviation = statistic.count, statistic.standard_deviation
    error = None if deviation is None or not count else deviation / sqrt(count)
    trimmed = quantity in result.status.untrimmed and count > 1
    if error is not None and trimmed and statistic.confidence_high is not None:
        # The deviation lacks the trimmed trials; the interval accounts for them.
        error = standard_error(statistic.mean, statistic.confidence_high, count - 1)
    return Estimate(count, statistic.mean, deviation, error, max(1, count - 1), count)


def measured_quantities(results: ResultSet) -> tuple[str, ...]:
    """Returns every quantity that a result has. The main quantity and the rate of the kind come first."""
    names = {name for result in results.results for name in result.status.statistics}
    of_kinds = dict.fromkeys(result.spec.benchmark.kind for result in results.results)
    first = [name for kind in of_kinds for name in (main_quantity(kind, names), rate_quantity(kind))]
    return tuple(sorted(names, key=lambda name: (first.index(name) if name in first else len(first), title(name))))


def is_rate(quantity: str) -> bool:
    """Returns whether a quantity is an amount per second."""
    return quantity.endswith("PerSecond")


def smaller_is_better(quantity: str) -> bool:
    """Returns whether a small value is good: of all quantities but rates and those that their kind names."""
    return not is_rate(quantity) and quantity not in _larger_is_better(kinds())


@cache
def _larger_is_better(every: tuple[BenchmarkKind, ...]) -> frozenset[str]:
    return frozenset(quantity for kind in every for quantity in kind.measures.larger_is_better)


def relative_margin(best: float, next_best: float) -> float | None:
    """Returns the distance of two values as a share of the second one; None if that is 0."""
    return abs(next_best - best) / next_best if next_best else None


def with_derived_quantities(result: BenchmarkResult, wanted: Iterable[str]) -> BenchmarkResult:
    """Returns a result with these quantities among its statistics, as far as they follow from what it has."""
    there = result.status.statistics
    found = {name: derived_statistic(result, name) for name in wanted if name not in there}
    known = {name: statistic for name, statistic in found.items() if statistic is not None}
    if not known:
        return result
    status = result.status.model_copy(update={"statistics": {**there, **known}})
    return result.model_copy(update={"status": status})


def derived_statistic(result: BenchmarkResult, quantity: str) -> Statistic | None:
    """Returns RETRIES over the counted trials, or a percentile over the good trials; None if it is unknown.

    The standard deviation of a percentile is the one from which a mean would have the standard error of the percentile.
    A published mean has no trials, so nothing follows from it.
    """
    if is_published_mean(result):
        return None
    if quantity == RETRIES:
        return _no_retries(result)
    match, there = _PERCENTILE.fullmatch(quantity), result.status.statistics
    base = "" if match is None else match["stem"] + match["unit"]
    percentile = None if match is None else result.status.percentiles.get(match["which"])
    whole = there.get(base)
    if percentile is None or whole is None or base != time_quantity(result.spec.benchmark.kind, there):
        return None
    error = percentile.standard_error
    deviation = None if error is None else round(error * sqrt(percentile.count))
    return Statistic(count=percentile.count, mean=percentile.value, standard_deviation=deviation, p50=percentile.value)


def _no_retries(result: BenchmarkResult) -> Statistic | None:
    """Returns the retries of a case that had none. Others have RETRIES among their statistics."""
    counts = result.status.counts
    trials = counts.completed + counts.failed
    return _zeros(trials) if trials and not counts.retries else None


@lru_cache(maxsize=64)
def _zeros(trials: int) -> Statistic:
    return describe([0.0] * trials)
